"""What every placed kind does the same way: place, say so, and compose only when the slot is bound.

In charge of the ``Placed`` and ``WorkloadReady`` conditions and of ``status.placement``; the manifests and the rest of
the status come from the module of the kind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from composition_function import fleet, objects, suspension
from composition_function.contract import (
    TTL_NEXT_STEP,
    TTL_PENDING,
    TTL_SETTLED,
    TTL_WAITING_MOST,
    Approval,
    Composed,
    Condition,
    Manifest,
    Outcome,
    Request,
    SpecError,
    at,
    describe,
    text,
)
from composition_function.memory import is_seen, shows_composed
from composition_function.needs import NOT_APPROVED, full_need, suspended
from composition_function.placement import place
from composition_function.slots import Placement, Slot, Step

NO_ADDRESS = "it has no address yet"


@dataclass
class Built:
    """What a kind makes of a bound slot. ``waiting_for`` is None when the workload does what the claim asks for."""

    resources: dict[str, Composed]
    waiting_for: str | None
    status: Manifest = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """What a kind brings along. ``main`` is the key of the composed resource that stands for the workload; ``build``
    composes in a bound slot; ``observe`` gives the status of what runs, and ``not_ready`` says of the main workload, as
    it is on its cluster, what it lacks: for a claim that has to stay as it was."""

    main: str
    build: Callable[[Request, objects.Target], Built]
    observe: Callable[[Request], Manifest]
    not_ready: Callable[[Manifest], str | None]
    stopping: suspension.Stopping


def compose(request: Request, workload: Workload) -> Outcome:
    """Place the claim; once its slot is bound, build its resources. A claim that is to be suspended is stopped, one
    whose approval doesn't cover it stays as it was."""
    if at(request.composite, "metadata", "deletionTimestamp"):
        return _leave_alone(request)
    if suspended(request.composite):
        outcome = _stop(request, workload)
    elif not _covered(request, workload):
        outcome = _as_approved_before(request, workload)
    else:
        outcome = _run(request, workload)
        if _expired(request.approval) and workload.main in request.observed and workload.main not in outcome.resources:
            outcome = _as_approved_before(request, workload)  # moved, it would be a new one without an approval
    outcome.conditions.append(_approved(request.approval))
    return outcome


def _approved(approval: Approval) -> Condition:
    if approval.granted or approval.enforced:
        return Condition("Approved", approval.granted, approval.reason, approval.message)
    return Condition("Approved", False, approval.reason, f"would be refused: {approval.message}")


def _covered(request: Request, workload: Workload) -> bool:
    """Whether the claim may be composed as its spec says now."""
    approval = request.approval
    if approval.granted or not approval.enforced:
        return True
    composed = objects.granted(request.observed.get(workload.main))
    return _expired(approval) and composed is not None and full_need(request.composite).units <= composed


def _expired(approval: Approval) -> bool:
    return approval.enforced and approval.keeps


def _stop(request: Request, workload: Workload) -> Outcome:
    return suspension.compose(request, workload.main, workload.stopping, workload.observe(request))


def _as_approved_before(request: Request, workload: Workload) -> Outcome:
    """Nothing new for a claim without an approval; what was composed for it when it had one stays."""
    slot = objects.slot_of(request.observed.get(workload.main))
    if slot is None:
        why = "it has no approval; see the condition Approved"
        placed = Condition("Placed", False, NOT_APPROVED, why)
        outcome = Outcome(conditions=[placed, Condition("WorkloadReady", False, "NotComposed", why)])
        outcome.conditions.append(suspension.NOT_SUSPENDED)
        outcome.resources = {key: Composed(objects.as_it_was(item)) for key, item in request.observed.items()}
    elif suspension.suspended_as_composed(request, workload.main, workload.stopping):
        outcome = _stop(request, workload)
    else:
        outcome = _keep(request, workload, slot)
    outcome.ttl = TTL_PENDING
    return outcome


def _keep(request: Request, workload: Workload, slot: Slot) -> Outcome:
    """As it was, and ready if that is."""
    observed = request.observed.get(workload.main)
    waiting_for = objects.problem(observed) or workload.not_ready(objects.workload(observed))
    # What is reckoned from the spec stays what it was with it.
    before = at(request.composite, "status", default={})
    status = {key: before[key] for key in ("placement", "memoryGiB") if key in before} | workload.observe(request)
    if waiting_for is None and "endpoint" not in status:
        waiting_for = NO_ADDRESS
    resources = {key: Composed(objects.as_it_was(item)) for key, item in request.observed.items()}
    all_ready(resources, waiting_for)
    where = Condition("Placed", True, "Placed", f"runs in {slot.cluster}/{slot.pool}, as it was approved before")
    reason = "Progressing" if waiting_for else "Ready"
    conditions = [
        where,
        Condition("WorkloadReady", not waiting_for, reason, waiting_for or ""),
        suspension.NOT_SUSPENDED,
    ]
    return Outcome(ready=not waiting_for, resources=resources, status=status, conditions=conditions)


def _run(request: Request, workload: Workload) -> Outcome:
    """Placed, and composed once its slot is bound."""
    outcome = _placed_and_composed(request, workload)
    outcome.conditions.append(suspension.NOT_SUSPENDED)
    return outcome


def _placed_and_composed(request: Request, workload: Workload) -> Outcome:
    placement, complaints = _place(request, workload.main)
    left = _left(request, placement)
    outcome = Outcome(
        status={"placement": _status(request.composite, placement, left)}, warnings=complaints, placement=placement
    )
    outcome.conditions.append(_placed(request, placement, left))
    if placement.step is not Step.BOUND or placement.slot is None or left:
        outcome.conditions.append(Condition("WorkloadReady", False, "NotComposed", "it has no slot to run in yet"))
        outcome.ttl = waiting_ttl(placement.ahead) if placement.step is Step.REFUSED else TTL_NEXT_STEP
        return outcome
    if placement.held_back and workload.main not in request.observed and request.answered is not None:
        raise SpecError(
            f"{describe(request.composite)}: what is composed for it is not shown yet; it is asked for again"
        )
    if placement.held_back:
        outcome.resources = {key: Composed(objects.as_it_was(item)) for key, item in request.observed.items()}
        outcome.status |= workload.observe(request)
        outcome.status["placement"]["units"] = objects.granted(request.observed.get(workload.main)) or 0
        outcome.conditions.append(Condition("WorkloadReady", False, "HeldBack", "it runs as it was before the change"))
        outcome.ttl = TTL_PENDING
        return outcome
    _compose_in(placement.slot, request, workload, outcome)
    return outcome


def _compose_in(slot: Slot, request: Request, workload: Workload, outcome: Outcome) -> None:
    """Fill the outcome with what the kind makes of a bound slot."""
    need = full_need(request.composite)
    built = workload.build(request, objects.Target(slot, _provider_config(request, slot.cluster), need.units))
    waiting_for = built.waiting_for
    if waiting_for is None and "endpoint" not in built.status:
        # Its parts become ready one by one; without an address it is of use to nobody yet.
        waiting_for = NO_ADDRESS
        all_ready(built.resources, waiting_for)
    for key, composed in built.resources.items():
        objects.forget(composed.manifest, request.observed.get(key))
    outcome.resources = built.resources
    outcome.status |= built.status
    outcome.ready = waiting_for is None
    outcome.status["placement"]["units"] = _units(request, slot, need.units, outcome.ready)
    outcome.conditions.append(
        Condition("WorkloadReady", outcome.ready, "Ready" if outcome.ready else "Progressing", waiting_for or "")
    )
    outcome.ttl = TTL_SETTLED if outcome.ready else TTL_PENDING


def waiting_ttl(ahead: int) -> int:
    """Seconds after which a claim without a slot looks again: the later, the more older ones choose before it.

    Hundreds that look every few seconds would leave no time for anybody else; what gets free is theirs first anyway.
    """
    return min(TTL_PENDING + ahead, TTL_WAITING_MOST)


def _leave_alone(request: Request) -> Outcome:
    """A claim that is being deleted keeps its resources until the control plane removes them, and takes nothing new."""
    status = {key: value for key, value in at(request.composite, "status", default={}).items() if key != "conditions"}
    resources = {key: Composed(objects.as_it_was(item)) for key, item in request.observed.items()}
    return Outcome(resources=resources, status=status)


def _place(request: Request, main: str) -> tuple[Placement, list[str]]:
    observed = request.observed.get(main)
    me = replace(fleet.read_claim(request.composite), need=full_need(request.composite))
    slot, bound = objects.hold(me, observed)
    me, granted = replace(me, held=slot, bound=bound), objects.granted(observed)
    answer = request.answered
    if answer is not None and not is_seen(answer, me, shows_composed(request.composite, request.observed)):
        if answer.step in (Step.RESERVED, Step.WAITING):
            return answer, []  # to be seen by all before it may bind
        me = replace(me, held=answer.slot, bound=answer.step is Step.BOUND)
        granted = me.need.units if granted is None else granted
    same_kind = fleet.DATABASES if request.composite["kind"] == "VectorDatabase" else fleet.MODELS
    others, claim_complaints = fleet.read_all(request.required.get(same_kind.name, ()), fleet.read_claim)
    clusters, cluster_complaints = fleet.read_all(request.required.get(fleet.CLUSTERS.name, ()), fleet.read_cluster)
    placement = place(me, others, clusters, granted)
    return placement, claim_complaints + cluster_complaints


def _left(request: Request, placement: Placement) -> dict[Slot, int]:
    """Slots that the claim has left and where its workload still is, with its units there. Objects keep their names
    when a claim moves, so those have to go first: pointed at another cluster, an Object would forget what it made."""
    gone_soon = objects.owned(request.composite, request.required.get(objects.OWN, ()))
    return objects.left_behind([*gone_soon, *request.observed.values()], placement.slot)


def _provider_config(request: Request, cluster: str) -> str:
    for item in request.required[fleet.CLUSTERS.name]:
        if at(item, "metadata", "name") == cluster:
            return text(item, "spec", "providerConfigName")
    raise SpecError(f"{describe(request.composite)}: cluster {cluster} is not in the fleet")


def _status(composite: Manifest, placement: Placement, left: Mapping[Slot, int]) -> Manifest:
    """``status.placement``. While the claim stays where it is, the reasons stay those for which it came there."""
    leaving = [{"cluster": slot.cluster, "pool": slot.pool, "units": units} for slot, units in sorted(left.items())]
    behind: Manifest = {"leaving": leaving} if leaving else {}
    reasons = [{"cluster": r.cluster, "code": r.code.value, "message": r.message} for r in placement.reasons]
    if placement.slot is None:
        return behind | {"reasons": reasons}
    before = at(composite, "status", "placement", default={})
    slot = {"cluster": placement.slot.cluster, "pool": placement.slot.pool}
    if slot.items() <= before.items() and placement.step is not Step.RESERVED and not placement.held_back:
        reasons = before.get("reasons") or reasons
    region = {"region": placement.region} if placement.region else {}
    return slot | region | behind | {"reasons": reasons}


def _units(request: Request, slot: Slot, need: int, ready: bool) -> int:
    """What the claim takes of its slot: what it had there, until the workload was seen to do with less."""
    before = at(request.composite, "status", "placement", default={})
    stays = (at(before, "cluster"), at(before, "pool")) == (slot.cluster, slot.pool)
    return need if ready or not stays else max(need, int(at(before, "units", default=0)))


def _placed(request: Request, placement: Placement, left: Mapping[Slot, int]) -> Condition:
    """The ``Placed`` condition; its message says per cluster why, and what to do."""
    if placement.step is Step.REFUSED:
        return Condition("Placed", False, *_refused(request, placement))
    where = f"{placement.slot.cluster}/{placement.slot.pool}" if placement.slot else "?"
    if left and placement.step is Step.BOUND:
        old = ", ".join(sorted(slot.cluster for slot in left))
        return Condition("Placed", False, "Waiting", f"holds {where}; composed next, once it is gone from {old}")
    if placement.held_back:
        return Condition("Placed", False, "HeldBack", placement.held_back)
    if placement.step is Step.BOUND:
        return Condition("Placed", True, "Placed", f"runs in {where}")
    if placement.step is Step.WAITING:
        return Condition("Placed", False, "Waiting", f"holds {where}; later claims that took it too are giving it up")
    return Condition(
        "Placed", False, "Reserved", f"reserved {where}; composed next, unless an earlier claim took it too"
    )


def _refused(request: Request, placement: Placement) -> tuple[str, str]:
    """Reason and message when no slot fits."""
    if not placement.reasons:
        return "NoFleet", "the fleet has no InferenceCluster; create one (examples are in crossplane/fleet)"
    need = full_need(request.composite)
    why = "; ".join(f"{reason.cluster}: {reason.message} ({reason.code.value})" for reason in placement.reasons)
    wanted = f"{need.units} {need.resource} ({need.pieces} x {need.piece} on one node)"
    again = f"looked at again every {waiting_ttl(placement.ahead)} s"
    advice = f"Ask for less, allow more regions, or wait: the fleet is not watched, but {again}"
    return "NoCapacity", f"no cluster has room for {wanted}. {why}. {advice}"


def all_ready(resources: Mapping[str, Composed], reason: str | None) -> None:
    """Mark every resource of a kind ready together with its workload: alone none of them is of use."""
    for resource in resources.values():
        resource.ready = reason is None
