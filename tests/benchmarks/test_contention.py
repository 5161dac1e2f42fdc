"""Everybody wants the same quota at once: submissions, against the one-statement reservation that is the least a
database can do for it.

The bare reservation takes an amount, notes it, and no more: `UPDATE … RETURNING` that feeds an `INSERT`, by psycopg. A
submission also checks and decides, and writes the instance, the request, its decision, the commitment, the counters of
the whole chain, two audit events and the outbox row.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import psycopg
import pytest
from django.db import connections

from portal.models import Quota, Reservation
from portal.services import submitting
from tests.benchmarks.conftest import Size
from tests.benchmarks.timing import frozen, show
from tests.sample import actor, draft, model_body

CLIENTS = (1, 8, 32)
SLICES = 4  # of the time that a number of clients has, ours and theirs in turn
TABLES = """
CREATE TABLE bare_quota (id int PRIMARY KEY, held bigint NOT NULL, ceiling bigint NOT NULL CHECK (held <= ceiling));
CREATE TABLE bare_held (id bigserial PRIMARY KEY, quota int NOT NULL REFERENCES bare_quota, amount bigint NOT NULL);
INSERT INTO bare_quota VALUES (1, 0, 1000000000000);
"""
RESERVE = """
WITH taken AS (
    UPDATE bare_quota SET held = held + %(amount)s WHERE id = 1 AND held + %(amount)s <= ceiling RETURNING id
)
INSERT INTO bare_held (quota, amount) SELECT id, %(amount)s FROM taken
"""
HEADER = ("connections", "submissions/s", "bare reservations/s", "ratio", "submissions, to one connection")
Client = Callable[[], AbstractContextManager[Callable[[], object]]]  # one connection, and what to do over it


@pytest.mark.slow
def test_submissions_for_one_quota(open_world: None, database_url: str, size: Size) -> None:
    ada = actor("ada")
    number = itertools.count()

    @contextmanager
    def submitter() -> Iterator[Callable[[], object]]:
        try:
            yield lambda: submitting.submit(draft(model_body(f"new-{next(number)}")), acting=ada)
        finally:
            connections.close_all()

    @contextmanager
    def reserver() -> Iterator[Callable[[], object]]:
        with psycopg.connect(database_url, autocommit=True) as connection:
            yield lambda: connection.execute(RESERVE, {"amount": 1})

    measured = {}
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(TABLES)
        try:
            for clients in CLIENTS:
                measured[clients] = _in_turn(submitter, reserver, clients, size.seconds)
        finally:
            connection.execute("DROP TABLE bare_held, bare_quota")
    alone = measured[1][0]
    rows = [
        (f"{clients}", f"{ours:.0f}", f"{theirs:.0f}", f"{theirs / ours:.0f}", f"{ours / alone:.2f}")
        for clients, (ours, theirs) in measured.items()
    ]
    show("Contended: all connections of one process want the same quota", HEADER, rows)
    held = Quota.objects.get(team__slug="search", dimension="gpu.l4").reserved
    assert held == Reservation.objects.count() == next(number)
    for ours, theirs in measured.values():
        assert theirs / ours < 2000  # some 150 on an idle machine, more where others want its processors too
        assert ours / alone > 0.05, "who waits for the row costs those who have it next to nothing"


def _in_turn(ours: Client, theirs: Client, clients: int, seconds: float) -> tuple[float, float]:
    """How often per second each of the two is done, by this many clients at once: medians over slices of the time."""
    done: dict[Client, list[float]] = {ours: [], theirs: []}
    for _ in range(SLICES):
        for client, rates in done.items():
            rates.append(_per_second(client, clients, seconds / SLICES))
    return statistics.median(done[ours]), statistics.median(done[theirs])


def _per_second(client: Client, clients: int, seconds: float) -> float:
    """Each client is a thread with a connection of its own."""
    together = threading.Barrier(clients)

    def work(_: int) -> float:
        with client() as step:
            step()
            together.wait(timeout=60)
            done, begin = 0, time.perf_counter()
            while time.perf_counter() - begin < seconds:
                step()
                done += 1
            return done / (time.perf_counter() - begin)

    with frozen(), ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(work, range(clients)))
