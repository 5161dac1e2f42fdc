"""Leases and lanes: who gets which row, in which order, how often, and what becomes of one that can't be done."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connections, transaction
from django.utils import timezone

from portal.models import OutboxRow
from portal.services import outbox

pytestmark = pytest.mark.django_db


def put(lane: str, topic: str = "apply", *, urgent: bool = False) -> int:
    with transaction.atomic():
        return outbox.put(lane, topic, {}, urgent=urgent).pk


def leased() -> list[int]:
    return [pk for pk, _ in outbox.lease_due()]


def lease_of(pk: int) -> uuid.UUID:
    lease = OutboxRow.objects.get(pk=pk).lease
    assert lease is not None
    return lease


def done(pk: int) -> None:
    with outbox.working(pk, lease_of(pk)) as row, transaction.atomic():
        assert row is not None
        outbox.acknowledge(row)


def its_lease_runs_out(pk: int) -> None:
    OutboxRow.objects.filter(pk=pk).update(leased_until=timezone.now() - dt.timedelta(seconds=1))


def waits_until_later(pk: int) -> None:
    OutboxRow.objects.filter(pk=pk).update(due_at=timezone.now() + dt.timedelta(hours=1))


@pytest.mark.django_db(transaction=True)
def test_a_row_outside_of_a_transaction_is_refused() -> None:
    """It would be there although what wanted it was rolled back."""
    with pytest.raises(RuntimeError, match="outside of a transaction"):
        outbox.put("a", "apply", {})
    with pytest.raises(RuntimeError, match="transaction of the result"):
        outbox.acknowledge(OutboxRow(pk=1))


def test_a_leased_row_is_not_leased_again_until_its_lease_runs_out(db: None) -> None:
    row = put("a")
    assert leased() == [row]
    first = lease_of(row)
    assert leased() == []
    its_lease_runs_out(row)
    assert leased() == [row]
    assert lease_of(row) != first


def test_a_lane_goes_in_order_one_at_a_time(db: None) -> None:
    one, two, three = put("a"), put("a"), put("a")
    assert leased() == [one]
    assert leased() == [], "the second waits while the first is at work"
    done(one)
    assert leased() == [two]
    waits_until_later(two)
    its_lease_runs_out(two)
    assert leased() == [], "the third waits while the second is postponed"
    OutboxRow.objects.filter(pk=two).update(due_at=timezone.now())
    assert leased() == [two]
    done(two)
    assert leased() == [three]


def test_lanes_do_not_hold_each_other_up(db: None) -> None:
    stuck, behind, other = put("a"), put("a"), put("b")
    waits_until_later(stuck)
    assert leased() == [other]
    assert OutboxRow.objects.get(pk=behind).lease is None


def test_an_urgent_row_overtakes_a_postponed_one_and_not_one_at_work(db: None) -> None:
    apply = put("a")
    assert leased() == [apply]
    delete = put("a", "delete", urgent=True)
    assert leased() == [], "what is at work is not overtaken"
    waits_until_later(apply)
    OutboxRow.objects.filter(pk=apply).update(lease=None, leased_until=None)
    assert leased() == [delete]


def test_no_more_than_the_limit_at_once(db: None) -> None:
    rows = [put(f"lane-{number}") for number in range(5)]
    assert [pk for pk, _ in outbox.lease_due(limit=2)] == rows[:2]
    assert leased() == rows[2:]


def test_an_old_lease_can_do_nothing_any_more(db: None) -> None:
    """The first worker was slow; by now another has the row."""
    pk = put("a")
    leased()
    with outbox.working(pk, lease_of(pk)) as slow:
        assert slow is not None
        its_lease_runs_out(pk)
        assert leased() == [pk]
        with pytest.raises(outbox.LeaseLost), transaction.atomic():
            outbox.acknowledge(slow)
        assert outbox.postpone(slow, "too late")
    row = OutboxRow.objects.get(pk=pk)
    assert (row.done_at, row.last_error) == (None, "")
    assert row.lease is not None
    assert row.lease != slow.lease
    with outbox.working(pk, slow.lease or uuid.uuid4()) as again:
        assert again is None


def test_what_is_done_or_cancelled_is_nobodys(db: None) -> None:
    finished, cancelled = put("a"), put("b")
    leased()
    lease = lease_of(finished)
    done(finished)
    assert outbox.cancel("b", topics=["delete"]) == 0
    assert outbox.cancel("b", topics=["apply"]) == 1
    for pk, its_lease in ((finished, lease), (cancelled, lease_of(cancelled))):
        with outbox.working(pk, its_lease) as row:
            assert row is None
    assert leased() == []


@pytest.mark.parametrize(
    ("attempts", "retry_after", "seconds"),
    [
        pytest.param(1, None, 2, id="the first wait"),
        pytest.param(2, None, 4, id="doubled"),
        pytest.param(4, None, 16, id="doubled again and again"),
        pytest.param(6, None, 50, id="not longer than the limit"),
        pytest.param(1, 30, 30, id="the other side named a longer time"),
        pytest.param(4, 3, 16, id="the other side named a shorter time"),
    ],
)
def test_it_is_postponed_backing_off(
    db: None, settings: Any, attempts: int, retry_after: float | None, seconds: float
) -> None:
    settings.OUTBOX_BACKOFF_SECONDS, settings.OUTBOX_BACKOFF_LIMIT_SECONDS = 2, 50
    pk = put("a")
    leased()
    OutboxRow.objects.filter(pk=pk).update(attempts=attempts)
    assert outbox.postpone(OutboxRow.objects.get(pk=pk), "down", retry_after)
    row = OutboxRow.objects.get(pk=pk)
    assert abs((row.due_at - timezone.now()).total_seconds() - seconds) < 1.5
    assert (row.last_error, row.lease, row.leased_until) == ("down", None, None)
    assert leased() == []


def test_the_last_attempt_is_not_postponed(db: None, settings: Any) -> None:
    settings.OUTBOX_MAX_ATTEMPTS = 3
    pk = put("a")
    leased()
    for attempts, more in ((2, True), (3, False), (4, False)):
        OutboxRow.objects.filter(pk=pk).update(attempts=attempts)
        assert outbox.postpone(OutboxRow.objects.get(pk=pk), "down") is more, attempts


def test_each_attempt_counts_also_one_that_dies(db: None) -> None:
    """A row that kills its worker must end too."""
    pk = put("a")
    for attempts in (1, 2, 3):
        OutboxRow.objects.filter(pk=pk).update(leased_until=None)
        leased()
        with outbox.working(pk, lease_of(pk)) as row:
            assert row is not None
            assert row.attempts == attempts


@pytest.mark.django_db(transaction=True)
def test_rows_that_another_looks_at_are_skipped(database_url: str) -> None:
    held, free = put("a"), put("b")
    with psycopg.connect(database_url) as other:
        other.execute("SELECT 1 FROM portal_outboxrow WHERE id = %s FOR UPDATE", [held])
        assert leased() == [free], "without waiting"
    assert leased() == [held]


@pytest.mark.django_db(transaction=True)
def test_sweeps_at_once_lease_each_row_once() -> None:
    rows = [put(f"lane-{number % 20}") for number in range(40)]
    together = threading.Barrier(8)

    def sweep(_: int) -> list[int]:
        try:
            together.wait(timeout=30)
            return leased()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        found = [pk for swept in pool.map(sweep, range(8)) for pk in swept]
    assert len(found) == len(set(found))
    # What one sweep looked at is skipped by the others; the next sweep finds the rest.
    assert sorted([*found, *leased()]) == rows[:20], "the head of each lane, and nothing behind it"


@pytest.mark.django_db(transaction=True)
def test_a_row_is_worked_on_by_one_at_a_time() -> None:
    """The broker delivers a message twice: the second finds the lane taken, and later the row done."""
    pk = put("a")
    leased()
    lease = lease_of(pk)

    def second() -> bool:
        try:
            with outbox.working(pk, lease) as row:
                return row is not None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with outbox.working(pk, lease) as row:
            assert row is not None
            assert pool.submit(second).result() is False
            with transaction.atomic():
                outbox.acknowledge(row)
        assert pool.submit(second).result() is False
