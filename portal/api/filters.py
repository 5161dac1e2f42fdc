"""Query parameters: which ones an endpoint takes, and what they may be. Anything else is refused by name.

In charge of: reading them and describing them. Not in charge of: which rows there are to filter (services.access).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from portal.domain.draft import SLUG
from portal.domain.json_limits import pointer
from portal.domain.schema import Problem
from portal.services.errors import InvalidInput


@dataclass(frozen=True)
class Filter:
    """One query parameter. `parse` raises ValueError for what is not `allowed`; `lookup` is the ORM's word for it."""

    name: str
    lookup: str
    allowed: str
    parse: Callable[[str], Any]
    meaning: str
    schema: dict[str, Any]


def choice(name: str, lookup: str, values: Iterable[str | Enum], meaning: str) -> Filter:
    """One of a few words."""
    words = [str(value.value if isinstance(value, Enum) else value) for value in values]

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return Filter(name, lookup, ", ".join(words), parse, meaning, {"type": "string", "enum": words})


def slug(name: str, lookup: str, meaning: str) -> Filter:
    """The slug of a team, an environment, an offering."""
    return pattern(name, lookup, SLUG, "a slug of a-z, 0-9 and '-', at most 63 characters", meaning)


def pattern(name: str, lookup: str, expression: str, allowed: str, meaning: str) -> Filter:
    """Text of a form."""
    compiled = re.compile(expression)

    def parse(text: str) -> str:
        if len(text) > 253 or not compiled.fullmatch(text):
            raise ValueError
        return text

    return Filter(name, lookup, allowed, parse, meaning, {"type": "string", "pattern": expression})


def text(name: str, lookup: str, meaning: str, longest: int = 150) -> Filter:
    """Any printable text, compared as it is."""

    def parse(given: str) -> str:
        if not 1 <= len(given) <= longest or not given.isprintable():
            raise ValueError
        return given

    schema = {"type": "string", "minLength": 1, "maxLength": longest}
    return Filter(name, lookup, f"1 to {longest} printable characters", parse, meaning, schema)


def identifier(name: str, lookup: str, meaning: str) -> Filter:
    """A UUID."""
    return Filter(name, lookup, "a UUID", uuid.UUID, meaning, {"type": "string", "format": "uuid"})


def read(request: Request, filters: Sequence[Filter], also: Iterable[str] = ()) -> dict[str, Any]:
    """Lookup -> value of the filters given. `also`: parameters that somebody else reads (the page's).

    Raises InvalidInput with one problem for each unknown, repeated or wrong parameter.
    """
    known = {each.name: each for each in filters}
    allowed = [*known, *also]
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, values in request.query_params.lists():
        each = known.get(name)
        if name not in allowed:
            message = f"there is no such parameter; known: {', '.join(allowed) or 'none'}"
            problems.append(Problem(pointer("query", _shown(name)), "unknown-parameter", message))
        elif len(values) != 1:
            problems.append(Problem(f"/query/{name}", "repeated", "give it once"))
        elif each is not None:
            try:
                found[each.lookup] = each.parse(values[0])
            except ValueError:
                message = f"{_shown(values[0])!r} is not allowed; allowed: {each.allowed}"
                problems.append(Problem(f"/query/{name}", "out-of-range", message))
    if problems:
        raise InvalidInput(problems[:50])
    return found


def _shown(given: str) -> str:
    return given if len(given) <= 80 else given[:79] + "…"


def described(filters: Sequence[Filter], *, paged: bool = False) -> list[OpenApiParameter]:
    """The same parameters for the OpenAPI document."""
    made = [
        OpenApiParameter(each.name, each.schema, OpenApiParameter.QUERY, description=each.meaning) for each in filters
    ]
    return made + PAGING if paged else made


PAGING = [
    OpenApiParameter(
        "cursor", str, OpenApiParameter.QUERY, description="Where to go on: as found in `next` or `previous`"
    ),
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
        OpenApiParameter.QUERY,
        description="How many items a page holds at most",
    ),
]
