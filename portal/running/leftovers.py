"""In charge of: one supervisor per state folder, which ends what an earlier one left behind when it was killed.

Every process that a supervisor starts has MARK=<state folder> in its environment, and hands it to its own children.
That finds them all, whoever started them, and no process id can be mistaken for another's.

Not in charge of: the embedded PostgreSQL, which is joined instead (postgres.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from portal.running import folders, locks
from portal.running.errors import AlreadyRunning

MARK = "PORTAL_SUPERVISED_IN"


def mark(state: Path) -> dict[str, str]:
    """What the environment of each started process gets."""
    return {MARK: str(state)}


def find(state: Path) -> list[int]:
    """The ids of processes that a supervisor of this state folder started, directly or not."""
    wanted = f"{MARK}={state}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def end(state: Path, seconds: float = 5) -> int:
    """Ends them all and says how many there were. Call it only while holding the state folder's lock."""
    first = find(state)
    deadline = time.monotonic() + seconds
    left = first
    while left and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        left = find(state)
    return len(first)


@contextlib.contextmanager
def own_folder(state: Path, what: str, say: Callable[[str], None]) -> Iterator[None]:
    """The state folder for this process alone, and its `run` for its user's eyes only; left-overs are ended.

    `what` runs there, for the message of AlreadyRunning.
    """
    folders.make_private(state / "run")
    path = state / "run" / "supervisor.lock"
    lock = locks.try_exclusive(path)
    if lock is None:
        raise AlreadyRunning(
            f"Process {path.read_text().strip() or '?'} already runs {what} with the state folder {state}. "
            "End it, or set PORTAL_STATE_DIR to another folder."
        )
    with lock:
        path.write_text(f"{os.getpid()}\n")
        ended = end(state)
        if ended:
            say(f"ended {ended} processes that an earlier run left behind")
        yield
