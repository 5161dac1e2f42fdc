"""What a JSON-like value may be before anything recursive looks at it.

In charge of: depth, number of values, text that UTF-8 or a database can't hold, keys, numbers outside JSON. Not in
charge of: whether it fits a schema (schema). The walk keeps its own stack, so depth can't exhaust Python's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 64  # levels of lists and objects: Kubernetes' own objects stay under 30
MAX_VALUES = 20_000  # values in all; with texts bounded by the body's size this bounds the time of every check
MAX_DIGITS = 400  # of an integer: more is no number anybody means, and Python refuses to print 4,300


def pointer(*steps: str | int) -> str:
    """A JSON pointer (RFC 6901) of these steps."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def first_problem(value: Any) -> tuple[str, str, str] | None:
    """The first (JSON pointer, code, message) that makes a value unfit to be looked at any further, or None."""
    waiting: list[tuple[Any, tuple[str | int, ...]]] = [(value, ())]
    seen = 0
    while waiting:
        item, steps = waiting.pop()
        seen += 1
        if seen > MAX_VALUES:
            return "", "too-large", f"more than {MAX_VALUES} values in all; send less"
        if isinstance(item, dict | list | tuple) and len(steps) >= MAX_DEPTH:
            return pointer(*steps[:3]), "too-deep", f"nested more than {MAX_DEPTH} levels deep; send it flatter"
        reason = _unfit(item)
        if reason:
            return pointer(*steps), *reason
        waiting.extend(_below(item, steps))
    return None


def _below(item: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[Any, tuple[str | int, ...]]]:
    if isinstance(item, dict):
        yield from ((inner, (*steps, key)) for key, inner in item.items())
    elif isinstance(item, list | tuple):
        yield from ((inner, (*steps, index)) for index, inner in enumerate(item))


def _unfit(item: Any) -> tuple[str, str] | None:
    if isinstance(item, str):
        return _unfit_text(item)
    if isinstance(item, dict):
        for key in item:
            if not isinstance(key, str):
                return "wrong-type", f"the key {key!r} is no text; write it in quotes"
            if found := _unfit_text(key):
                return found
        return None
    if isinstance(item, float) and not math.isfinite(item):
        return "out-of-range", f"{item} is no number that JSON can hold"
    if isinstance(item, int) and abs(item) >= 10**MAX_DIGITS:
        return "out-of-range", f"an integer of more than {MAX_DIGITS} digits"
    if item is None or isinstance(item, bool | int | float | list | tuple):
        return None
    return "wrong-type", f"{type(item).__name__} is no type of JSON"


def _unfit_text(text: str) -> tuple[str, str] | None:
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        return "bad-text", "holds U+0000 or half a surrogate pair; remove it"
    return None
