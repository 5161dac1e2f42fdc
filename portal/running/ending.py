"""In charge of: whether this web process is on its way out, for answers that are waiting for something.

Not in charge of: ending it (gunicorn does).
"""

from __future__ import annotations

_begun: list[bool] = []


def begin() -> None:
    """May be called in a signal handler: it takes no lock."""
    _begun.append(True)


def has_begun() -> bool:
    return bool(_begun)
