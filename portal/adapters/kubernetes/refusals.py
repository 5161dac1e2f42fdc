"""What an API server says when it refuses, as it says it (metav1.Status), and what was asked.

Not in charge of: what it means (meanings).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

_MOST_TEXT = 500  # characters of an answer that is no Status


@dataclass(frozen=True, slots=True)
class Action:
    """What was asked: said in messages. `what` is for people, as in `Widget 'one' in namespace 'search'`."""

    plane: str
    verb: str  # get, list, watch, apply, create, delete
    what: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """One of a Status' causes; `field` is a path as in `spec.size`."""

    reason: str
    message: str
    field: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A Status that is no success. `retry_after` is in seconds, if the server named it."""

    status: int
    reason: str = ""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    kind: str = ""  # of what it is about: a plural, as in `namespaces`
    retry_after: float | None = None

    @property
    def is_status(self) -> bool:
        """Whether it is the API's answer, and not that of a path that nobody serves or of something in between."""
        return bool(self.reason or self.causes)

    def caused_by(self, reason: str) -> bool:
        """Whether one of its causes has this reason."""
        return any(cause.reason == reason for cause in self.causes)


def refusal(status: int, content: bytes, headers: Mapping[str, str]) -> Refusal:
    """The refusal in an HTTP answer."""
    found: Any = None
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(content)
    after = _seconds(headers.get("Retry-After"))
    if not isinstance(found, dict) or found.get("kind") != "Status":
        text = content[:_MOST_TEXT].decode(errors="replace").strip()
        return Refusal(status, message=text, retry_after=after)
    return of_status({**found, "code": status}, after)


def of_status(found: dict[str, Any], retry_after: float | None = None) -> Refusal:
    """The refusal in a Status object: an answer's body, or an ERROR event's object."""
    details = found.get("details")
    details = details if isinstance(details, dict) else {}
    causes = [each for each in details.get("causes") or () if isinstance(each, dict)]
    return Refusal(
        status=int(found.get("code") or 500),
        reason=str(found.get("reason") or ""),
        message=str(found.get("message") or ""),
        causes=tuple(Cause(*(str(each.get(key) or "") for key in ("reason", "message", "field"))) for each in causes),
        kind=str(details.get("kind") or ""),
        retry_after=retry_after if retry_after is not None else _seconds(details.get("retryAfterSeconds")),
    )


def _seconds(value: object) -> float | None:
    """A wait as seconds; a date (which Retry-After may be too) is taken as not given: API servers send numbers."""
    try:
        seconds = float(str(value))
    except ValueError:
        return None
    return seconds if 0 < seconds < 3600 else None
