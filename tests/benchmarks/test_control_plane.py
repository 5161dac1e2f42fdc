"""The portal on the real core: how long from approval to applied, to Ready, to its own row; a burst; the mirror's cost.

Steps are read from the audit log of the portal that ran them. Beside the burst, the same number of bare server-side
applies: by the same client, with as many threads as the worker has processes.
"""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from portal.adapters.kubernetes import KubernetesControlPlane
from portal.running.crossplane.kube import Api, Object
from portal.running.crossplane.layout import CONTROL_PLANE
from portal.running.crossplane.plan import LocalControlPlane
from portal.running.plan import ROOT
from tests.benchmarks.conftest import Size
from tests.benchmarks.timing import Timing, show
from tests.e2e.remains import Clusters
from tests.e2e.scratch import body
from tests.front import Front

pytestmark = [pytest.mark.crossplane, pytest.mark.go, pytest.mark.slow, pytest.mark.timeout(1800)]
GROUP = "aiplatform.example.org/v1alpha1"
NAMESPACE = "lab-dev"
WORKERS = 2  # processes of the worker: WORKER_CONCURRENCY's default
TICKS = os.sysconf("SC_CLK_TCK")


def steps(front: Front, prefix: str, before: tuple[str, ...], after: str) -> list[float]:
    """Milliseconds between two steps of each request for an instance whose name begins so."""
    query = """
        SELECT EXTRACT(EPOCH FROM later.at - earlier.at) * 1000
        FROM portal_request r
        JOIN portal_auditevent earlier ON earlier.request_id = r.id AND earlier.verb = ANY(%s)
        JOIN portal_auditevent later ON later.request_id = r.id AND later.verb = %s
        WHERE r.name LIKE %s"""
    return [float(row[0]) for row in front.rows(query, list(before), after, f"{prefix}-%")]


def remove(clusters: Clusters, prefix: str) -> None:
    """By an administrator: what was measured with is in nobody's way."""
    admin = clusters.apis[CONTROL_PLANE]
    for item in admin.items(GROUP, "ScratchSpace", NAMESPACE):
        if item["metadata"]["name"].startswith(prefix):
            admin.delete(item)


def test_from_approval_to_ready(front: Front, clusters: Clusters, size: Size) -> None:
    count = 100 if size.full else 5
    for number in range(count):
        front.done(front.submit("ada", body(f"figure-{number}")), 60)
    applied = Timing("approval to applied", steps(front, "figure", ("request.allow", "request.approve"), "claim.apply"))
    ready = Timing("applied to Ready seen", steps(front, "figure", ("claim.apply",), "request.finish"))
    noticed = Timing("claim change to the portal's row", list(_noticed(front, clusters, count)))
    rows = [
        (each.name, str(len(each.times)), f"{each.p50:.0f}", f"{each.p95:.0f}") for each in (applied, ready, noticed)
    ]
    show("One request after the other, on the real core", ("", "requests", "p50 ms", "p95 ms"), rows)
    remove(clusters, "figure")
    assert applied.p50 < 20_000
    assert ready.p50 < 30_000
    assert noticed.p50 < 10_000


def _noticed(front: Front, clusters: Clusters, count: int) -> Iterator[float]:
    """Milliseconds from a change's answer to the portal's row that has it."""
    admin = clusters.apis[CONTROL_PLANE]
    with psycopg.connect(front.portal.database_url, autocommit=True) as database:
        for number in range(count):
            head: Object = {"apiVersion": GROUP, "kind": "ScratchSpace"}
            meta = {"name": f"figure-{number}", "namespace": NAMESPACE, "labels": {"measured": str(time.time_ns())}}
            changed = admin.apply({**head, "metadata": meta}, manager="benchmark")
            begin, version = time.perf_counter(), int(changed["metadata"]["resourceVersion"])
            query = "SELECT observed->>'resourceVersion' FROM portal_instance WHERE name = %s AND phase <> 'Gone'"
            while int(database.execute(query, (meta["name"],)).fetchone()[0] or 0) < version:  # type: ignore[index]
                assert time.perf_counter() - begin < 90, "not noticed"
                time.sleep(0.002)
            yield (time.perf_counter() - begin) * 1000


@contextmanager
def held(group: int) -> Iterator[None]:
    """A process group that does nothing for a while."""
    os.killpg(group, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(group, signal.SIGCONT)


def test_a_burst(front: Front, plane: LocalControlPlane, clusters: Clusters, size: Size) -> None:
    count = 200 if size.full else 10
    asked = []
    with held(front.portal.supervisor.pids()["worker"]):
        for number in range(count):
            asked.append(front.submit("ada", body(f"burst-{number}")))
    for request in asked:
        front.done(request, 600)
    query = """SELECT EXTRACT(EPOCH FROM max(later.at) - min(earlier.at)) FROM portal_request r
        JOIN portal_auditevent earlier ON earlier.request_id = r.id AND earlier.verb = 'request.deliver'
        JOIN portal_auditevent later ON later.request_id = r.id AND later.verb = 'claim.apply'
        WHERE r.name LIKE 'burst-%%'"""
    portal = float(front.rows(query)[0][0])
    (template,) = front.rows("SELECT claim FROM portal_instance WHERE name = 'burst-0'")
    bare = _bare(plane, template[0], count)
    rows = [
        ("portal: decide again, sign, apply, record", f"{portal:.1f}", f"{count / portal:.0f}", f"{portal / bare:.1f}"),
        ("bare server-side applies", f"{bare:.1f}", f"{count / bare:.0f}", "1"),
    ]
    show(f"{count} approvals at once, {WORKERS} workers", ("", "s", "a second", "ratio"), rows)
    remove(clusters, "burst")
    remove(clusters, "bare")
    assert portal < 100 * bare


def _bare(plane: LocalControlPlane, template: dict[str, Any], count: int) -> float:
    """Seconds for as many applies of like claims, with nothing around them."""
    client = KubernetesControlPlane("crossplane", plane.kubeconfig, None)

    def claim(number: int) -> dict[str, Any]:
        made = copy.deepcopy(template)
        made["metadata"]["name"] = f"bare-{number}"
        made["metadata"]["labels"]["portal.aiplatform.example.org/instance"] = str(uuid.uuid4())
        return made

    claims = [claim(number) for number in range(count)]
    client.apply(claims[0])  # connections are made
    begin = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(client.apply, claims))
    return time.perf_counter() - begin


def test_what_the_mirror_costs(front: Front, clusters: Clusters, size: Size) -> None:
    front.done(front.submit("ada", body("mirrored-0")), 60)
    rows = []
    made = 1
    for count in (1_000, 5_000) if size.full else (50,):
        _fill(front, clusters.apis[CONTROL_PLANE], made, count)
        made = count
        rows.append((f"{count}", *_mirror(front, count)))
    header = (
        "claims",
        "list, compare and record all: CPU s",
        "list and compare again: CPU s",
        "idle: CPU s a minute",
        "memory MB",
    )
    show("A mirror of its own, started anew", header, rows)
    remove(clusters, "mirrored")


def _fill(front: Front, admin: Api, made: int, count: int) -> None:
    """Claims that the core leaves alone (paused), and their instances: copies of the first."""
    (template, instance) = front.rows("SELECT claim, id FROM portal_instance WHERE name = 'mirrored-0'")[0]
    columns = front.rows(
        "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns WHERE table_name = "
        "'portal_instance' AND column_name NOT IN ('id', 'name', 'claim', 'claim_uid', 'observed')"
    )[0][0]

    def one(number: int) -> tuple[Any, ...]:
        claim = copy.deepcopy(template)
        name, own = f"mirrored-{number}", str(uuid.uuid4())
        claim["metadata"]["name"] = name
        claim["metadata"]["labels"]["portal.aiplatform.example.org/instance"] = own
        claim["metadata"]["annotations"]["crossplane.io/paused"] = "true"
        live = admin.apply(claim, manager="portal")
        return own, name, Jsonb(claim), live["metadata"]["uid"], Jsonb({}), instance

    with ThreadPoolExecutor(8) as pool:
        values = list(pool.map(one, range(made, count)))
    with psycopg.connect(front.portal.database_url) as database, database.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO portal_instance (id, name, claim, claim_uid, observed, {columns}) "  # noqa: S608
            f"SELECT %s, %s, %s, %s, %s, {columns} FROM portal_instance WHERE id = %s",
            values,
        )


def _mirror(front: Front, count: int) -> tuple[str, str, str, str]:
    """CPU seconds of a first full comparison, of one later, and of a minute without changes; resident memory in MB."""
    os.kill(front.portal.supervisor.pids()["mirror"], signal.SIGSTOP)  # one that leads would make this one wait
    own = Path(front.portal.environment["PORTAL_STATE_DIR"]) / "measured"
    environment = {**front.portal.environment, "PORTAL_STATE_DIR": str(own)}
    try:
        first = _cycles(environment, 1)
        both = _cycles(environment, 2)
        idle = _cycles(environment, 1, watch=60.0)
    finally:
        os.kill(front.portal.supervisor.pids()["mirror"], signal.SIGCONT)
    again = both["cpu"] - first["cpu"]
    return f"{first['cpu']:.1f}", f"{again:.1f}", f"{idle['watch']:.1f}", f"{first['memory']:.0f}"


def _cycles(environment: dict[str, str], rounds: int, watch: float = 0.2) -> dict[str, float]:
    """A mirror in a process of its own that lists and compares so often, and then watches for a while."""
    script = ROOT / "tests" / "benchmarks" / "mirror_rounds.py"
    command = [sys.executable, str(script), str(rounds), str(watch)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))
