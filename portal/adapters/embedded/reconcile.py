"""Making one composite real: choose the revision, run its pipeline, apply what it wants, say how that went.

As Crossplane's composite reconciler (internal/controller/apiextensions/composite/reconciler.go, read 2026-12-01): a
failure touches Synced and leaves Ready as it was; Ready is what the function says of the composite, else of everything
it composed. Not in charge of: when to reconcile, and never twice at a time (queue, controller).
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.adapters.embedded import admission, compose, conditions, events, pipeline, revisions, store
from portal.adapters.embedded.conditions import Condition
from portal.adapters.embedded.errors import ReconcileError
from portal.adapters.embedded.functions import Functions
from portal.adapters.embedded.names import COMPOSITE_FINALIZER, FOREGROUND_FINALIZER, PAUSED_ANNOTATION, GroupKind
from portal.adapters.embedded.pipeline import Composed
from portal.models.embedded import EmbeddedObject
from portal.ports import RetryableError, TerminalError

POLL_SECONDS = 60.0  # Crossplane's default poll interval: a composite is looked at again even if nothing happened
_SYSTEM_CONDITIONS = frozenset(("Ready", "Synced"))  # a function can't set these
_NAMED_UNREADY = 3


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Reconciles composites with these functions. `__call__` is what a worker runs."""

    functions: Functions

    def __call__(self, object_id: int) -> float | None:
        """Seconds until it should be called again, None: when something happens. ReconcileError: it failed, and its
        condition says so."""
        xr = store.objects().filter(pk=object_id).first()
        xrd = None if xr is None else admission.definition(GroupKind(xr.group, xr.kind))
        if xr is None or xrd is None:
            return None
        if xr.deletion_requested_at is not None:
            return _delete(xr)
        if xr.annotations.get(PAUSED_ANNOTATION) == "true":
            _pause(xr)
            return None
        try:
            return _compose(self.functions, xr, xrd)
        except ReconcileError as error:
            _fail(xr, f"cannot compose resources: {error}")
            raise
        except RetryableError:
            raise  # the store is away: nothing can be noted either
        except Exception as error:
            # Whatever a function's answer broke here, its composite says so instead of standing still.
            _fail(xr, f"cannot compose resources: {error}")
            raise ReconcileError(str(error)) from error


def _compose(functions: Functions, xr: EmbeddedObject, xrd: EmbeddedObject) -> float | None:
    revision = revisions.chosen(xr, xrd)
    steps = revision.spec.get("pipeline", [])
    outcome = pipeline.run(functions, steps, compose.observed(xr), pipeline.fetch_from_store)
    if outcome.fatal is not None:
        _note_fatal(xr, outcome)
        raise ReconcileError(outcome.fatal)
    try:
        admission.check_status(xrd, xr.version, outcome.desired.composite.resource.get("status", {}))
    except TerminalError as error:
        raise ReconcileError(f"cannot apply composite resource status: {error.message}") from error
    return _apply(xr, outcome)


def _apply(xr: EmbeddedObject, outcome: Composed) -> float | None:
    """Apply what the pipeline wants, unless the composite is no longer the one that it was asked about."""
    with store.writing() as writer:
        now = store.objects().filter(pk=xr.pk).first()
        if now is None or now.generation != xr.generation or now.deletion_requested_at is not None:
            return 0.0
        compose.apply(writer, now, outcome.desired)
        events.record(writer, now, outcome.results)
        status = {**outcome.desired.composite.resource.get("status", {})}
        new = [*_custom(outcome), _readiness(now.generation, outcome), conditions.reconciled(now.generation)]
        status["conditions"] = conditions.merged(now.status.get("conditions", []), new, writer.now)
        writer.change(now, status=status)
    return POLL_SECONDS if outcome.ttl is None else max(outcome.ttl, 0.1)


def _readiness(generation: int, outcome: Composed) -> Condition:
    explicit = outcome.desired.composite.ready
    unready = sorted(name for name, resource in outcome.desired.resources.items() if resource.ready is not True)
    if explicit is True or (explicit is None and not unready):
        return conditions.available(generation)
    return conditions.creating(generation, _unready_message(unready))


def _unready_message(unready: list[str]) -> str:
    if not unready:
        return ""
    more = len(unready) - _NAMED_UNREADY
    named = ", ".join(unready[:_NAMED_UNREADY]) + (f", and {more} more" if more > 0 else "")
    return f"Unready resources: {named}"


def _custom(outcome: Composed) -> list[Condition]:
    """The function's own conditions. They carry no observedGeneration, as on the real core."""
    return [
        Condition(condition.type, condition.status, condition.reason, condition.message)
        for condition in outcome.conditions
        if condition.type not in _SYSTEM_CONDITIONS
    ]


def _note_fatal(xr: EmbeddedObject, outcome: Composed) -> None:
    """What a pipeline said before its fatal result is kept: conditions and events."""
    with store.writing() as writer:
        now = store.objects().filter(pk=xr.pk).first()
        if now is not None:
            events.record(writer, now, outcome.results)
            _set(writer, now, _custom(outcome))


def _fail(xr: EmbeddedObject, message: str) -> None:
    """Note a failure on Synced; Ready stays as it was."""
    with store.writing() as writer:
        now = store.objects().filter(pk=xr.pk).first()
        if now is not None:
            events.warn(writer, now, "ComposeResources", message)
            _set(writer, now, [conditions.failed(xr.generation, message)])


def _pause(xr: EmbeddedObject) -> None:
    with store.writing() as writer:
        now = store.objects().filter(pk=xr.pk).first()
        if now is not None:
            _set(writer, now, [conditions.paused(now.generation)])


def _set(writer: store.Writer, row: EmbeddedObject, new: list[Condition]) -> None:
    merged = conditions.merged(row.status.get("conditions", []), new, writer.now)
    writer.change(row, status={**row.status, "conditions": merged})


def _delete(xr: EmbeddedObject) -> float | None:
    """Foreground deletion: first everything that was composed, then, when that is gone, the composite itself."""
    with store.writing() as writer:
        now = store.objects().filter(pk=xr.pk).first()
        if now is None:
            return None
        for row in list(store.objects().filter(owner=now)):
            compose.delete(writer, row)
        if store.objects().filter(owner=now).exists():
            _set(writer, now, [conditions.deleting(now.generation), conditions.reconciled(now.generation)])
        else:
            writer.drop_finalizers(now, [COMPOSITE_FINALIZER, FOREGROUND_FINALIZER])
    return None
