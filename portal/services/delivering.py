"""Brings an approved request to its control plane: decide again, freeze, apply or delete, record. Safe to repeat.

    begin (one transaction)  ->  the control plane, outside of any  ->  finish (one transaction, acknowledges)

A worker that dies in between leaves a row whose lease runs out; the next one finds the same claim by its name and
label. Not in charge of: when a claim is Ready (observing), or how to talk to a control plane (adapters, handed in).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from portal.domain import governance
from portal.domain.decision import CHANGES, Decision, from_json
from portal.domain.lifecycle import InstancePhase, RequestState, Verb
from portal.models import Instance, OutboxRow, Request
from portal.ports import ClaimRef, ControlPlane, RetryableError, TerminalError
from portal.rendering.claim import ClaimFacts, render_claim
from portal.rendering.names import ANNOTATION_PREFIX, claim_name
from portal.services import (
    changing,
    deciding,
    ending,
    holding,
    journal,
    loading,
    locks,
    outbox,
    signing,
    taking_over,
    transitions,
)
from portal.services.applying import mark_applied

SYSTEM = "delivering"
Planes = Callable[[str], ControlPlane]


def apply(row: OutboxRow, planes: Planes) -> None:
    """Topic `apply`: make the claim, or change it as was approved. Raises RetryableError for the caller to postpone."""
    request = Request.objects.select_related("environment", "document").get(pk=row.payload["request"])
    if request.environment is None or request.document is None:
        raise ValueError(f"request {request.pk} has no environment to deliver to")
    plane = planes(request.environment.control_plane)
    offering = loading.offering(request.document)
    try:
        revision = request.composition_revision or plane.composition_revision(offering.composition)
        signing.publish(plane)
        instance = _begin(row, request.pk, revision)
        if instance is None:
            return
        environment = instance.environment
        labels = {"team": instance.team.slug, "environment": environment.slug}
        plane.ensure_namespace(instance.namespace, environment.creates_namespaces, labels)
        applied = taking_over.apply(plane, request.pk, claim_ref(instance), _claim(instance))
    except TerminalError as error:
        _refused(row, request.pk, error, may_exist=row.attempts > 1 and _may_exist(plane, request.pk))
        return
    with transaction.atomic():
        outbox.acknowledge(row)
        locks.lock_team_chain(request.team)
        mark_applied(locks.lock_request(request.pk), locks.lock_instance(instance.pk), applied)


def delete(row: OutboxRow, planes: Planes) -> None:
    """Topic `delete`: ask the control plane to delete the claim. It is gone when it is observed to be; one that was
    never made is gone at once."""
    request = Request.objects.select_related("instance").get(pk=row.payload["request"])
    instance = _begin_deletion(row, request)
    if instance is None:
        return
    plane = planes(instance.environment.control_plane)
    try:
        uid = instance.claim_uid or _uid_of_ours(plane, instance)
        if uid:
            plane.delete(claim_ref(instance), uid)
    except TerminalError as error:
        _refused(row, request.pk, error)
        return
    with transaction.atomic():
        outbox.acknowledge(row)
        locks.lock_team_chain(request.team)
        waiting = ending.lock_open_requests(instance)
        instance = locks.lock_instance(instance.pk)
        journal.record("claim.delete", system=SYSTEM, request=request, data={"uid": uid})
        if not instance.claim_uid and not uid:
            ending.end(instance, waiting, system=SYSTEM)
        elif not instance.claim_uid:
            instance.claim_uid = uid
            instance.save(update_fields=["claim_uid"])


def give_up(row: OutboxRow, error: RetryableError) -> None:
    """The last attempt failed too: the request fails with the last message; what it may hold stays held and shown."""
    message = f"Given up after {row.attempts} attempts. Last: {error.message}"
    with transaction.atomic():
        outbox.acknowledge(row, "failed")
        request = Request.objects.get(pk=row.payload["request"])
        locks.lock_team_chain(request.team)
        request = locks.lock_request(request.pk)
        if request.state not in {RequestState.APPROVED, RequestState.DELIVERING}:
            return
        started = request.state == RequestState.DELIVERING
        _fail(request, error.code, message)
        if request.instance is None:
            return
        if started or request.kind == "Delete":
            # Its claim may exist, or be changed: nothing is given back before somebody has seen that it isn't.
            if request.kind not in CHANGES:
                transitions.set_phase(request.instance, InstancePhase.STUCK, message)
        else:
            transitions.give_back(request)


def claim_ref(instance: Instance) -> ClaimRef:
    """Where the claim of a delivered instance is."""
    offering = loading.offering(instance.document)
    claim = _claim(instance)
    return ClaimRef(
        api_version=claim["apiVersion"],
        kind=claim["kind"],
        plural=offering.plural,
        namespace=claim["metadata"]["namespace"],
        name=claim["metadata"]["name"],
    )


def _claim(instance: Instance) -> dict[str, Any]:
    if instance.claim is None:
        raise ValueError(f"instance {instance.pk} was not delivered yet")
    return dict(instance.claim)


def _uid_of_ours(plane: ControlPlane, instance: Instance) -> str:
    """The uid of the claim that an attempt made without anybody noting it; empty when there is none of ours.

    An object of that name whose label names another is a stranger's, and is left alone.
    """
    found = plane.get(claim_ref(instance))
    ours = found is not None and found.labels.get(f"{ANNOTATION_PREFIX}instance") == str(instance.pk)
    return found.uid if found is not None and ours else ""


def _begin(row: OutboxRow, request_id: uuid.UUID, revision: str) -> Instance | None:
    """Decide again and freeze the claim; None when there is nothing to apply (any more)."""
    with transaction.atomic():
        chain = locks.lock_team_chain(Request.objects.get(pk=request_id).team)
        request = locks.lock_request(request_id)
        if request.instance is None or request.state not in {RequestState.APPROVED, RequestState.DELIVERING}:
            outbox.acknowledge(row, "cancelled")
            return None
        instance = locks.lock_instance(request.instance.pk)
        if request.state == RequestState.DELIVERING:
            return instance  # an earlier attempt froze the inputs
        inputs = deciding.gather(deciding.proposal_of(request), chain, besides=request)
        decision = deciding.decide(inputs)
        record = deciding.store(request, "delivery", inputs, decision)
        data = {"decision": record.pk, "inputs": record.inputs_digest}
        voted = _voted_decision(request)
        if governance.denials_after_votes(decision, voted):
            transitions.move(request, Verb.DENY, system=SYSTEM, data=data)
            outbox.acknowledge(row, "cancelled")
            return None
        if changed := governance.delivery_check(voted, decision):
            _ask_again(request, decision, {**data, "changed": [reason.message for reason in changed]})
            outbox.acknowledge(row, "cancelled")
            return None
        _requote(request, decision)
        if request.kind in CHANGES:
            changing.freeze(request, instance)
        instance.claim = _render(request, instance, revision)
        instance.save(update_fields=["spec", "document", "claim"])
        transitions.move(request, Verb.DELIVER, system=SYSTEM, data={**data, "compositionRevision": revision})
        return instance


def _voted_decision(request: Request) -> Decision:
    """What people (or the policies alone) said yes to: the decision that opened the last round of stages."""
    record = request.decisions.filter(moment="submission").latest("id")
    asked_again = request.decisions.filter(moment="delivery", votes__isnull=False).order_by("-id").first()
    return from_json(Decision, (asked_again or record).result)


def _ask_again(request: Request, decision: Decision, data: dict[str, object]) -> None:
    _requote(request, decision)
    transitions.move(request, Verb.ASK_AGAIN, system=SYSTEM, data=data)
    deciding.open_stages(request, decision)


def _requote(request: Request, decision: Decision) -> None:
    """Commit a price that rose, or became known, since it was quoted. A lower one changes nothing: the quote holds."""
    quote = decision.quote
    if quote is None or quote.monthly is None:
        return
    if request.quote_monthly is not None and quote.monthly <= request.quote_monthly:
        return
    request.quote_monthly, request.quote_valid_until = quote.monthly, quote.valid_until
    request.quote_currency = quote.currency
    request.save(update_fields=["quote_monthly", "quote_currency", "quote_valid_until"])
    holding.recommit(request, quote)


def _begin_deletion(row: OutboxRow, request: Request) -> Instance | None:
    with transaction.atomic():
        locks.lock_team_chain(request.team)
        request = locks.lock_request(request.pk)
        if request.instance is None or request.state not in {RequestState.APPROVED, RequestState.DELIVERING}:
            outbox.acknowledge(row, "cancelled")
            return None
        instance = locks.lock_instance(request.instance.pk)
        first = request.state == RequestState.APPROVED
        if first:
            outbox.cancel(row.lane, topics=["apply"])
            changing.overtake(instance, request)
            transitions.move(request, Verb.DELIVER, system=SYSTEM)
        if instance.phase == InstancePhase.GONE:  # somebody else deleted its claim meanwhile
            outbox.acknowledge(row)
            transitions.move(request, Verb.FINISH, system=SYSTEM)
            return None
        if first:
            transitions.set_phase(instance, InstancePhase.DELETING, "Deletion was asked for.")
        return instance


def _may_exist(plane: ControlPlane, request_id: uuid.UUID) -> bool:
    """Whether an earlier attempt has made the claim, or changed it so, or nobody can say."""
    request = Request.objects.get(pk=request_id)
    instance = request.instance
    if instance is None or instance.claim is None:
        return False
    try:
        if request.kind not in CHANGES:
            return bool(_uid_of_ours(plane, instance))
        found = plane.get(claim_ref(instance))
        return found is not None and found.annotations.get(changing.REQUEST) == str(request_id)
    except TerminalError:
        return True


def _refused(row: OutboxRow, request_id: uuid.UUID, error: TerminalError, *, may_exist: bool = False) -> None:
    """The control plane will not take it: the request fails; a creation gives back what it held, and a change what it
    held on top, unless an earlier attempt came through: then that is held until it is seen to be otherwise."""
    with transaction.atomic():
        outbox.acknowledge(row, "failed")
        request = Request.objects.get(pk=request_id)
        locks.lock_team_chain(request.team)
        request = locks.lock_request(request_id)
        if request.state not in {RequestState.APPROVED, RequestState.DELIVERING}:
            return
        _fail(request, error.code, error.message)
        if request.kind in CHANGES and request.instance is not None:
            if not may_exist:
                changing.restore(request, locks.lock_instance(request.instance.pk))
        elif not may_exist:
            transitions.give_back(request)
        elif request.instance is not None and not request.instance.claim_uid:
            transitions.set_phase(request.instance, InstancePhase.STUCK, error.message)


def _fail(request: Request, code: str, message: str) -> None:
    request.failure_code, request.failure_message = code, message
    transitions.move(request, Verb.FAIL, system=SYSTEM, data={"code": code, "message": message[:500]})


def _owner(request: Request, instance: Instance) -> User:
    """Whom it is made for. Who asks for a change of what is another's does not become its owner."""
    creation = instance.requests.filter(kind="Create").select_related("made_for", "requester").first() or request
    return request.made_for or creation.made_for or creation.requester


def _render(request: Request, instance: Instance, revision: str) -> dict[str, object]:
    offering = loading.offering(instance.document)
    facts = ClaimFacts(
        api_version=offering.api_version,
        kind=offering.kind,
        composition=offering.composition,
        composition_revision=revision,
        instance_id=str(instance.pk),
        instance_name=instance.name,
        name=claim_name(instance.name, instance.namespace, offering.naming.max_length, offering.naming.derived),
        namespace=instance.namespace,
        team=instance.team.slug,
        team_title=instance.team.title,
        environment=instance.environment.slug,
        environment_labels=instance.environment.labels,
        spec=instance.spec,
        request_id=str(request.pk),
        requester=request.requester.username,
        owner=_owner(request, instance).username,
        offering=offering.name,
        offering_digest=offering.digest,
        quote_monthly=request.quote_monthly,
        quote_currency=request.quote_currency,
    )
    return signing.approve(render_claim(facts), offering)
