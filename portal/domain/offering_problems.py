"""What is wrong with an offering's files.

In charge of: naming the file, the place in it and the reason, for every problem found. Not in charge of: finding them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class FileProblem(NamedTuple):
    """One fault: file name, JSON pointer (or line:column when the file is no YAML), and the reason."""

    file: str
    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file} {self.path or '/'}: {self.reason}"


class OfferingError(Exception):
    """An offering that can't be used, with all its problems."""

    def __init__(self, problems: Sequence[FileProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)
