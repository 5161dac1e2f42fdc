"""Calling composition functions over gRPC, as Crossplane does (its RunFunction protocol, v1).

The only module of the portal that knows gRPC and protobuf: the rest sees the plain shapes below. Not in charge of:
when to call which function (pipeline).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import crossplane.function.proto.v1.run_function_pb2_grpc as grpcv1
import grpc  # type: ignore[import-untyped]  # published without types
from google.protobuf import json_format, struct_pb2

from portal.adapters.embedded.conditions import Truth
from portal.adapters.embedded.errors import FunctionError

Severity = Literal["Fatal", "Warning", "Normal"]

_SEVERITIES: dict[int, Severity] = {
    fnv1.SEVERITY_FATAL: "Fatal",
    fnv1.SEVERITY_WARNING: "Warning",
    fnv1.SEVERITY_NORMAL: "Normal",
}
_STATUSES: dict[int, Truth] = {fnv1.STATUS_CONDITION_TRUE: "True", fnv1.STATUS_CONDITION_FALSE: "False"}
_READY = {fnv1.READY_TRUE: True, fnv1.READY_FALSE: False}
_TO_READY = {True: fnv1.READY_TRUE, False: fnv1.READY_FALSE, None: fnv1.READY_UNSPECIFIED}
_CAPABILITIES = (fnv1.CAPABILITY_CAPABILITIES, fnv1.CAPABILITY_REQUIRED_RESOURCES, fnv1.CAPABILITY_CONDITIONS)


@dataclass(frozen=True, slots=True)
class Desired:
    """A resource that a function wants. `ready` None: the function does not say."""

    resource: dict[str, Any]
    ready: bool | None = None


@dataclass(frozen=True, slots=True)
class State:
    """A composite and its composed resources by name; observed ones have no `ready`."""

    composite: Desired
    resources: dict[str, Desired] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selector:
    """Objects that a function needs to see. Exactly one of `name` and `labels`; empty labels select all of the kind."""

    api_version: str
    kind: str
    name: str | None
    labels: dict[str, str] | None
    namespace: str


@dataclass(frozen=True, slots=True)
class FunctionRequest:
    """What one call gets. `required` answers the selectors of the call before, by their names."""

    observed: State
    desired: State
    context: dict[str, Any]
    input: dict[str, Any] | None
    required: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Result:
    """Something that a function says; a Fatal one ends the pipeline."""

    severity: Severity
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class FunctionCondition:
    """A condition that a function wants on the composite."""

    type: str
    status: Truth
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class FunctionResponse:
    """What one call answered. `ttl` in seconds: call again after it."""

    desired: State
    context: dict[str, Any]
    results: tuple[Result, ...]
    conditions: tuple[FunctionCondition, ...]
    requirements: dict[str, Selector]
    ttl: float | None


class Functions:
    """Composition functions by the name that a Composition's functionRef uses. Safe to use from several threads."""

    def __init__(self, addresses: Mapping[str, str], timeout: float) -> None:
        self._addresses = dict(addresses)
        self._timeout = timeout
        self._stubs: dict[str, Any] = {}
        self._lock = threading.Lock()

    def run(self, name: str, request: FunctionRequest) -> FunctionResponse:
        """Call a function once. FunctionError when it is unknown, down, too slow, or breaks the protocol."""
        message = _encode(request)
        try:
            answer = self._stub(name).RunFunction(message, timeout=self._timeout)
        except grpc.RpcError as error:
            raise FunctionError(f"cannot run Function {name!r}: {_words(error)}") from error
        return _decode(answer)

    def _stub(self, name: str) -> Any:
        address = self._addresses.get(name)
        if address is None:
            known = ", ".join(sorted(self._addresses)) or "none"
            raise FunctionError(f"Function {name!r} has no address (known: {known}); name it in FUNCTION_ENDPOINTS")
        with self._lock:
            if name not in self._stubs:
                # A function that comes back is called again within a second, not after gRPC's default of up to two
                # minutes.
                options = [
                    ("grpc.initial_reconnect_backoff_ms", 100),
                    ("grpc.min_reconnect_backoff_ms", 100),
                    ("grpc.max_reconnect_backoff_ms", 1000),
                ]
                channel = grpc.insecure_channel(address, options)
                self._stubs[name] = grpcv1.FunctionRunnerServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
            return self._stubs[name]


def _words(error: grpc.RpcError) -> str:
    code = error.code() if isinstance(error, grpc.Call) else None
    details = error.details() if isinstance(error, grpc.Call) else str(error)
    # Crossplane writes codes as DeadlineExceeded.
    name = code.name.title().replace("_", "") if code is not None else "Unknown"
    return f"rpc error: code = {name} desc = {details}"


def _encode(request: FunctionRequest) -> Any:
    message = fnv1.RunFunctionRequest(observed=_state(request.observed), desired=_state(request.desired))
    message.context.CopyFrom(_struct(request.context))
    if request.input is not None:
        message.input.CopyFrom(_struct(request.input))
    for name, manifests in request.required.items():
        # Naming it without items tells the function that nothing was found.
        message.required_resources[name].items.extend(fnv1.Resource(resource=_struct(one)) for one in manifests)
    message.meta.tag = hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
    message.meta.capabilities.extend(_CAPABILITIES)
    return message


def _state(state: State) -> Any:
    message = fnv1.State()
    if state.composite.resource or state.composite.ready is not None:
        message.composite.CopyFrom(_resource(state.composite))
    for name, desired in state.resources.items():
        message.resources[name].CopyFrom(_resource(desired))
    return message


def _resource(desired: Desired) -> Any:
    return fnv1.Resource(resource=_struct(desired.resource), ready=_TO_READY[desired.ready])


def _struct(value: dict[str, Any]) -> Any:
    return json_format.ParseDict(value, struct_pb2.Struct())


def _plain(struct: Any) -> dict[str, Any]:
    plain: dict[str, Any] = _whole(json_format.MessageToDict(struct, preserving_proto_field_name=True))
    return plain


def _whole(value: Any) -> Any:
    """A Struct holds every number as a double; whole ones become integers again, as when Crossplane writes JSON."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _decode(answer: Any) -> FunctionResponse:
    meta = answer.meta
    return FunctionResponse(
        desired=State(
            composite=_desired(answer.desired.composite),
            resources={name: _desired(resource) for name, resource in answer.desired.resources.items()},
        ),
        context=_plain(answer.context),
        results=tuple(_result(result) for result in answer.results),
        conditions=tuple(
            FunctionCondition(c.type, _STATUSES.get(c.status, "Unknown"), c.reason, c.message)
            for c in answer.conditions
        ),
        requirements={name: _selector(selector) for name, selector in answer.requirements.resources.items()},
        ttl=meta.ttl.ToTimedelta().total_seconds() if meta.HasField("ttl") else None,
    )


def _desired(resource: Any) -> Desired:
    return Desired(_plain(resource.resource), _READY.get(resource.ready))


def _result(result: Any) -> Result:
    return Result(_SEVERITIES.get(result.severity, "Warning"), result.reason or "ComposeResources", result.message)


def _selector(selector: Any) -> Selector:
    match = selector.WhichOneof("match")
    return Selector(
        api_version=selector.api_version,
        kind=selector.kind,
        name=selector.match_name if match == "match_name" else None,
        labels=dict(selector.match_labels.labels) if match == "match_labels" else None,
        namespace=selector.namespace,
    )
