"""How long something takes, in words. In steps: a message that changed at every look would be written, and published,
at every look."""

from __future__ import annotations

import datetime as dt


def span(length: dt.timedelta | float) -> str:
    """`40 s`, `5 min`, `3 h`, `2 days`, rounded down; a number is in seconds."""
    seconds = max(0, int(length.total_seconds() if isinstance(length, dt.timedelta) else length))
    if seconds < 10:
        return "less than 10 s"
    if seconds < 120:
        return f"{seconds // 10 * 10} s"
    minutes = seconds // 60
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"
