"""Hypothesis plays teams, approvers, workers and a control plane in any order, and looks at the books after each step.

What must always hold: reserved + used <= limit on every row; counters equal the rows behind them; no request leaves a
final state; each step has its one audit event; once everything is gone nothing is held.
"""

from __future__ import annotations

import contextlib
import os
from decimal import Decimal
from itertools import pairwise

import pytest
from django.db.models import Sum
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from portal.domain.lifecycle import FINAL
from portal.models import AuditEvent, Budget, Commitment, Instance, OutboxRow, Quota, Request, Reservation
from portal.services import approving, delivering, holding, observing, outbox, submitting, withdrawing
from portal.services.errors import ServiceError
from tests.sample import actor, draft, load_sample, model_body, quota_body
from tests.services.planes import embedded_plane

FINAL_STATES = {state.value for state in FINAL}
TEAMS = {"search": ["ada", "ben", "erin"], "ads": ["carol"], "research": ["dave"]}
APPROVERS = ["erin", "frank", "heidi", "grace", "ivan"]


class Books(RuleBasedStateMachine):
    """The sample world, acted upon."""

    @initialize()
    def begin(self) -> None:
        self._empty()
        load_sample()
        self.plane = embedded_plane()
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
                if row.topic == "apply":
                    delivering.apply(row, lambda name: self.plane)
                elif row.topic == "delete":
                    delivering.delete(row, lambda name: self.plane)

    @rule()
    def observe(self) -> None:
        for claim in self.plane.list(self.plane_kinds())[0]:
            observing.observe(claim)

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
        """Everything ends: open requests are withdrawn, claims disappear; then nothing is held any more."""
        if not hasattr(self, "plane"):
            return
        for request in Request.objects.filter(state__in=["Waiting", "Approved"]):
            withdrawing.withdraw(request.pk, acting=actor(request.requester.username))
        for _ in range(3):
            OutboxRow.objects.filter(done_at=None).update(leased_until=None)
            self.deliver()
        for instance in Instance.objects.exclude(phase="Gone"):
            observing.observe_gone(instance.pk, instance.claim_uid)
        assert not Instance.objects.exclude(phase="Gone").exists()
        assert not Reservation.objects.exclude(state="released").exists()
        assert Quota.objects.aggregate(held=Sum("reserved") + Sum("used"))["held"] == 0
        assert all(committed == Decimal(0) for committed in Budget.objects.values_list("committed", flat=True))
        assert not Commitment.objects.filter(released=False).exists()

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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.django_db(transaction=True)
def test_the_books_are_always_right() -> None:
    run_state_machine_as_test(
        Books,
        settings=settings(
            max_examples=20,
            stateful_step_count=20,
            deadline=None,
            derandomize=bool(os.environ.get("CI")),  # explore on a desk; CI judges the change, not the dice
            suppress_health_check=list(HealthCheck),
        ),
    )
