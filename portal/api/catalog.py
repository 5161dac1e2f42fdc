"""The catalog feed for Backstage: all entities, then changes since a cursor. An answer is complete, or it is an error.

In charge of: cursors on the wire. Not in charge of: what the feed holds, or when it is not complete (services.feed).
"""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import filters, pagination
from portal.api.door import Door
from portal.api.filters import Filter
from portal.api.schemas import catalog as described
from portal.domain.schema import Problem
from portal.running import ending
from portal.services import access, feed
from portal.services.errors import InvalidInput
from portal.services.feed import CursorExpired, Place

SNAPSHOT, CHANGES = "snapshot", "changes"
LONGEST_WAIT = 25  # seconds: proxies and clients commonly give up after 30


def _seconds(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 2 or int(text) > LONGEST_WAIT:
        raise ValueError
    return int(text)


WAIT = Filter(
    "wait",
    "wait",
    f"whole seconds from 0 to {LONGEST_WAIT}",
    _seconds,
    "So many seconds at most an answer without changes is held back until there is one",
    {"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT, "default": 0},
)


class _Feed(Door):
    reading = ""  # the feed has a right of its own

    def initial(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        access.may_read_feed(self.actor)


class CatalogEntities(_Feed):
    """Every entity, a page at a time. `complete` is true on the last: only then may a reader drop what it lacks."""

    @extend_schema(**described.ENTITIES, parameters=filters.described((), paged=True))
    def get(self, request: HttpRequest) -> Response:
        pagination.read_filters(request, ())
        limit = pagination.read_limit(request, default=pagination.LARGEST)
        given = request.query_params.get("cursor")
        place, numbers = _read(given, SNAPSHOT, 2) if given is not None else (None, [0])
        found = feed.snapshot(after=numbers[0], cursor=place, limit=limit)
        onward = None
        if found.after is not None:
            cursor = pagination.encode([SNAPSHOT, str(found.cursor.feed), found.after, found.cursor.sequence])
            onward = pagination.address(request.path, {"cursor": cursor, "limit": limit})
        return Response(
            {
                "entities": found.entities,
                "cursor": _changes_after(found.cursor),
                "next": onward,
                "complete": onward is None,
                "feed": found.cursor.feed,
            }
        )


class CatalogChanges(_Feed):
    """What changed since a cursor, as soon as something has. 410: read all entities anew."""

    @extend_schema(**described.CHANGES, parameters=filters.described((WAIT,), paged=True))
    def get(self, request: HttpRequest) -> Response:
        seconds = pagination.read_filters(request, (WAIT,)).get("wait", 0)
        limit = pagination.read_limit(request, default=pagination.LARGEST)
        given = request.query_params.get("cursor")
        if given is None:
            message = "required: the cursor of catalog/entities/, or of the answer before"
            raise InvalidInput([Problem("/query/cursor", "missing-field", message)])
        place, _ = _read(given, CHANGES, 1)
        found = feed.changes(place, limit=limit)
        if seconds and found.empty and feed.wait(place, seconds, ending.has_begun):
            found = feed.changes(place, limit=limit)
        return Response(
            {
                "upserted": found.upserted,
                "removed": found.removed,
                "cursor": _changes_after(found.cursor),
                "more": found.more,
                "feed": found.cursor.feed,
            }
        )


def _changes_after(place: Place) -> str:
    return pagination.encode([CHANGES, str(place.feed), place.sequence])


def _read(given: str, kind: str, count: int) -> tuple[Place, list[int]]:
    """The place that a cursor of this kind names (its last number is the sequence), and all its `count` numbers.
    Whatever else it is, the way on is the same: CursorExpired."""
    try:
        found, named, *numbers = pagination.decode(given) or [None, None]
        fits = all(isinstance(number, int) and 0 <= number < 2**63 for number in numbers)
        if found == kind and len(numbers) == count and fits:
            return Place(uuid.UUID(named), numbers[-1]), numbers
    except (InvalidInput, ValueError, TypeError, AttributeError):
        pass
    raise CursorExpired("cursor-expired", "This is no cursor that is known here. Read all entities anew.")
