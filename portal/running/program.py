"""In charge of: one program: how it is started, when it counts as up, and how it is ended.

Not in charge of: which programs there are (plan.py), or starting one again (supervisor.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from portal.running.journal import Journal
from portal.running.valkey import launch_command


@dataclass(frozen=True)
class Program:
    """What is needed to run one program.

    `ready` gets the process id and says whether the program does its work by now. Programs of one `stage` start
    together, after those of the stages before are ready; they end in the opposite order.
    """

    name: str
    command: list[str]
    ready: Callable[[int], bool]
    stage: int
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    descriptors: tuple[int, ...] = ()
    start_seconds: float = 90
    stop_seconds: float = 10


class Running:
    """A program's process. It ends with the thread that made this object: the kernel sees to it (launch.py)."""

    def __init__(self, program: Program, environment: Mapping[str, str], journal: Journal) -> None:
        self.program = program
        self.journal = journal
        self.since = time.monotonic()
        self.ready = False
        self._process = subprocess.Popen(
            launch_command(program.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=program.folder,
            env={**environment, **program.environment},
            pass_fds=program.descriptors,
            start_new_session=True,  # Ctrl-C reaches the supervisor alone, which ends things in order
        )
        journal.follow(self._process)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def check_ready(self) -> bool:
        """Asks once more unless it was ready before."""
        self.ready = self.ready or (self.ended is None and self.program.ready(self.pid))
        return self.ready

    def ask_to_end(self) -> None:
        """SIGTERM; nothing if it has ended."""
        if self.ended is None:
            self._process.terminate()

    def end(self, seconds: float) -> bool:
        """Waits for the end, then kills the whole process group, left-over children too. Whether it ended by itself."""
        by_itself = True
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            by_itself = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return by_itself


def describe_end(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"
