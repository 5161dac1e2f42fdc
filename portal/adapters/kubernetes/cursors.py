"""A place in the history of several kinds, as one text: `widgets.test.example.org=123;…`, `-` for a kind that was not
served.

Not in charge of: whether the server can still resume from there.
"""

from __future__ import annotations

import re

from portal.adapters.kubernetes.meanings import cursor_expired

NOT_SERVED = "-"
_PART = re.compile(r"([a-zA-Z0-9.-]+)=([0-9]{1,20}|-)\Z")
_NOTHING = "nothing"

Position = dict[str, str]  # resourceVersion by key of a kind


def key_of(plural: str, api_version: str) -> str:
    """How a kind is called in a cursor, whatever its version."""
    return f"{plural}.{api_version.rpartition('/')[0]}"


def written(position: Position) -> str:
    """The cursor of a position."""
    return ";".join(f"{key}={position[key]}" for key in sorted(position)) or _NOTHING


def read(cursor: str, keys: list[str], plane: str) -> Position:
    """The position of these kinds. RetryableError `cursor-expired` for a cursor that is none (case 16: "None"), or
    that knows nothing of one of them."""
    parts = [] if cursor == _NOTHING else cursor.split(";")
    matches = [_PART.match(part) for part in parts]
    position = {match.group(1): match.group(2) for match in matches if match}
    missing = [key for key in keys if key not in position]
    if len(position) != len(parts) or missing:
        raise cursor_expired(plane, f"{cursor[:200]!r} is no place in the history of {', '.join(missing or keys)}")
    return {key: position[key] for key in keys}
