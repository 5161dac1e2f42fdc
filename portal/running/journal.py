"""In charge of: what programs print: all of it in <state>/log/<name>.log, and on the console when that is wanted.

Not in charge of: how the lines look; the programs decide (portal/logs.py).
"""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

LIMIT = 10_000_000  # bytes; then the file becomes <name>.log.1, and the one before that is gone


class Journal:
    """The log file of one program over all its starts, and its last lines."""

    def __init__(self, folder: Path, name: str, echo: Callable[[str], None] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.log"
        self._name = name
        self._echo = echo
        self._last: deque[str] = deque(maxlen=15)

    @property
    def last(self) -> str:
        """The last lines, for a message about a failure."""
        return "\n".join(f"    {line[:300]}" for line in self._last) or "    (it printed nothing)"

    def follow(self, process: subprocess.Popen[bytes]) -> None:
        """Copies what the process prints until it and its children close their output."""
        threading.Thread(target=self._copy, args=[process], name=f"log-{self._name}", daemon=True).start()

    def _copy(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 - it was started with a pipe
        with process.stdout as lines:
            file = open(self.path, "ab")  # noqa: SIM115 - replaced when it is full
            try:
                for line in lines:
                    file.write(line)
                    file.flush()
                    text = line.decode(errors="replace").rstrip()
                    self._last.append(text)
                    if self._echo:
                        self._echo(f"{self._name:<24}| {text}")
                    if file.tell() > LIMIT:
                        file.close()
                        self.path.replace(self.path.with_suffix(".log.1"))
                        file = open(self.path, "ab")  # noqa: SIM115
            finally:
                file.close()
