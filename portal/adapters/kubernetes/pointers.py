"""Field paths as Kubernetes writes them (`spec.items[0].name`, managed fields), as JSON pointers.

Not in charge of: what is at these fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from portal.domain.json_limits import pointer

# One step: .name, ["quoted.key"], [0], [key]. Paths of apimachinery's field.Path and of structured-merge-diff
# differ in the leading dot only (read 2026-12-01).
_STEP = re.compile(r"""\.?([^.\[\]"]+)|\[(\d+)\]|\["?([^\]"]*)"?\]|\[\{[^}]*\}\]""")

# structured-merge-diff doesn't quote: what follows here is one key, dots and all.
_KEYED = re.compile(r"\.?(metadata)\.(labels|annotations)\.(.+)\Z", re.DOTALL)


def from_field_path(path: str) -> str:
    """`/spec/items/0/name` of `spec.items[0].name`; the empty pointer for what is no path. An item that is named by
    its keys (`[name="x"]`) ends the pointer: only the server knows its number."""
    keyed = _KEYED.match(path)
    if keyed is not None:
        return pointer(*keyed.groups())
    steps: list[str] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or not any(match.groups()) or "=" in (match.group(3) or ""):
            break
        steps.append(next(group for group in match.groups() if group))
        at = match.end()
    return pointer(*steps)


def of_managed_fields(fields: dict[str, Any]) -> tuple[str, ...]:
    """The leaves of one fieldsV1 (metav1.FieldsV1) as JSON pointers; where items of a list or set begin, it ends.

    Claims of one offering mostly have the same: what was worked out once is kept, and shared.
    """
    return _pointers(orjson.dumps(fields))


@lru_cache(maxsize=4096)
def _pointers(fields: bytes) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_leaves(orjson.loads(fields), ())))


def _leaves(fields: dict[str, Any], steps: tuple[str, ...]) -> Iterator[str]:
    inner = {key[2:]: below for key, below in fields.items() if key.startswith("f:")}
    if (steps and len(inner) < sum(key != "." for key in fields)) or (steps and not inner):
        yield pointer(*steps)  # a leaf, or the list whose items follow
    for name, below in inner.items():
        yield from _leaves(below if isinstance(below, dict) else {}, (*steps, name))
