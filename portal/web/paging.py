"""Pages of lists: a number in the address, and links to both sides. No list is unbounded."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from portal.domain.schema import Problem
from portal.services.errors import InvalidInput

SIZE = 25
LAST = 10_000  # page number; a filter serves better than going on


@dataclass(frozen=True)
class Page:
    """Rows of one page; `previous` and `next` are query strings, empty where there is no page."""

    rows: list[Any]
    number: int
    previous: str
    next: str


def page_of(
    request: HttpRequest, rows: QuerySet[Any] | Sequence[Any], size: int = SIZE, parameter: str = "page"
) -> Page:
    """The page that the address asks for. Raises InvalidInput for a number that is none."""
    number = _number(request, parameter)
    found = list(rows[(number - 1) * size : number * size + 1])
    return Page(
        rows=found[:size],
        number=number,
        previous=_query(request, parameter, number - 1) if number > 1 else "",
        next=_query(request, parameter, number + 1) if len(found) > size else "",
    )


def choice(request: HttpRequest, parameter: str, known: Collection[str]) -> str:
    """A filter with known values; empty when it isn't set. Raises InvalidInput for another value."""
    given = request.GET.get(parameter, "")
    if given and given not in known:
        shown = ", ".join(sorted(known)[:30]) or "nothing to choose from"
        raise InvalidInput([Problem(parameter, "not-one-of", f"“{given[:80]}” is none of: {shown}")])
    return given


def identifier(request: HttpRequest, parameter: str) -> uuid.UUID | None:
    """A filter by id; None when it isn't set. Raises InvalidInput for what is no id."""
    given = request.GET.get(parameter, "").strip()
    try:
        return uuid.UUID(given) if given else None
    except ValueError:
        raise InvalidInput([Problem(parameter, "bad-format", f"“{given[:80]}” is no id")]) from None


def text(request: HttpRequest, parameter: str) -> str:
    """A filter by text; no database holds U+0000."""
    return request.GET.get(parameter, "").strip().replace("\x00", "")[:200]


def _number(request: HttpRequest, parameter: str) -> int:
    given = request.GET.get(parameter, "1")
    if not (given.isascii() and given.isdigit() and len(given) < 7 and 1 <= int(given) <= LAST):
        raise InvalidInput([Problem(parameter, "out-of-range", f"“{given[:80]}” is no page from 1 to {LAST}")])
    return int(given)


def _query(request: HttpRequest, parameter: str, number: int) -> str:
    query = request.GET.copy()
    query[parameter] = str(number)
    return f"?{query.urlencode()}"
