"""In charge of: how a command that runs until it is told to stop learns that it should.

Not in charge of: ending what it runs (supervisor.py).
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_on_signals(told: Callable[[], None] = lambda: None) -> None:
    """From here on the first of these signals calls `told` and raises KeyboardInterrupt; further ones are ignored,
    since ending takes its time and has an end."""

    def end(number: int, frame: FrameType | None) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        told()
        raise KeyboardInterrupt

    for each in ENDING:
        signal.signal(each, end)
