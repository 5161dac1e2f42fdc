"""Hypothesis lets changes of one instance meet in any order: asked for, voted on, withdrawn, delivered, lost on their
way, refused, observed late or never, overtaken by others, suspended, resumed, deleted.

After each step: no quota line overshoots, counters are those of the rows behind them, and the instance holds at least
what its claim may be running (the last spec that was observed as asked, and every one that was sent since), and no more
than that and what may still come. At the end: what is observed as asked holds and costs exactly that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal import tasks
from portal.domain.lifecycle import OPEN
from portal.models import Budget, Instance, Quota, Request, Team
from portal.ports import Applied, RetryableError, TerminalError
from portal.rendering.claim import without_machinery
from portal.services import approving, delivering, holding, loading, observing, withdrawing
from portal.services.errors import ServiceError
from tests.sample import MODEL_SPEC, actor, model_body
from tests.services.deliveries import Plane, fresh, instance_of, observed, submit, work

pytestmark = pytest.mark.django_db

Step = tuple[Any, ...]
CHANGE = st.tuples(
    st.just("change"), st.integers(1, 4), st.sampled_from(["l4", "l4", "h100-80gb"]), st.sampled_from([4096, 8192])
)
STEPS: st.SearchStrategy[Step] = st.one_of(
    CHANGE,
    CHANGE,
    st.tuples(st.sampled_from(["suspend", "resume"])),
    st.tuples(st.sampled_from(["withdraw", "approve", "reject"])),
    st.tuples(st.just("deliver")),
    st.tuples(st.just("deliver")),
    st.tuples(st.just("observe"), st.booleans()),
    st.tuples(st.just("fault"), st.sampled_from(["refused", "away", "unheard"])),
)


class Recording(Plane):
    """Remembers what was sent to it: that may run from then on."""

    faults: list[str]
    sent: list[dict[str, Any]]

    def __init__(self) -> None:
        super().__init__()
        self.faults, self.sent = [], []

    def apply(self, claim: dict[str, Any], *, force: bool = False) -> Applied:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "refused":
            raise TerminalError("claim-invalid", "it is not wanted here")
        if fault == "away":
            raise RetryableError("control-plane-down", "nobody answers")
        self.sent.append(without_machinery(claim["spec"]))
        applied = super().apply(claim)
        if fault == "unheard":
            raise RetryableError("timeout", "no answer in time")
        return applied


class Play:
    """One instance, and what happens to it."""

    def __init__(self, plane: Recording) -> None:
        self.plane = plane
        self.creation = submit("ada", model_body(gpus=2))
        work()
        self.observe(True)
        assert self.instance.phase == "Ready"

    @property
    def instance(self) -> Instance:
        return instance_of(self.creation)

    def take(self, step: Step) -> None:
        name, *how = step
        with contextlib.suppress(ServiceError):  # a verb may refuse; then it has written nothing, which the checks see
            getattr(self, name)(*how)
        self.check()

    def change(self, gpus: int, accelerator: str, context: int) -> None:
        spec = {**MODEL_SPEC, "replicas": {"min": 1, "max": gpus}, "contextLength": context}
        spec["accelerator"] = {"class": accelerator, "count": 1}
        submit("ada", {"kind": "Change", "instance": str(self.instance.pk), "spec": spec})

    def suspend(self) -> None:
        submit("ada", {"kind": "Suspend", "instance": str(self.instance.pk)})

    def resume(self) -> None:
        submit("ada", {"kind": "Resume", "instance": str(self.instance.pk)})

    def withdraw(self) -> None:
        for request in self.instance.requests.filter(state__in=["Waiting", "Approved"]):
            withdrawing.withdraw(request.pk, acting=actor("ada"))

    def approve(self) -> None:
        self.vote("approve")

    def reject(self) -> None:
        self.vote("reject")

    def vote(self, answer: approving.Answer) -> None:
        for request in self.instance.requests.filter(state="Waiting"):
            for who in ("frank", "grace"):
                with contextlib.suppress(ServiceError):
                    approving.vote(request.pk, answer, "why", acting=actor(who))

    def deliver(self) -> None:
        work()

    def fault(self, kind: str) -> None:
        self.plane.faults.append(kind)

    def observe(self, ready: bool) -> None:
        ref = delivering.claim_ref(self.instance)
        uid, claim = self.plane.claims[ref.namespace, ref.name]
        observing.observe(observed(ref, uid, claim, ready=ready))
        if ready:
            self.plane.sent = [without_machinery(claim["spec"])]

    def measured(self, spec: dict[str, Any]) -> dict[str, int]:
        return loading.offering(self.instance.document).measure(spec)

    def check(self) -> None:
        for row in Quota.objects.select_related("team"):
            assert 0 <= row.reserved + row.used <= row.limit, (row, row.reserved, row.used, row.limit)
            assert (row.reserved, row.used) == holding.held_below(row.team, row.dimension)
        for budget in Budget.objects.select_related("team"):
            assert budget.committed == holding.committed_below(budget.team)
        held = holding.held_by(self.instance)
        for spec in self.plane.sent:
            runs = self.measured(spec)
            assert all(held.get(dimension, 0) >= amount for dimension, amount in runs.items()), (runs, held)
            assert holding.committed_of(self.instance) >= price(runs)
        may = [*self.plane.sent, *(request.spec for request in self.instance.requests.all() if may_come(request))]
        ceiling = [self.measured(spec) for spec in may]
        for dimension, amount in held.items():
            assert amount <= max(each.get(dimension, 0) for each in ceiling), (dimension, amount, ceiling)

    def end(self) -> None:
        """What waits is withdrawn, what was sent is seen: then nothing is held but what runs. A last change says what
        that is, where the last that came through is not the last that was approved (it was given up on its way)."""
        self.plane.faults.clear()
        self.withdraw()
        for _ in range(3):
            work()
        self.observe(True)
        self.check()
        with contextlib.suppress(ServiceError):
            self.change(1, "l4", 2048)
            self.approve()
        work()
        self.observe(True)
        assert not self.instance.requests.filter(state__in=[state.value for state in OPEN]).exists()
        (runs,) = map(self.measured, self.plane.sent)
        assert holding.held_by(self.instance) == runs
        assert holding.committed_of(self.instance) == price(runs)

    def delete(self) -> None:
        submit("ada", {"kind": "Delete", "instance": str(self.instance.pk)})
        work()
        assert observing.observe_gone(self.instance.pk)
        assert holding.held_by(self.instance) == {}
        assert {(row.reserved, row.used) for row in Quota.objects.all()} == {(0, 0)}
        assert set(Budget.objects.values_list("committed", flat=True)) == {Decimal(0)}
        assert not Request.objects.filter(state__in=[state.value for state in OPEN]).exists()


def may_come(request: Request) -> bool:
    """Whether it may still be delivered, or may have been without anybody hearing of it."""
    unheard = request.state == "Failed" and request.failure_code != "claim-invalid"
    return unheard or request.state in {"Waiting", "Approved", "Delivering", "Superseded"}


PRICES = {"gpu.l4": Decimal("584.00"), "gpu.h100-80gb": Decimal("2912.70")}  # a month, the dearest region


def price(runs: dict[str, int]) -> Decimal:
    return sum((PRICES[dimension] * amount for dimension, amount in runs.items()), Decimal(0))


@contextlib.contextmanager
def undone() -> Iterator[None]:
    """What is done in it is not there afterwards."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def world(sample: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> pytest.MonkeyPatch:
    settings.OUTBOX_MAX_ATTEMPTS = 3
    for team in Team.objects.filter(slug__in=["acme", "search"]):
        for dimension in ("gpu.l4", "gpu.h100-80gb"):
            holding.set_quota(team, dimension, 5)
    return monkeypatch


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),  # explore on a desk; CI judges the change, not the dice
    suppress_health_check=list(HealthCheck),
)
@given(steps=st.lists(STEPS, min_size=6, max_size=24), then_delete=st.booleans())
def test_what_is_held_is_right_however_changes_meet(
    world: pytest.MonkeyPatch, steps: list[Step], then_delete: bool
) -> None:
    with undone():
        plane = Recording()
        world.setattr(tasks, "control_plane", lambda name: plane)
        play = Play(plane)
        for step in steps:
            play.take(step)
        if then_delete:
            play.delete()
        else:
            play.end()
        assert fresh(play.creation).state in {"Done", "Superseded"}
