"""gRPC in, gRPC out. Translates Crossplane's protocol to ``contract`` and back.

In charge of asking for the other objects that a kind has to see; not of any decision about them.
"""

import dataclasses
import datetime
import time
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from crossplane.function import logging, resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

from composition_function import approvals
from composition_function.contract import Approval, Composed, Manifest, Outcome, Request, Selector, SpecError, describe
from composition_function.kinds import KINDS
from composition_function.memory import Memory
from composition_function.objects import as_it_was
from composition_function.reading import Versions

OLD = "the control plane's cache still shows it as it was before the last change; it is composed in a moment"


class FunctionRunner(grpcv1.FunctionRunnerServiceServicer):
    """Composes every kind of ``kinds.KINDS``; a fatal result names the field or the kind that it can't work with."""

    def __init__(self, *, enforce_approvals: bool = True) -> None:
        self._log = logging.get_logger()
        self._memory = Memory()
        self._versions = Versions()
        self._enforce = enforce_approvals

    async def RunFunction(
        self, req: fnv1.RunFunctionRequest, _: "grpc.aio.ServicerContext[Any, Any] | None"
    ) -> fnv1.RunFunctionResponse:
        """One call for one claim. Until all other objects that its kind needs have come, all stays as it is."""
        rsp = response.to(req)
        composite = resource.struct_to_dict(req.observed.composite.resource)
        kind = KINDS.get(composite.get("kind", ""))
        if kind is None:
            response.fatal(rsp, f"kind {composite.get('kind')!r} is not composed here; known are {', '.join(KINDS)}")
            return rsp
        try:
            selectors = kind.selectors(composite)
        except SpecError as error:
            response.fatal(rsp, str(error))
            return rsp
        for selector in selectors:
            _require(rsp, selector)
        observed = {key: resource.struct_to_dict(item.resource) for key, item in req.observed.resources.items()}
        if self._memory.is_old(composite, observed):
            response.fatal(rsp, f"{describe(composite)}: {OLD}")
            return rsp
        if any(selector.name not in req.required_resources for selector in selectors):
            _answer(rsp, Outcome(resources={key: Composed(as_it_was(item)) for key, item in observed.items()}))
            return rsp
        required = {
            s.name: [self._versions.read(i.resource) for i in req.required_resources[s.name].items] for s in selectors
        }
        answered, approval = self._memory.placement(composite), self._approval(composite, required)
        try:
            outcome = kind.compose(Request(composite, observed, required, answered, approval))
        except SpecError as error:
            response.fatal(rsp, str(error))
            return rsp
        self._memory.keep(composite, outcome)
        _answer(rsp, outcome)
        self._log.debug("composed", tag=req.meta.tag, kind=composite["kind"], ready=outcome.ready)
        return rsp

    def _approval(self, composite: Manifest, required: Mapping[str, Sequence[Manifest]]) -> Approval:
        if approvals.KEYS.name not in required:
            return Approval(True, "NotAsked")
        verdict = approvals.judge(composite, required[approvals.KEYS.name], time.time())
        return dataclasses.replace(verdict, enforced=self._enforce)


def _require(rsp: fnv1.RunFunctionResponse, selector: Selector) -> None:
    """Ask for all objects of a kind, or for one. An empty label selector, said explicitly, is all of them."""
    response.require_resources(
        rsp,
        selector.name,
        selector.api_version,
        selector.kind,
        match_name=selector.match_name,
        match_labels=None if selector.match_name else dict(selector.labels),
        namespace=selector.namespace,
    )
    if not selector.match_name:
        rsp.requirements.resources[selector.name].match_labels.SetInParent()


def _answer(rsp: fnv1.RunFunctionResponse, outcome: Outcome) -> None:
    rsp.meta.ttl.FromTimedelta(datetime.timedelta(seconds=outcome.ttl))
    for key, composed in outcome.resources.items():
        resource.update(rsp.desired.resources[key], composed.manifest)
        rsp.desired.resources[key].ready = _ready(composed.ready)
    if outcome.status:
        resource.update(rsp.desired.composite, {"status": outcome.status})
    rsp.desired.composite.ready = _ready(outcome.ready)
    for condition in outcome.conditions:
        status = "True" if condition.status else "False"
        response.set_conditions(rsp, resource.Condition(condition.type, status, condition.reason, condition.message))
    for message in outcome.warnings:
        response.warning(rsp, message)


def _ready(ready: bool) -> fnv1.Ready:
    return fnv1.READY_TRUE if ready else fnv1.READY_FALSE
