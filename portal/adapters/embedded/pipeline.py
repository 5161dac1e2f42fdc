"""Running a Composition's pipeline for one composite: what it wants, says and needs. Writes nothing.

Rules as in Crossplane's internal/xfn and composition_functions.go (github.com/crossplane/crossplane, read 2026-12-01):
desired state and context go from step to step; a step is called again until it asks for the same objects twice in a
row, at most 1 + 5 times; the first fatal result ends the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from portal.adapters.embedded.errors import FunctionError, ReconcileError
from portal.adapters.embedded.functions import (
    Desired,
    FunctionCondition,
    FunctionRequest,
    FunctionResponse,
    Functions,
    Result,
    Selector,
    State,
)
from portal.adapters.embedded.manifests import manifest_of
from portal.adapters.embedded.names import GroupKind, split_api_version
from portal.adapters.embedded.store import of_kind, port_errors

MAX_REQUIREMENT_ROUNDS = 5

Fetch = Callable[[Selector], list[dict[str, Any]]]


@dataclass(slots=True)
class Composed:
    """What a pipeline came to. `fatal` is the message of a fatal result: then `desired` must not be applied."""

    desired: State
    results: list[Result] = field(default_factory=list)
    conditions: list[FunctionCondition] = field(default_factory=list)
    ttl: float | None = None
    fatal: str | None = None


def run(functions: Functions, steps: list[dict[str, Any]], observed: State, fetch: Fetch) -> Composed:
    """Run all steps. ReconcileError (FunctionError, if a function can't be called) when the pipeline can't be run."""
    outcome = Composed(State(Desired({})))
    context: dict[str, Any] = {}
    for step in steps:
        request = FunctionRequest(observed, outcome.desired, context, step.get("input"), _bootstrap(step, fetch))
        try:
            response = _until_stable(functions, step["functionRef"]["name"], request, fetch)
        except ReconcileError as error:
            raise type(error)(f"cannot run Composition pipeline step {step['step']!r}: {error}") from error
        outcome.results += response.results
        outcome.conditions += response.conditions
        if response.ttl is not None:
            outcome.ttl = response.ttl if outcome.ttl is None else min(outcome.ttl, response.ttl)
        fatal = next((result for result in response.results if result.severity == "Fatal"), None)
        if fatal is not None:
            outcome.fatal = f"pipeline step {step['step']!r} returned a fatal result: {fatal.message}"
            return outcome
        outcome.desired, context = response.desired, response.context
    return outcome


def _until_stable(functions: Functions, name: str, request: FunctionRequest, fetch: Fetch) -> FunctionResponse:
    bootstrap = request.required
    asked: dict[str, Selector] | None = {}  # not asking for anything is stable at once
    for _ in range(MAX_REQUIREMENT_ROUNDS + 1):
        response = functions.run(name, request)
        if any(result.severity == "Fatal" for result in response.results) or response.requirements == asked:
            return response
        asked = response.requirements
        required = {**bootstrap, **{key: fetch(selector) for key, selector in asked.items()}}
        request = FunctionRequest(request.observed, request.desired, response.context, request.input, required)
    raise ReconcileError(
        f"requirements didn't stabilize after the maximum number of iterations ({MAX_REQUIREMENT_ROUNDS})"
    )


def _bootstrap(step: dict[str, Any], fetch: Fetch) -> dict[str, list[dict[str, Any]]]:
    """What the Composition itself names for a step (requirements.requiredResources), so that one call may suffice."""
    wanted = step.get("requirements", {}).get("requiredResources", [])
    return {
        entry["requirementName"]: fetch(
            Selector(
                api_version=entry["apiVersion"],
                kind=entry["kind"],
                name=entry.get("name"),
                labels=None if entry.get("name") else entry.get("matchLabels", {}),
                namespace=entry.get("namespace", ""),
            )
        )
        for entry in wanted
    }


def fetch_from_store(selector: Selector) -> list[dict[str, Any]]:
    """The objects that a selector names, oldest first. A selector without a match is refused, as the real core does."""
    rows = of_kind(GroupKind(split_api_version(selector.api_version)[0], selector.kind))
    if selector.name is not None:
        rows = rows.filter(namespace=selector.namespace, name=selector.name)
    elif selector.labels is not None:
        rows = rows.filter(labels__contains=selector.labels) if selector.labels else rows
        rows = rows.filter(namespace=selector.namespace) if selector.namespace else rows
    else:
        raise FunctionError(f"required {selector.kind}: unsupported selector, it matches neither a name nor labels")
    with port_errors():
        return [manifest_of(row) for row in rows]
