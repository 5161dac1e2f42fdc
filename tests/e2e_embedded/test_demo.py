"""`manage.py demo --once` as a person runs it: it counts what is expected, and it notices what is not as it should be.

What a killed one left, and a taken port, are in nobody's way.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.running import addresses, leftovers, postgres
from portal.running.plan import ROOT
from tests.e2e_embedded.parts import until

pytestmark = [pytest.mark.demo, pytest.mark.timeout(600)]

DEMO = ROOT / "portal" / "demo"
POLICIES = ROOT / "portal" / "policies"
EXPECTED = {"requests": 7, "ready": 4, "denied": 2, "refused": 1}
OWN = (
    "DATABASE_URL",
    "BROKER_URL",
    "FUNCTION_ENDPOINTS",
    "PUBLIC_URL",
    "DJANGO_SETTINGS_MODULE",
    "PORTAL_TEST_SERVERS",
)


@pytest.fixture
def state() -> Iterator[Path]:
    """A short path, for Unix sockets; nothing of it stays."""
    folder = Path(tempfile.mkdtemp(prefix="pd-"))
    yield folder
    leftovers.end(folder / "demo")
    data = addresses.postgres_folder(folder / "demo")
    if postgres.has_data(data):
        postgres.stop(data)
    shutil.rmtree(folder, ignore_errors=True)


def start(state: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    inherited = {key: value for key, value in os.environ.items() if key not in OWN}
    return subprocess.Popen(
        [sys.executable, "manage.py", "demo", "--once", *arguments],
        cwd=ROOT,
        env={**inherited, "PORTAL_STATE_DIR": str(state), "HTTP_PORT": str(free_port()), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(state: Path, *arguments: str, **environment: str) -> tuple[int, list[str], dict[str, Any]]:
    """The exit status, all lines, and the figures of the last one."""
    process = start(state, *arguments, **environment)
    output, _ = process.communicate(timeout=500)
    lines = output.splitlines()
    try:
        return process.returncode, lines, json.loads(lines[-1])
    except (IndexError, ValueError):
        pytest.fail(f"the last line is not JSON:\n{output}")


def running(state: Path) -> list[int]:
    """What a supervisor of this demo started and still runs."""
    return leftovers.find(state / "demo")


def unexpected(lines: list[str]) -> list[str]:
    return [line for line in lines if "UNEXPECTED" in line]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def sample_with(folder: Path, **edited: str) -> Path:
    """A copy of the sample in which the bundle or the price list is another text."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (DEMO / "sample.yaml").read_text()
    for name, content in edited.items():
        (folder / name).write_text(content)
        text, count = re.subn(rf"^{name}: .*$", f"{name}: {name}", text, flags=re.MULTILINE)
        assert count == 1
    for name in {"bundle", "prices", "directory"} - set(edited):
        text = text.replace(f"{name}: ..", f"{name}: {DEMO / '..'}")
    (folder / "sample.yaml").write_text(text)
    return folder / "sample.yaml"


def edited(file: Path, old: str, new: str) -> str:
    text = file.read_text()
    assert text.count(old) == 1, f"{file} does not hold {old!r} once"
    return text.replace(old, new)


def test_after_a_crash_and_with_the_port_taken_everything_comes_out_as_expected(state: Path) -> None:
    """A first one is killed while it works: PostgreSQL and its data are left, and something takes its port."""
    port = free_port()
    first = start(state, HTTP_PORT=str(port))
    assert first.stdout is not None
    for line in first.stdout:
        if line.startswith("ada "):  # the first thing is Ready: there is data, and all processes run
            break
    first.kill()
    first.wait()
    until(lambda: not running(state), "its children end with it")
    assert postgres.is_running(addresses.postgres_folder(state / "demo")), "the crash left a server behind"

    with socket.socket() as somebody_else:
        somebody_else.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        somebody_else.bind(("127.0.0.1", port))
        somebody_else.listen()
        status, lines, figures = run(state, HTTP_PORT=str(port))
    assert unexpected(lines) == []
    assert {key: figures[key] for key in EXPECTED} == EXPECTED, lines
    assert set(figures) == {*EXPECTED, "seconds"}
    assert status == 0
    assert running(state) == [], "nothing runs on"
    assert not postgres.is_running(addresses.postgres_folder(state / "demo"))


def test_another_price_and_another_policy_are_noticed(state: Path) -> None:
    """One run for both: an L4 costs a cent more, and a model in prod needs one approver instead of two."""
    prices = edited(POLICIES / "sample-prices.csv", "gpu.l4,hour,0.80,", "gpu.l4,hour,0.81,")
    code = "group: platform-approvers\n      quorum: 2\n"
    bundle = edited(POLICIES / "default.yaml", code, code.replace("2", "1"))
    sample = sample_with(state / "sample", prices=prices, bundle=bundle)
    status, lines, _ = run(state, "--sample", str(sample), "--ready-within", "30")
    assert status == 1
    assert any("584.00" in line and "591.30" in line for line in unexpected(lines)), lines
    assert any("approved by two" in line for line in unexpected(lines)), lines


def test_without_the_function_nothing_becomes_ready(state: Path) -> None:
    dead = f"composition-function=127.0.0.1:{free_port()}"
    status, lines, figures = run(state, "--ready-within", "4", FUNCTION_ENDPOINTS=dead)
    assert status == 1
    assert figures["ready"] == 0
    assert len(unexpected(lines)) >= 4, lines
    assert any("not Ready within 4 s" in line for line in unexpected(lines)), lines
