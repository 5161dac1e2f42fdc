"""In charge of: ending what an earlier supervisor of the same state folder left behind when it was killed.

Every process that a supervisor starts has MARK=<state folder> in its environment, and hands it to its own children.
That finds them all, whoever started them, and no process id can be mistaken for another's.

Not in charge of: the embedded PostgreSQL, which is joined instead (postgres.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

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
