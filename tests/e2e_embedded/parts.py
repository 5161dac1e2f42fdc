"""Parts of a portal that a test owns, to stop, kill and start them: a broker and composition functions.

In charge of: their processes. Not in charge of: everything else of a portal, which its supervisor starts (house.py).
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import redis

from portal.running import addresses, doors, valkey
from portal.running.plan import FUNCTION_FOLDER

NOTEBOOK_FUNCTION = Path(__file__).with_name("notebook_function.py")


def until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Wait for it; fails with `what` when it does not come in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.03)


class Part:
    """One process on a Unix socket. It can be started again on the same one."""

    def __init__(self, command: list[str], folder: Path, socket: Path) -> None:
        self._command, self._folder, self.socket = command, folder, socket
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"unix:{self.socket}"

    def start(self) -> None:
        # It ends with this process, however that ends.
        command = valkey.launch_command(self._command)
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, cwd=self._folder, stdin=quiet, stdout=quiet, stderr=quiet)
        until(lambda: doors.accepts(self.socket), f"{self.socket} is listened on")

    def kill(self) -> None:
        """SIGKILL: nothing is said to anybody."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            with contextlib.suppress(FileNotFoundError):
                self.socket.unlink()


class Broker(Part):
    """A Valkey that no supervisor starts again, and what Celery keeps in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(valkey.valkey_command(folder), folder, addresses.valkey_socket(folder))
        self.url = addresses.valkey_url(folder)

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket), decode_responses=True)


def composition_function(socket: Path) -> Part:
    """The shipped composition function."""
    command = [sys.executable, "-m", "composition_function", "--insecure", "--address", f"unix:{socket}"]
    return Part(command, FUNCTION_FOLDER, socket)


def notebook_function(socket: Path) -> Part:
    """The third offering's own function."""
    command = [sys.executable, str(NOTEBOOK_FUNCTION), "--address", f"unix:{socket}"]
    return Part(command, NOTEBOOK_FUNCTION.parent, socket)
