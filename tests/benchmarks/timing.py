"""In charge of: timing things side by side in one run, and printing what came out.

Figures of one run can be compared with each other and with nothing else: another machine, or this one in another hour,
gives others. So what tests bound is a ratio, and only by its order of magnitude.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Times of one thing, in milliseconds."""

    name: str
    times: Sequence[float]

    @property
    def p50(self) -> float:
        return statistics.median(self.times)

    @property
    def p95(self) -> float:
        return statistics.quantiles(self.times, n=20, method="inclusive")[-1]


def side_by_side(calls: dict[str, Callable[[], object]], *, rounds: int, warm: int = 5) -> list[Timing]:
    """Each of the calls in turn (A B A B …), `rounds` times after `warm` that don't count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    with frozen():
        for number in range(-warm, rounds):
            for name, call in calls.items():
                begin = time.perf_counter()
                call()
                taken = (time.perf_counter() - begin) * 1000
                if number >= 0:
                    times[name].append(taken)
    return [Timing(name, taken) for name, taken in times.items()]


@contextmanager
def frozen() -> Iterator[None]:
    """What is there already is out of the garbage collector's sight, as in a web worker (portal/running/web.py)."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output (pytest -s), as README.md can take it in."""
    widths = [max(len(row[place]) for row in [header, *rows]) for place in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    head = "| " + " | ".join(cell.ljust(width) for cell, width in zip(header, widths, strict=True)) + " |"
    print(f"\n\n{title}\n\n{head}\n|{'|'.join('-' * (width + 2) for width in widths)}|")
    print("\n".join(lines))
