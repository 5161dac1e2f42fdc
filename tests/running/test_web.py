"""The web processes under clients that never finish what they began to say."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.running import doors, web, web_worker
from portal.running.doors import Door

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    """One web process, as `serve` starts it, without a database."""
    with doors.listen("127.0.0.1", 0, next_free=False) as listening:
        command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.running.web", "--workers", "1"]
        command += ["--bind", f"fd://{listening.descriptor}", "portal.wsgi:application"]
        environment = {**os.environ, "DATABASE_URL": "none", "PORTAL_STATE_DIR": str(tmp_path), "SECRET_KEY": "k" * 50}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=[listening.descriptor])
        try:
            _until_it_answers(listening, 60)
            yield listening
        finally:
            process.terminate()
            process.wait(30)


def _until_it_answers(door: Door, seconds: float) -> float:
    """Seconds until /healthz is answered."""
    began = time.monotonic()
    while not doors.answers(door.url + "/healthz"):
        assert time.monotonic() - began < seconds, f"/healthz is not answered for {seconds} seconds"
        time.sleep(0.05)
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("says", "seconds", "reason"),
    [
        (b"GET /healthz HT", web_worker.HEAD, "the half of a request line"),
        (b"GET /healthz HTTP/1.0\r\n\r\n", web_worker.LINGER, "all of it, and never closes what is done"),
    ],
)
def test_clients_that_stall_hold_nobody_up_for_long(door: Door, says: bytes, seconds: float, reason: str) -> None:
    stalling = [socket.create_connection(("127.0.0.1", door.port)) for _ in range(web.threads + 8)]
    for each in stalling:
        each.sendall(says)
    time.sleep(0.5)
    _until_it_answers(door, seconds + 5)  # the last of them waited for a thread, and so does this one
    time.sleep(seconds + 2)
    _until_it_answers(door, 5)
    for each in stalling:
        each.close()
