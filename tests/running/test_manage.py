"""`manage.py` as a person runs it where something is missing: one line that says what to do, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.running import doors

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def _manage(
    state: Path, *arguments: str, python: str = sys.executable, flags: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    unset = ("DATABASE_URL", "BROKER_URL", "PUBLIC_URL", "DJANGO_SETTINGS_MODULE")
    inherited = {key: value for key, value in os.environ.items() if key not in unset}
    return subprocess.run(
        [python, *flags, "manage.py", *arguments],
        check=False,
        cwd=ROOT,
        env={**inherited, "PORTAL_STATE_DIR": str(state), **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_an_interpreter_without_django_is_told_which_one_has_it(tmp_path: Path) -> None:
    done = _manage(tmp_path, "token", "ada", flags=("-S", "-I"))
    assert done.returncode == 2
    assert "has no Django" in done.stderr
    assert f"{ROOT}/.venv/bin/python manage.py token ada" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_database_without_tables_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    done = _manage(tmp_path / "state", "token", "ada")
    assert done.returncode == 1
    assert f"{tmp_path / 'state'} lacks the portal's tables" in done.stderr
    assert "manage.py migrate" in done.stderr
    assert "PORTAL_STATE_DIR" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["serve", "token", "migrate"])
def test_a_database_that_does_not_answer_is_one_line(tmp_path: Path, command: str) -> None:
    arguments = [command, "ada"] if command == "token" else [command]
    with doors.listen("127.0.0.1", 0, next_free=False) as door:
        free = door.port
    done = _manage(tmp_path, *arguments, DATABASE_URL="postgres://u:secret@127.0.0.1:1/x", HTTP_PORT=str(free))
    assert done.returncode == 1
    assert "DATABASE_URL: the database 'x' at 127.0.0.1 port 1 can't be used" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("redis://:secret@127.0.0.1:1/0", "the broker at 127.0.0.1 port 1 can't be reached", id="tcp"),
        pytest.param("redis+socket:///no/such.sock", "nobody listens on the socket /no/such.sock", id="socket"),
    ],
)
def test_a_broker_that_does_not_answer_is_one_line(tmp_path: Path, url: str, message: str) -> None:
    with doors.listen("127.0.0.1", 0, next_free=False) as door:
        free = door.port
    done = _manage(tmp_path, "serve", BROKER_URL=url, DATABASE_URL="postgres://127.0.0.1:1/x", HTTP_PORT=str(free))
    assert done.returncode == 1
    assert f"BROKER_URL: {message}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr
