"""`manage.py backstage` as a person runs it: both come up, what it prints can be done, and nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.running import leftovers, postgres
from portal.running.plan import ROOT
from tests.backstage import free_port, until

OTHERS = ("DATABASE_URL", "BROKER_URL", "PUBLIC_URL", "DJANGO_SETTINGS_MODULE", "BACKSTAGE_URL", "BACKSTAGE_TOKEN")


@pytest.fixture
def state() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pm-"))  # Unix sockets need short paths
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def shell(line: str) -> str:
    """What a line prints that the command has shown, in the project's folder."""
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_starts_both_and_ends_them(state: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in OTHERS}
    environment |= {"PORTAL_STATE_DIR": str(state), "HTTP_PORT": str(free_port()), "SIMULATOR_DELAY": "0.2"}
    out = state / "said"
    with open(out, "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "backstage"], cwd=ROOT, env=environment, stdout=said, stderr=said
        )
    try:
        up = lambda: "Ctrl-C ends it" in out.read_text() or process.poll() is not None  # noqa: E731
        until(up, "both are up", 180)
        text = out.read_text()
        assert process.poll() is None, text
        commands = re.search(r"in this folder:\n((?:  .*\n)+)", text)
        assert commands is not None, text
        lines = commands[1].replace("\\\n", "")
        token, templates, run, events = [line.strip() for line in lines.splitlines()]
        found = json.loads(shell(f"{token}\n{templates}"))
        assert {item["kind"] for item in found["items"]} == {"Template"}
        task = json.loads(shell(f"{token}\n{run}"))["id"]
        ask = f"{token}\n{events.replace('ID', task)}"
        until(lambda: "completion" in shell(ask), "the task has ended", 60)
        assert '"status":"completed"' in shell(ask)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, out.read_text()
        assert out.read_text().rstrip().endswith("ended")
    finally:
        process.kill()
        process.wait()
    below = state / "with-backstage"
    time.sleep(0.5)
    assert leftovers.find(below) == []
    assert leftovers.find(below / "backstage") == []
    assert not postgres.is_running(below / "postgres")
