"""In charge of: locks between processes that the kernel drops when their holder dies, however it dies.

Not in charge of: locks on rows.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Waits until this process alone holds the lock on `path` (made if need be)."""
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def try_exclusive(path: Path) -> TextIO | None:
    """The locked file, or None when another process holds it. Closing the file gives the lock back."""
    return _try(path, fcntl.LOCK_EX)


def shared(path: Path) -> TextIO:
    """A lock that many may hold together; it waits for an exclusive holder."""
    file = open(path, "a")  # noqa: SIM115 - the caller keeps it: the lock lives as long as the file is open
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def _try(path: Path, kind: int) -> TextIO | None:
    file = open(path, "a")  # noqa: SIM115 - the caller keeps it: the lock lives as long as the file is open
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
