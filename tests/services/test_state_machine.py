"""Hypothesis plays teams, approvers, workers and a control plane in any order, and looks at the books after each step.

What must always hold: reserved + used <= limit on every row; counters equal the rows behind them; no instance holds
less than what its claim may run; no request leaves a final state; each step has its one audit event; what was observed
as asked holds exactly that; once everything is gone nothing is held.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from django.db.models import Sum
from django.test import TransactionTestCase
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from portal.adapters.embedded import EmbeddedControlPlane
from portal.domain.lifecycle import FINAL
from portal.models import AuditEvent, Budget, Commitment, Instance, OutboxRow, Quota, Request, Reservation, Team
from portal.ports import Applied, ObservedClaim, RetryableError, TerminalError
from portal.rendering.claim import without_machinery
from portal.services import (
    approving,
    changing,
    delivering,
    holding,
    loading,
    observing,
    outbox,
    submitting,
    withdrawing,
)
from portal.services.errors import ServiceError
from tests.sample import actor, draft, load_sample, model_body, quota_body
from tests.services.planes import embedded_plane

FINAL_STATES = {state.value for state in FINAL}
TEAMS = {"search": ["ada", "ben", "erin"], "ads": ["carol"], "research": ["dave"]}
APPROVERS = ["erin", "frank", "heidi", "grace", "ivan"]


class Unreliable:
    """The control plane, whose next applies fail: before they came through, or after."""

    def __init__(self, plane: EmbeddedControlPlane) -> None:
        self._plane = plane
        self.faults: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plane, name)

    def apply(self, claim: dict[str, Any], *, force: bool = False) -> Applied:
        fault = self.faults.pop() if self.faults else ""
        if fault == "refused":
            raise TerminalError("claim-invalid", "it is not wanted here")
        if fault == "away":
            raise RetryableError("control-plane-down", "nobody answers")
        applied = self._plane.apply(claim, force=force)
        if fault == "unheard":
            raise RetryableError("timeout", "no answer in time")
        return applied


class Books(RuleBasedStateMachine):
    """The sample world, acted upon."""

    @initialize()
    def begin(self) -> None:
        self._empty()
        load_sample()
        self.plane = Unreliable(embedded_plane())
        self.finals: dict[str, str] = {}
        self.count = 0

    @rule(
        team=st.sampled_from(sorted(TEAMS)),
        gpus=st.integers(1, 5),
        environment=st.sampled_from(["dev", "prod"]),
        kind=st.sampled_from(["l4", "h100-80gb"]),
    )
    def submit(self, team: str, gpus: int, environment: str, kind: str) -> None:
        self.count += 1
        body = model_body(f"m-{self.count}", team=team, environment=environment, gpus=gpus)
        body["spec"] = {**body["spec"], "accelerator": {"class": kind, "count": 1}}
        submitting.submit(draft(body), acting=actor(TEAMS[team][0]))

    @rule(team=st.sampled_from(sorted(TEAMS)), limit=st.integers(0, 10), kind=st.sampled_from(["l4", "h100-80gb"]))
    def ask_for_a_quota(self, team: str, limit: int, kind: str) -> None:
        self.count += 1
        body = quota_body(limit, team, f"gpu.{kind}")
        self._allowed(lambda: submitting.submit(draft(body), acting=actor(TEAMS[team][0])))

    @rule(
        who=st.sampled_from(APPROVERS),
        answer=st.sampled_from(["approve", "approve", "approve", "reject"]),
        data=st.data(),
    )
    def vote(self, who: str, answer: str, data: st.DataObject) -> None:
        request = self._any(Request.objects.filter(state="Waiting"), data)
        if request is not None:
            self._allowed(lambda: approving.vote(request.pk, answer, "why", acting=actor(who)))

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        request = self._any(Request.objects.all(), data)
        if request is not None:
            self._allowed(lambda: withdrawing.withdraw(request.pk, acting=actor(request.requester.username)))

    @rule(
        data=st.data(),
        gpus=st.integers(1, 5),
        kind=st.sampled_from(["l4", "l4", "h100-80gb"]),
        context=st.sampled_from([4096, 8192]),
    )
    def ask_for_a_change(self, data: st.DataObject, gpus: int, kind: str, context: int) -> None:
        instance = self._any(Instance.objects.exclude(phase="Gone"), data)
        if instance is not None:
            spec = model_body(gpus=gpus)["spec"]
            spec = {**spec, "accelerator": {"class": kind, "count": 1}, "contextLength": context}
            body = {"kind": "Change", "instance": str(instance.pk), "spec": spec}
            who = actor(TEAMS[instance.team.slug][0])
            self._allowed(lambda: submitting.submit(draft(body), acting=who))

    @rule(data=st.data(), kind=st.sampled_from(["Suspend", "Resume"]))
    def suspend_or_resume(self, data: st.DataObject, kind: str) -> None:
        instance = self._any(Instance.objects.exclude(phase="Gone"), data)
        if instance is not None:
            body = {"kind": kind, "instance": str(instance.pk)}
            who = actor(TEAMS[instance.team.slug][0])
            self._allowed(lambda: submitting.submit(draft(body), acting=who))

    @rule(fault=st.sampled_from(["refused", "away", "unheard"]))
    def an_apply_will_fail(self, fault: str) -> None:
        self.plane.faults.append(fault)

    @rule(data=st.data())
    def ask_for_deletion(self, data: st.DataObject) -> None:
        instance = self._any(Instance.objects.exclude(phase="Gone"), data)
        if instance is not None:
            body = {"kind": "Delete", "instance": str(instance.pk)}
            who = actor(TEAMS[instance.team.slug][0])
            self._allowed(lambda: submitting.submit(draft(body), acting=who))

    @rule()
    def deliver(self) -> None:
        for row_id, lease in outbox.lease_due():
            with outbox.working(row_id, lease) as row:
                if row is None:
                    continue
                try:
                    if row.topic == "apply":
                        delivering.apply(row, lambda name: self.plane)
                    elif row.topic == "delete":
                        delivering.delete(row, lambda name: self.plane)
                except RetryableError as error:
                    if row.attempts < 3:
                        outbox.postpone(row, str(error))
                    else:
                        delivering.give_up(row, error)
        OutboxRow.objects.filter(done_at=None).update(due_at=timezone.now())

    @rule(ready=st.booleans())
    def observe(self, ready: bool) -> None:
        for claim in self.claims():
            observing.observe(as_ready(claim) if ready else claim)

    def claims(self) -> list[ObservedClaim]:
        return list(self.plane.list(self.plane_kinds())[0])

    @rule(data=st.data())
    def gone(self, data: st.DataObject) -> None:
        """A claim disappears, asked for or not."""
        instance = self._any(Instance.objects.exclude(phase="Gone").exclude(claim_uid=""), data)
        if instance is not None:
            observing.observe_gone(instance.pk, instance.claim_uid)

    @invariant()
    def nothing_overshoots(self) -> None:
        for row in Quota.objects.select_related("team"):
            assert 0 <= row.reserved + row.used <= row.limit, (row, row.reserved, row.used, row.limit)
            assert (row.reserved, row.used) == holding.held_below(row.team, row.dimension)
        for budget in Budget.objects.select_related("team"):
            assert budget.committed == holding.committed_below(budget.team)

    @invariant()
    def nothing_runs_that_is_not_held(self) -> None:
        for claim in self.claims() if hasattr(self, "plane") else ():
            instance = Instance.objects.select_related("document").get(pk=observing.instance_id_of(claim))
            if instance.phase == "Gone":
                continue  # it was said to be gone: what a test says is believed
            runs = loading.offering(instance.document).measure(without_machinery(claim.spec))
            held = holding.held_by(instance)
            assert all(held.get(dimension, 0) >= amount for dimension, amount in runs.items()), (runs, held)

    @invariant()
    def no_request_leaves_a_final_state(self) -> None:
        for pk, state in Request.objects.values_list("pk", "state"):
            before = self.finals.get(str(pk)) if hasattr(self, "finals") else None
            assert before is None or before == state, (pk, before, state)
            if state in FINAL_STATES:
                self.finals[str(pk)] = state

    @invariant()
    def each_step_has_its_one_event(self) -> None:
        for request in Request.objects.all():
            events = AuditEvent.objects.filter(request=request, verb__startswith="request.").order_by("id")
            steps = [(event.data["from"], event.data["to"]) for event in events]
            assert steps, f"{request} without an event"
            assert steps[0][0] == "Draft"
            assert steps[-1][1] == request.state
            assert all(one[1] == two[0] for one, two in pairwise(steps)), steps
            assert AuditEvent.objects.filter(request=request, verb="claim.apply").count() <= 1

    def teardown(self) -> None:
        """Requests end: what waits is withdrawn, the rest is delivered and seen. Then each instance holds what
        it was asked to be, and nothing else. Claims disappear, and nothing is held any more."""
        if not hasattr(self, "plane"):
            return
        self.plane.faults.clear()
        for request in Request.objects.filter(state__in=["Waiting", "Approved"]):
            withdrawing.withdraw(request.pk, acting=actor(request.requester.username))
        for _ in range(3):
            OutboxRow.objects.filter(done_at=None).update(leased_until=None)
            self.deliver()
        self.observe(ready=True)
        for claim in self.claims():
            self.exact(Instance.objects.select_related("document").get(pk=observing.instance_id_of(claim)), claim)
        for instance in Instance.objects.exclude(phase="Gone"):
            observing.observe_gone(instance.pk, instance.claim_uid)
        assert not Instance.objects.exclude(phase="Gone").exists()
        assert not Reservation.objects.exclude(state="released").exists()
        assert Quota.objects.aggregate(held=Sum("reserved") + Sum("used"))["held"] == 0
        assert all(committed == Decimal(0) for committed in Budget.objects.values_list("committed", flat=True))
        assert not Commitment.objects.filter(released=False).exists()

    @staticmethod
    def exact(instance: Instance, claim: ObservedClaim) -> None:
        if instance.phase not in ("Ready", "Suspended") or changing.REQUEST not in claim.annotations:
            return
        same = claim.annotations[changing.REQUEST] == str(changing.request_of(instance.claim))
        if same:  # else the last change was given up and never came through: both are held
            runs = loading.offering(instance.document).measure(without_machinery(claim.spec))
            assert holding.held_by(instance) == runs

    @staticmethod
    def plane_kinds() -> list:
        from tests.services.planes import model_kind

        return [model_kind()]

    @staticmethod
    def _any(rows, data: st.DataObject):
        found = list(rows.order_by("created_at"))  # the same order when Hypothesis plays a run again: ids are random
        return data.draw(st.sampled_from(found)) if found else None

    @staticmethod
    def _allowed(step) -> None:
        """A verb may refuse; then it has written nothing, which the invariants see."""
        with contextlib.suppress(ServiceError):
            step()

    @staticmethod
    def _empty() -> None:
        TransactionTestCase("__init__")._fixture_teardown()


def as_ready(claim: ObservedClaim) -> ObservedClaim:
    """That claim, as if all it composes were there."""
    conditions = [
        {"type": kind, "status": "True", "reason": "Available", "observedGeneration": claim.generation}
        for kind in ("Ready", "Synced")
    ]
    return dataclasses.replace(claim, status={**claim.status, "conditions": conditions})


class Changes(Books):
    """The same with two models that run, and little else to do than to change them: what is rare among all requests."""

    submit = ask_for_a_quota = None  # type: ignore[assignment]  # no rules here

    @initialize()
    def begin(self) -> None:
        super().begin()
        for team in Team.objects.filter(slug__in=["acme", "search"]):
            for dimension in ("gpu.l4", "gpu.h100-80gb"):
                holding.set_quota(team, dimension, 9)
        for name in ("one", "two"):
            submitting.submit(draft(model_body(name, gpus=2)), acting=actor("ada"))
        self.deliver()
        self.observe(ready=True)
        assert Instance.objects.filter(phase="Ready").count() == 2


def play(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=bool(os.environ.get("CI")),  # explore on a desk; CI judges the change, not the dice
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_the_books_are_always_right() -> None:
    play(Books, 20, 20)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_the_books_are_right_however_changes_meet() -> None:
    play(Changes, 20, 30)
