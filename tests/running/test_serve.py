"""`manage.py serve` as a person runs it: everything comes up, comes back, goes away, and starts over after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portal.running import addresses, doors, leftovers, postgres

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {"valkey", "composition-function", "embedded_control_plane", "worker", "beat", "mirror", "web"}
UP = 90  # seconds for a start on a busy machine


class Serve:
    """One `manage.py serve`, what it said so far, and its end."""

    def __init__(self, state: Path, port: int, **environment: str) -> None:
        unset = ("DATABASE_URL", "BROKER_URL", "FUNCTION_ENDPOINTS", "PUBLIC_URL", "DJANGO_SETTINGS_MODULE")
        inherited = {key: value for key, value in os.environ.items() if key not in unset}
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=ROOT,
            env={**inherited, "PORTAL_STATE_DIR": str(state), "HTTP_PORT": str(port), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line.rstrip() for line in self.process.stdout)

    def said(self, text: str, seconds: float = UP) -> bool:
        """Waits until a line with the text was printed; False if the process ends without it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if any(text in line for line in list(self.lines)):
                return True
            if ended:
                time.sleep(0.2)
                return any(text in line for line in self.lines)
            time.sleep(0.05)
        return False

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends the signal and waits for the end."""
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def port() -> int:
    """A port that was free a moment ago."""
    with doors.listen("127.0.0.1", 0, next_free=False) as door:
        return door.port


@pytest.fixture
def serve(tmp_path: Path, port: int) -> Iterator[Callable[..., Serve]]:
    """Starts it; whatever still runs at the end of the test is ended."""
    started: list[Serve] = []

    def start(**environment: str) -> Serve:
        started.append(Serve(tmp_path / "state", port, **environment))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.end()
    leftovers.end(tmp_path / "state")
    folder = addresses.postgres_folder(tmp_path / "state")
    if postgres.has_data(folder):
        postgres.stop(folder)


def _pids(state: Path, word: str) -> list[int]:
    found = []
    for pid in leftovers.find(state):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        if word in command:
            found.append(pid)
    return sorted(found)


def _ready(port: int) -> int:
    """The status of /readyz: 503 while the database is away."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _ready_again(port: int, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while _ready(port) != 200:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


@pytest.mark.timeout(400)
def test_it_comes_up_comes_back_and_starts_over_after_a_crash(
    serve: Callable[[], Serve], tmp_path: Path, port: int
) -> None:
    state = tmp_path / "state"
    first = serve()
    assert first.said(f"The portal serves http://127.0.0.1:{port}"), first.lines
    assert {line.split()[0] for line in first.lines if " is up (" in line} == {"PostgreSQL", *PROGRAMS}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
        assert answer.status == 200

    second = serve()
    assert second.process.wait(UP) == 1
    assert second.said(f"Process {first.process.pid} already runs a portal with the state folder {state}")

    os.kill(_pids(state, "celery --app portal.celery worker")[0], signal.SIGKILL)
    assert first.said("worker was ended by SIGKILL; started again")
    assert first.said("worker is up again"), first.lines

    server = (addresses.postgres_folder(state) / "data" / "postmaster.pid").read_text().split()[0]
    os.kill(int(server), signal.SIGKILL)
    assert first.said("PostgreSQL is up again"), first.lines
    assert _ready_again(port)

    first.end(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while _pids(state, "celery") + _pids(state, "manage.py") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _pids(state, "celery") + _pids(state, "manage.py"), "children end with their supervisor"
    assert postgres.is_running(addresses.postgres_folder(state)), "PostgreSQL is a daemon and is joined later"

    third = serve()
    assert third.said("PostgreSQL runs already; joined it")
    assert third.said("The portal serves"), third.lines
    assert third.end() == 0
    assert third.lines[-1] == "ended"
    assert leftovers.find(state) == []
    assert not postgres.is_running(addresses.postgres_folder(state))


@pytest.mark.timeout(300)
def test_an_outage_of_a_database_of_its_own_is_waited_out_by_every_process(
    serve: Callable[..., Serve], tmp_path: Path, port: int
) -> None:
    folder = tmp_path / "elsewhere"
    with postgres.embedded_postgres(folder, postgres.UNSAFE_AND_FAST) as url:
        running = serve(DATABASE_URL=url)
        assert running.said("The portal serves"), running.lines
        said = len(running.lines)
        postgres.stop(folder)
        started_without = ("embedded_control_plane", "mirror")
        for name in started_without:  # these have to wait, not to end once more
            os.kill(_pids(tmp_path / "state", f"manage.py {name}")[0], signal.SIGKILL)
        time.sleep(15)  # long enough for five fast failures, after which a supervisor gives up
        assert _ready(port) == 503
        assert "mirror.database_down" in (tmp_path / "state" / "log" / "mirror.log").read_text()
        assert running.process.poll() is None, running.lines
        postgres.start_again(folder)
        assert _ready_again(port)
        for name in started_without:
            assert running.said(f"{name} is up again"), running.lines
        ended = sorted(line.split()[0] for line in running.lines[said:] if "; started again" in line)
        assert ended == sorted(started_without), "none but those that were killed has ended, and each once"
        assert running.end() == 0


def test_a_taken_port_is_a_clear_error_and_leaves_nothing(
    serve: Callable[[], Serve], tmp_path: Path, port: int
) -> None:
    with doors.listen("127.0.0.1", port, next_free=False):
        refused = serve()
        assert refused.process.wait(UP) == 1
    assert refused.said(f"HTTP_PORT={port} on 127.0.0.1 is taken by another process. End it, or set HTTP_PORT")
    assert "Traceback" not in "\n".join(refused.lines)
    assert leftovers.find(tmp_path / "state") == []
