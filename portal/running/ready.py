"""In charge of: how a program says that it does its work by now, and how a supervisor learns it.

Not in charge of: programs with a socket; those are asked through it.
"""

from __future__ import annotations

from pathlib import Path


def announce(state: Path, name: str, pid: int) -> None:
    """Called by the program `name` when it is up."""
    path = _path(state, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(pid))


def announced(state: Path, name: str, pid: int) -> bool:
    """Whether the process `pid` has announced itself under this name; what an earlier one left does not count."""
    try:
        return _path(state, name).read_text() == str(pid)
    except FileNotFoundError:
        return False


def _path(state: Path, name: str) -> Path:
    return state / "run" / f"{name}.ready"
