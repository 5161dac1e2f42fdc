"""The embedded PostgreSQL and Valkey: started, shared, ended, and found again after their owner was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import kombu
import psycopg
import pytest

from portal.running import addresses, plan, postgres, valkey
from portal.running.errors import AlreadyRunning, GaveUp
from portal.running.postgres import UNSAFE_AND_FAST, embedded_postgres
from portal.running.supervisor import FAST_FAILURES
from portal.running.valkey import embedded_valkey

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def _holder(code: str) -> subprocess.Popen[str]:
    """A process that runs `code`, says "up" and stays until it is ended."""
    program = textwrap.dedent(code) + "\n    print('up', flush=True)\n    import time; time.sleep(60)\n"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_postgres_is_shared_and_ends_with_its_last_user(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "postgres"  # a blank, as folders of people have them
    with embedded_postgres(folder, UNSAFE_AND_FAST) as first:
        with embedded_postgres(folder) as second:
            assert first == second
        assert postgres.is_running(folder)
        with psycopg.connect(first) as connection:
            assert connection.execute("SELECT current_database(), current_setting('fsync')").fetchone() == (
                "portal",
                "off",
            )
    assert not postgres.is_running(folder)


def test_postgres_keeps_its_data_and_is_joined_after_its_owner_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    owner = _holder(
        f"""
        from pathlib import Path
        from portal.running.postgres import UNSAFE_AND_FAST, embedded_postgres
        with embedded_postgres(Path({str(folder)!r}), UNSAFE_AND_FAST) as url:
        """
    )
    with psycopg.connect(addresses.postgres_url(folder)) as connection:
        connection.execute("CREATE TABLE kept ()")
    owner.kill()
    owner.wait()
    assert postgres.is_running(folder), "the server outlives its owner"
    with embedded_postgres(folder) as url, psycopg.connect(url) as connection:
        connection.execute("SELECT FROM kept")
    assert not postgres.is_running(folder), "the killed owner no longer counts as a user"


def test_postgres_starts_over_a_pid_file_of_another_process(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    with embedded_postgres(folder, UNSAFE_AND_FAST):
        content = (folder / "data" / "postmaster.pid").read_text()
    stale = "\n".join([str(os.getpid()), *content.splitlines()[1:]])
    (folder / "data" / "postmaster.pid").write_text(stale)
    with embedded_postgres(folder) as url, psycopg.connect(url):
        pass


def _kill_server(folder: Path) -> int:
    """kill -9 of the postmaster; returns when nobody listens any more."""
    pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while postgres.listens(folder):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return pid


def test_a_killed_postgres_is_started_again_and_said_to_be_up_only_then(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    said: list[str] = []
    keep = plan._Keeper(folder, said.append)
    with embedded_postgres(folder, UNSAFE_AND_FAST) as url, psycopg.connect(url):  # a backend that it leaves behind
        keep()
        assert said == []
        killed = _kill_server(folder)
        keep()
        assert [line.split(" (")[0] for line in said] == [
            "PostgreSQL has ended; starting it again",
            "PostgreSQL is up again",
        ]
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert int((folder / "data" / "postmaster.pid").read_text().split()[0]) != killed
    assert not postgres.is_running(folder)


def test_a_postgres_that_can_not_start_ends_in_one_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    said: list[str] = []
    keep = plan._Keeper(folder, said.append)
    with embedded_postgres(folder, UNSAFE_AND_FAST):
        _kill_server(folder)
        (folder / "data" / "postgresql.conf").write_text("no_such_setting = 1\n")
        for _ in range(FAST_FAILURES - 1):
            keep()
        with pytest.raises(GaveUp, match=r"(?s)did not start again, 5 times.*no_such_setting"):
            keep()
    assert sum("tried once more soon" in line for line in said) == FAST_FAILURES - 1


def test_long_paths_put_the_socket_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100) / "postgres"
    with embedded_postgres(folder, UNSAFE_AND_FAST) as url, psycopg.connect(url):
        assert str(folder) not in url
        sockets = addresses.socket_folder(folder / "data")
        assert sockets.is_dir()
    assert not sockets.exists()


def test_valkey_is_a_broker_for_celery(tmp_path: Path) -> None:
    with embedded_valkey(tmp_path / "a b") as url:
        with kombu.Connection(url) as connection:
            queue = connection.SimpleQueue("q")
            queue.put({"n": 1})
            assert queue.get(timeout=5).payload == {"n": 1}
            queue.close()
        with pytest.raises(AlreadyRunning), embedded_valkey(tmp_path / "a b"):
            pass
    assert not valkey.answers(tmp_path / "a b")


def test_valkey_ends_with_its_killed_owner_and_starts_again(tmp_path: Path) -> None:
    owner = _holder(
        f"""
        from pathlib import Path
        from portal.running.valkey import embedded_valkey
        with embedded_valkey(Path({str(tmp_path)!r})):
        """
    )
    assert valkey.answers(tmp_path)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    deadline = time.monotonic() + 5
    while valkey.answers(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not valkey.answers(tmp_path)
    with embedded_valkey(tmp_path):
        assert valkey.answers(tmp_path)
