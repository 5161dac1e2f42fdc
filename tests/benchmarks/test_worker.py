"""A web worker as `manage.py serve` runs it: how long until its first answer, and how much memory is its own.

Beside it a bare one: the same server and the same settings of it, with Django, DRF and the bare view alone.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from portal.services.tokens import create_token
from tests.benchmarks.conftest import Size
from tests.benchmarks.filling import fill
from tests.benchmarks.timing import show

WORKERS = 2
HEADER = ("", "first answer s", "memory of a worker MB", "of which its own MB", "list of 50, p50 ms", "p95")


@dataclass
class Seen:
    """What was measured of one server."""

    first: float
    times: list[float]
    resident: float = 0
    own: float = 0
    name: str = field(default="")


@pytest.mark.slow
def test_a_web_worker(open_world: None, database_url: str, size: Size) -> None:
    fill(size.rows)
    token = create_token(User.objects.get(username="grace"), name="benchmark", scopes=["read"], days=1)
    portal = _measure("portal", "portal.settings", "/api/v1/requests/", database_url, token, size)
    bare = _measure("bare", "tests.benchmarks.bare_settings", "/bare/", database_url, token, size)
    rows = [
        (
            seen.name,
            f"{seen.first:.2f}",
            f"{seen.resident:.0f}",
            f"{seen.own:.0f}",
            f"{statistics.median(seen.times):.1f}",
            f"{statistics.quantiles(seen.times, n=20)[-1]:.1f}",
        )
        for seen in (portal, bare)
    ]
    show(f"gunicorn, {WORKERS} workers, one client, {size.rows} requests", HEADER, rows)
    assert portal.resident < 10 * bare.resident
    assert portal.first < 10 * bare.first


def _measure(name: str, module: str, path: str, database_url: str, token: str, size: Size) -> Seen:
    with _server(module, database_url) as (address, process):
        begin = time.perf_counter()
        _wait(f"{address}{path}", token, process)
        seen = Seen(time.perf_counter() - begin, [], name=name)
        for _ in range(max(100, size.rounds)):
            begin = time.perf_counter()
            _get(f"{address}{path}", token)
            seen.times.append((time.perf_counter() - begin) * 1000)
        memory = [_memory(pid) for pid in _children(process.pid)]
        assert len(memory) == WORKERS
        seen.resident = statistics.mean(one["Pss"] for one in memory)
        seen.own = statistics.mean(one["Private_Dirty"] for one in memory)
        return seen


@contextmanager
def _server(module: str, database_url: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """gunicorn as portal/running/plan.py starts it."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        os.set_inheritable(door.fileno(), True)
        command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.running.web"]
        command += ["--bind", f"fd://{door.fileno()}", "--workers", str(WORKERS), "portal.wsgi:application"]
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": module, "DATABASE_URL": database_url}
        process = subprocess.Popen(
            command,
            cwd=settings.BASE_DIR,
            env=environment,
            pass_fds=(door.fileno(),),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}", process
        finally:
            process.terminate()
            process.wait(20)


def _wait(address: str, token: str, process: subprocess.Popen[bytes]) -> None:
    """The door is open before the server is: the first call waits in it for the answer."""
    assert process.poll() is None
    _get(address, token, timeout=60)


def _get(address: str, token: str, timeout: float = 10) -> bytes:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - an address of this machine
    with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
        content: bytes = response.read()
        return content


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _memory(pid: int) -> dict[str, float]:
    """Megabytes by kind: Pss counts what is shared once among those who share it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
