"""The catalog feed for Backstage: all entities, then changes since a cursor. An answer is complete, or it is an error.

In charge of: cursors on the wire. Not in charge of: what the feed holds, or when it is not complete (publishing).
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import filters, pagination
from portal.api.door import Door
from portal.api.schemas import catalog as described
from portal.domain.schema import Problem
from portal.services import access, publishing
from portal.services.errors import InvalidInput
from portal.services.publishing import CursorExpired

SNAPSHOT, CHANGES = "snapshot", "changes"


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
        after, at = _numbers(given, SNAPSHOT, 2) if given is not None else (0, None)
        found = publishing.snapshot(after=after or 0, cursor=at, limit=limit)
        onward = None
        if found.after is not None:
            cursor = pagination.encode([SNAPSHOT, found.after, found.cursor])
            onward = pagination.address(request.path, {"cursor": cursor, "limit": limit})
        return Response(
            {
                "entities": found.entities,
                "cursor": pagination.encode([CHANGES, found.cursor]),
                "next": onward,
                "complete": onward is None,
            }
        )


class CatalogChanges(_Feed):
    """What changed since a cursor. 410: read all entities anew."""

    @extend_schema(**described.CHANGES, parameters=filters.described((), paged=True))
    def get(self, request: HttpRequest) -> Response:
        pagination.read_filters(request, ())
        limit = pagination.read_limit(request, default=pagination.LARGEST)
        given = request.query_params.get("cursor")
        if given is None:
            message = "required: the cursor of catalog/entities/, or of the answer before"
            raise InvalidInput([Problem("/query/cursor", "missing-field", message)])
        found = publishing.changes(_numbers(given, CHANGES, 1)[0], limit=limit)
        return Response(
            {
                "upserted": found.upserted,
                "removed": found.removed,
                "cursor": pagination.encode([CHANGES, found.cursor]),
                "more": found.more,
            }
        )


def _numbers(given: str, kind: str, count: int) -> list[int]:
    """The sequence numbers in a cursor of this kind. Whatever else it is, the way on is the same: CursorExpired."""
    try:
        found, *numbers = pagination.decode(given) or [None]
    except InvalidInput:
        found, numbers = None, []
    fits = all(isinstance(number, int) and 0 <= number < 2**63 for number in numbers)
    if found != kind or len(numbers) != count or not fits:
        raise CursorExpired("cursor-expired", "This is no cursor that is known here. Read all entities anew.")
    return numbers
