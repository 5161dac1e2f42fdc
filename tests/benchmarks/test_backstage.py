"""With a real Backstage: how long from a click to a request, from an approval and from Ready to what its catalog shows;
and what keeping that catalog up costs, read anew, changed, and idle.

Times are of one clock: the portal's steps from its audit log, Backstage's by asking its catalog all the time. Rows of
the feed are filled in directly, as copies of a real instance's.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import conninfo

from portal.rendering.names import ANNOTATION_PREFIX
from tests.backstage import VALUES, Backend, Town, until
from tests.benchmarks.conftest import Size
from tests.benchmarks.timing import Timing, show

pytestmark = [pytest.mark.backstage, pytest.mark.slow, pytest.mark.timeout(3600)]
LOOK_EVERY = 0.02  # seconds
OFFERING = "vectordatabases"
TEMPLATE = "bench-template"  # the instance whose rows are copied
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Watch:
    """Asks Backstage's catalog all the time and notes when each instance was first seen, and first seen Ready."""

    backend: Backend
    seen: dict[str, float] = field(default_factory=dict)
    ready: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self) -> Iterator[Watch]:
        over = threading.Event()
        thread = threading.Thread(target=self._look, args=[over], daemon=True)
        thread.start()
        yield self
        over.set()
        thread.join()

    def _look(self, over: threading.Event) -> None:
        label, state = f"{ANNOTATION_PREFIX}instance", f"{ANNOTATION_PREFIX}state"
        kinds = f"kind=Component,metadata.labels.{label}", f"kind=Resource,metadata.labels.{label}"
        query = {"filter": list(kinds), "fields": "metadata.labels,metadata.annotations", "limit": "500"}
        headers = {"Authorization": f"Bearer {self.backend.at.token}"}
        url = f"{self.backend.url}/api/catalog/entities/by-query"
        with httpx.Client(headers=headers, timeout=30) as client:
            while not over.wait(LOOK_EVERY):
                items = client.get(url, params=query).raise_for_status().json()["items"]
                now = time.time()
                for metadata in (item["metadata"] for item in items):
                    instance = metadata["labels"][label]
                    self.seen.setdefault(instance, now)
                    if metadata["annotations"].get(state) == "Ready":
                        self.ready.setdefault(instance, now)


def test_from_a_click_to_the_catalog(town: Town, size: Size) -> None:
    count = 100 if size.full else 5
    asked, approved, ready = [], [], []
    with Watch(town.backend)() as watch:
        for number in range(count):
            name = f"bench-{number}"
            clicked = time.time()
            town.backend.start_task("ada", f"portal-{OFFERING}-request", VALUES[OFFERING](name))
            request, instance, created = until(lambda it=name: _request(town, it), "the request is there")
            town.done(town.request(request))
            until(lambda it=instance: it in watch.ready, "it is Ready in the catalog")
            asked.append((created - clicked) * 1000)
            approved.append((watch.seen[instance] - _at(town, request, "request.allow")) * 1000)
            ready.append((watch.ready[instance] - _at(town, request, "request.finish")) * 1000)
    timings = [
        Timing("click to request", asked),
        Timing("approval to entity", approved),
        Timing("Ready to entity", ready),
    ]
    rows = [(it.name, str(len(it.times)), f"{it.p50:.0f}", f"{it.p95:.0f}") for it in timings]
    show("One template after the other, in a real Backstage", ("", "requests", "p50 ms", "p95 ms"), rows)
    assert all(timing.p50 < 10_000 for timing in timings)


def _request(town: Town, name: str) -> tuple[str, str, float] | None:
    """Id, instance and time of creation, in seconds since 1970, of the request of that name."""
    query = """SELECT id::text, instance_id::text, EXTRACT(EPOCH FROM created_at)
        FROM portal_request WHERE name = %s AND instance_id IS NOT NULL"""
    found = town.rows(query, name)
    return (found[0][0], found[0][1], float(found[0][2])) if found else None


def _at(town: Town, request: str, verb: str) -> float:
    query = "SELECT EXTRACT(EPOCH FROM at) FROM portal_auditevent WHERE request_id = %s AND verb = %s"
    return float(town.rows(query, request, verb)[0][0])


def test_what_the_catalog_costs(town: Town, size: Size) -> None:
    instance = town.made(TEMPLATE)
    town.in_catalog(instance)
    rows = []
    for count in (10, 500, 5_000) if size.full else (10, 50):
        _fill(town, instance, count)
        rows.append((str(count), *_cost(town, count, 60 if size.full else 5)))
    header = (
        "instances",
        "entities",
        "read anew: s",
        "of it CPU: s (portal, Backstage)",
        "a change: ms",
        "idle: CPU s a minute (portal, Backstage)",
    )
    show("Keeping Backstage's catalog up", header, rows)
    _empty(town)


def _cost(town: Town, count: int, idle_seconds: float) -> tuple[str, ...]:
    entities = town.rows("SELECT count(*) FROM portal_feedentity WHERE entity IS NOT NULL")[0][0]
    town.backend.stop()
    _forget(town)
    web = _cpu(town.portal.supervisor.pids()["web"])
    began = time.monotonic()
    town.backend.start()
    until(lambda: _count(town.backend) >= entities, f"all {entities} are in the catalog", 1800)
    anew = time.monotonic() - began
    of_it = _cpu(town.portal.supervisor.pids()["web"]) - web, _cpu(_backstage(town))
    change = _timed(lambda: _touch(town))
    time.sleep(2)
    before = _cpu(town.portal.supervisor.pids()["web"]), _cpu(_backstage(town))
    time.sleep(idle_seconds)
    after = _cpu(town.portal.supervisor.pids()["web"]), _cpu(_backstage(town))
    idle = [(end - begin) * 60 / idle_seconds for begin, end in zip(before, after, strict=True)]
    return (
        str(entities),
        f"{anew:.1f}",
        f"{of_it[0]:.1f}, {of_it[1]:.1f}",
        f"{change:.0f}",
        f"{idle[0]:.2f}, {idle[1]:.2f}",
    )


def _timed(act: Callable[[], None]) -> float:
    began = time.monotonic()
    act()
    return (time.monotonic() - began) * 1000


def _touch(town: Town) -> None:
    """One entity is published again, and seen in Backstage."""
    title = f"touched {uuid.uuid4().hex[:8]}"
    with psycopg.connect(town.portal.database_url) as connection:
        sequence = _next(connection, 1)
        connection.execute(
            "UPDATE portal_feedentity SET sequence = %s, entity = jsonb_set(entity, '{metadata,title}', %s::jsonb) "
            "WHERE ref LIKE 'resource:%%' AND ref LIKE '%%bench-00001%%'",
            [sequence, json.dumps(title)],
        )
    until(lambda: town.backend.entities(f"metadata.title={title}"), "the change is in the catalog", 120)


def _fill(town: Town, instance: str, count: int) -> None:
    """So many instances in the feed: copies of what one has there."""
    with psycopg.connect(town.portal.database_url) as connection:
        own = connection.execute(
            "SELECT ref, entity::text FROM portal_feedentity WHERE instance_id = %s AND entity IS NOT NULL "
            "AND (ref LIKE '%%' || %s || '%%') ORDER BY sequence",
            [instance, TEMPLATE],
        ).fetchall()
        assert own, "what is copied is there"
        have = connection.execute(
            "SELECT count(*) FROM portal_feedentity WHERE ref LIKE '%%bench-0%%' AND ref LIKE 'resource:%%'"
        ).fetchone()
        start = have[0] if have else 0
        sequence = _next(connection, (count - start) * len(own))
        values = []
        for number in range(start, count):
            name, key = f"bench-{number:05}", str(uuid.uuid4())
            for ref, entity in own:
                changed = entity.replace(TEMPLATE, name).replace(instance, key)
                values.append((ref.replace(TEMPLATE, name), instance, changed, sequence))
                sequence += 1
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO portal_feedentity (ref, instance_id, entity, sequence, published_at) "
                "VALUES (%s, %s, %s, %s, now())",
                values,
            )


def _next(connection: psycopg.Connection, count: int) -> int:
    """The first of so many new sequence numbers."""
    row = connection.execute(
        "UPDATE portal_feedhead SET sequence = sequence + %s WHERE id = 1 RETURNING sequence", [count]
    ).fetchone()
    assert row is not None
    return int(row[0]) - count + 1


def _empty(town: Town) -> None:
    """What was filled in leaves the feed as it would if it were deleted."""
    with psycopg.connect(town.portal.database_url) as connection:
        found = connection.execute("SELECT id FROM portal_feedentity WHERE ref LIKE '%%bench-0%%'").fetchall()
        sequence = _next(connection, len(found))
        with connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE portal_feedentity SET entity = NULL, sequence = %s WHERE id = %s",
                [(sequence + offset, row[0]) for offset, row in enumerate(found)],
            )


def _forget(town: Town) -> None:
    """Backstage knows nothing from the portal at its next start; people and templates stay."""
    catalog = conninfo.make_conninfo(town.portal.database_url, dbname=f"{town.backend.options.database_prefix}catalog")
    with psycopg.connect(catalog) as connection:
        connection.execute(
            "DELETE FROM refresh_state WHERE unprocessed_entity LIKE %s", [f"%{ANNOTATION_PREFIX}instance%"]
        )


def _count(backend: Backend) -> int:
    """Entities from the portal in its catalog, as far as they can be found."""
    query = {"filter": f"metadata.labels.{ANNOTATION_PREFIX}instance", "limit": 0}
    return int(backend.get("portal", "catalog/entities/by-query", **query)["totalItems"])


def _backstage(town: Town) -> int:
    assert town.backend.running is not None
    return next(iter(town.backend.running.supervisor.pids().values()))


def _cpu(pid: int) -> float:
    """Seconds of processor time of a process and its children, those that have ended too."""
    total = 0.0
    for path in [Path(f"/proc/{pid}/stat"), *_children(pid)]:
        fields = path.read_text().rpartition(")")[2].split()
        total += sum(int(field) for field in fields[11:15]) / TICKS
    return total


def _children(pid: int) -> list[Path]:
    return [Path(f"/proc/{child}/stat") for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
