"""Pages by cursor: stable while rows are added, and as fast on the last page as on the first.

A cursor names the last row that was seen by its sort key, so a page is `WHERE key < cursor ORDER BY key LIMIT n`. It is
opaque to clients. Not in charge of: what a row looks like.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Q, QuerySet
from rest_framework.request import Request

from portal.api import filters
from portal.api.filters import Filter
from portal.domain.schema import Problem
from portal.services.errors import InvalidInput

DEFAULT, LARGEST = 50, 200
PARAMETERS = ("cursor", "limit")

T = TypeVar("T")
Parse = Callable[[Any], Any]


@dataclass(frozen=True)
class Order:
    """A sort key: fields that are unique together, and how each is read back from a cursor."""

    fields: tuple[tuple[str, Parse], ...]
    descending: bool = False

    def by(self, backwards: bool) -> list[str]:
        sign = "-" if self.descending != backwards else ""
        return [f"{sign}{name}" for name, _ in self.fields]


@dataclass(frozen=True)
class Page:
    """Rows of a page, and the addresses of the pages around it."""

    rows: list[dict[str, Any]]
    next: str | None
    previous: str | None

    def of(self, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The envelope of a list."""
        return {"items": items, "next": self.next, "previous": self.previous}


@dataclass(frozen=True)
class ListPage(Generic[T]):
    """A page of a list; see Page."""

    rows: list[T]
    next: str | None
    previous: str | None

    def of(self, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The envelope of a list."""
        return {"items": items, "next": self.next, "previous": self.previous}


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 253 or not re.fullmatch(r"[A-Za-z0-9._-]+", value):
        raise ValueError
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError
    return value


def whole(value: Any) -> int:
    """A whole number of a sort key, of 0 or more."""
    return _number(value)


def _time(value: Any) -> dt.datetime:
    found = dt.datetime.fromisoformat(value)
    if found.tzinfo is None:
        raise ValueError
    return found.astimezone(dt.UTC)  # OverflowError for a moment that is in no year from 1 to 9999 there


NEWEST_FIRST = Order((("created_at", _time), ("id", lambda value: uuid.UUID(_text(value)))), descending=True)
BY_NUMBER = Order((("id", _number),))
BY_NUMBER_LAST_FIRST = Order((("id", _number),), descending=True)
BY_SLUG = Order((("slug", _text),))
BY_NAME = Order((("name", _text),))


def page(request: Request, rows: QuerySet[Any, Any], order: Order) -> Page:
    """The page that the request asks for, of a `.values()` queryset that holds the order's fields. One query.

    Raises InvalidInput for a limit or a cursor that is none.
    """
    limit = read_limit(request)
    backwards, after = _read_cursor(request, order)
    found = rows.order_by(*order.by(backwards))
    if after is not None:
        found = found.filter(_beyond(order, after, backwards))
    taken = list(found[: limit + 1])
    more, taken = len(taken) > limit, taken[:limit]
    if backwards:
        taken.reverse()
    has_next, has_previous = (after is not None and bool(taken), more) if backwards else (more, after is not None)
    last, first = (taken[-1], taken[0]) if taken else ({}, {})
    return Page(
        taken,
        _address(request, order, last, "n") if has_next else None,
        _address(request, order, first, "p") if has_previous and taken else None,
    )


def page_of_list(request: Request, rows: Sequence[T], key: Callable[[T], list[str]]) -> ListPage[T]:
    """The page that the request asks for, of a list that is sorted by a unique key of texts.

    Raises InvalidInput for a limit or a cursor that is none.
    """
    limit = read_limit(request)
    given = request.query_params.get("cursor")
    way, *after = (decode(given) if given is not None else None) or ["n"]
    if way not in ("n", "p") or not all(isinstance(part, str) for part in after):
        raise _bad_cursor()
    if way == "p":
        before = [row for row in rows if key(row) < after]
        taken = before[-limit:]
        has_previous, has_next = len(before) > limit, bool(taken)
    else:
        beyond = [row for row in rows if key(row) > after]
        taken = beyond[:limit]
        has_previous, has_next = bool(after) and bool(taken), len(beyond) > limit

    def link(row: T, way: str) -> str:
        query = {name: value for name, value in request.query_params.items() if name != "cursor"}
        return address(request.path, {**query, "cursor": encode([way, *key(row)])})

    return ListPage(
        list(taken), link(taken[-1], "n") if has_next else None, link(taken[0], "p") if has_previous else None
    )


def read_limit(request: Request, default: int = DEFAULT) -> int:
    """The `limit` of the query. Raises InvalidInput."""
    given = request.query_params.get("limit", str(default))
    if not re.fullmatch(r"[0-9]{1,6}", given, re.ASCII) or not 1 <= int(given) <= LARGEST:
        message = f"{given[:40]!r} is not allowed; allowed: a whole number from 1 to {LARGEST}"
        raise InvalidInput([Problem("/query/limit", "out-of-range", message)])
    return int(given)


def encode(value: list[Any]) -> str:
    """An opaque cursor."""
    plain = json.dumps(value, separators=(",", ":"), default=_plain)
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def decode(cursor: str) -> list[Any]:
    """What `encode` was given, as far as JSON can tell. Raises InvalidInput."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        value = json.loads(raw) if len(cursor) <= 1000 else None
    except (binascii.Error, ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        raise _bad_cursor()
    return value


def address(path: str, query: dict[str, Any]) -> str:
    """An absolute address of the portal."""
    return f"{settings.PUBLIC_URL}{path}" + (f"?{urlencode(query)}" if query else "")


def read_filters(request: Request, allowed: Sequence[Filter]) -> dict[str, Any]:
    """The filters of a paged list."""
    return filters.read(request, allowed, PARAMETERS)


def _read_cursor(request: Request, order: Order) -> tuple[bool, list[Any] | None]:
    given = request.query_params.get("cursor")
    if given is None:
        return False, None
    way, *key = decode(given) or [None]
    if way not in ("n", "p") or len(key) != len(order.fields):
        raise _bad_cursor()
    try:
        return way == "p", [parse(value) for (_, parse), value in zip(order.fields, key, strict=True)]
    except (ValueError, TypeError, OverflowError):
        raise _bad_cursor() from None


def _bad_cursor() -> InvalidInput:
    message = "this is no cursor of this list; start without one, and follow `next` and `previous`"
    return InvalidInput([Problem("/query/cursor", "bad-cursor", message)])


def _beyond(order: Order, key: list[Any], backwards: bool) -> Q:
    """The rows after the key in reading order: `a <= x AND (a < x OR b < y)`, which an index on (a, b) serves."""
    way = "lt" if order.descending != backwards else "gt"
    names = [name for name, _ in order.fields]
    if len(names) == 1:
        return Q(**{f"{names[0]}__{way}": key[0]})
    first, second = names
    return Q(**{f"{first}__{way}e": key[0]}) & (Q(**{f"{first}__{way}": key[0]}) | Q(**{f"{second}__{way}": key[1]}))


def _address(request: Request, order: Order, row: dict[str, Any], way: str) -> str:
    query = {name: value for name, value in request.query_params.items() if name != "cursor"}
    return address(request.path, {**query, "cursor": encode([way, *(row[name] for name, _ in order.fields)])})


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, dt.datetime) else str(value)
