"""The supervisor with programs made for the purpose: stages, starting again, giving up, ending, being killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.running import leftovers, supervisor
from portal.running.errors import GaveUp, NotReady
from portal.running.program import Program
from portal.running.supervisor import Supervisor

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_WAIT", 0.05)
    monkeypatch.setattr(supervisor, "LOOK_EVERY", 0.02)


def program(folder: Path, name: str, code: str = "", stage: int = 1, **more: object) -> Program:
    """Python code that says it is up by making the file <name>.up, then sleeps."""
    text = f"import pathlib, time; {code or None}; pathlib.Path({str(folder)!r}, '{name}.up').touch(); time.sleep(600)"
    ready: Callable[[int], bool] = lambda pid: (folder / f"{name}.up").exists()  # noqa: E731
    return Program(name, [sys.executable, "-c", text], ready, stage, **more)  # type: ignore[arg-type]


def wait_for(condition: Callable[[], object], seconds: float = 10) -> None:
    """Fails unless the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_stages_start_in_order_and_end_in_the_opposite_order(tmp_path: Path) -> None:
    said: list[str] = []
    order = tmp_path / "order"
    note = f"import signal, sys; signal.signal(15, lambda *_: (open({str(order)!r}, 'a').write('NAME '), sys.exit()))"
    programs = [
        program(tmp_path, "second", note.replace("NAME", "second"), stage=2),
        program(tmp_path, "first", "time.sleep(0.3); " + note.replace("NAME", "first")),
    ]
    with Supervisor(tmp_path, programs, os.environ, said.append) as running:
        pids = running.pids()
        assert set(pids) == {"first", "second"}
        assert all(map(alive, pids.values()))
    assert [line.split(" (")[0] for line in said] == ["first is up", "second is up"]
    assert order.read_text() == "second first "
    assert not any(map(alive, pids.values()))


def test_a_killed_program_is_started_again(tmp_path: Path) -> None:
    said: list[str] = []
    with Supervisor(tmp_path, [program(tmp_path, "one")], os.environ, said.append) as running:
        before = running.pids()["one"]
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: running.pids().get("one", before) != before)
        wait_for(lambda: any("up again" in line for line in said))
    assert any("one was ended by SIGKILL; started again" in line for line in said)


def test_a_program_that_keeps_ending_makes_it_give_up_and_says_why(tmp_path: Path) -> None:
    code = f"f = pathlib.Path({str(tmp_path)!r}, 'fragile.up'); f.exists() and (print('no more disk'), exit(3))"
    with (
        pytest.raises(GaveUp, match=r"(?s)fragile ended with status 3, 5 times.*no more disk"),
        Supervisor(tmp_path, [program(tmp_path, "fragile", code)], os.environ) as running,
    ):
        os.kill(running.pids()["fragile"], signal.SIGKILL)
        running.wait(20)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param("print('bad key'); exit(2)", r"(?s)ended with status 2.*bad key", id="it ends before it is up"),
        pytest.param("time.sleep(60)", r"was not ready after 0.5 s", id="it never says that it is up"),
    ],
)
def test_a_program_that_does_not_come_up_is_an_error_and_nothing_stays(tmp_path: Path, code: str, message: str) -> None:
    programs = [program(tmp_path, "fine"), program(tmp_path, "bad", code, stage=2, start_seconds=0.5)]
    environment = {**os.environ, **leftovers.mark(tmp_path)}
    with pytest.raises(NotReady, match=message), Supervisor(tmp_path, programs, environment):
        pytest.fail("the block must not be entered")
    assert leftovers.find(tmp_path) == []


def test_a_program_that_ignores_sigterm_is_killed_with_its_children(tmp_path: Path) -> None:
    said: list[str] = []
    child = "import os, signal; signal.signal(15, signal.SIG_IGN); os.fork()"
    environment = {**os.environ, **leftovers.mark(tmp_path)}
    with Supervisor(tmp_path, [program(tmp_path, "deaf", child, stop_seconds=0.2)], environment, said.append):
        wait_for(lambda: len(leftovers.find(tmp_path)) == 2)
    assert said[-1] == "deaf did not end within 0.2 s; killed"
    wait_for(lambda: leftovers.find(tmp_path) == [])


def test_what_programs_print_is_kept_and_shown_on_demand(tmp_path: Path) -> None:
    said: list[str] = []
    with Supervisor(
        tmp_path, [program(tmp_path, "one", "print('hello', flush=True)")], os.environ, said.append, verbose=True
    ):
        wait_for(lambda: any(line.startswith("one ") and line.endswith("| hello") for line in said))
    assert (tmp_path / "log" / "one.log").read_text() == "hello\n"


def test_children_die_with_a_killed_supervisor_and_grandchildren_are_found_later(tmp_path: Path) -> None:
    code = f"""
        import os, sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from test_supervisor import program
        from portal.running import leftovers
        from portal.running.supervisor import Supervisor
        state = Path({str(tmp_path)!r})
        # The second one's child is in a session of its own and would outlive everybody.
        fork = "import os; os.fork() or (os.setsid(), time.sleep(600))"
        programs = [program(state, "one"), program(state, "two", fork)]
        with Supervisor(state, programs, {{**os.environ, **leftovers.mark(state)}}) as running:
            print(*running.pids().values(), flush=True)
            time.sleep(600)
    """
    owner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    children = [int(pid) for pid in owner.stdout.readline().split()]
    assert len(children) == 2
    owner.kill()
    owner.wait()
    wait_for(lambda: not any(map(alive, children)), seconds=5)
    assert len(leftovers.find(tmp_path)) == 1, "the grandchild is still there"
    assert leftovers.end(tmp_path) == 1
    assert leftovers.find(tmp_path) == []
