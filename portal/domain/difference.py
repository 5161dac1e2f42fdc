"""What two specs differ in, field by field, as a person would say it: what is equal by its meaning is no difference.

In charge of: comparing JSON values. Not in charge of: how a difference is shown (web, api), or what may change
(offerings).

Equal by meaning are
    numbers of one value          2 and 2.0, as they may come back from a control plane (true is no number)
    quantities of one value       1000m and 1, 2048Mi and 2Gi, 0.1 and 100m, where the schema says that a field is one

A field is a quantity only if its schema declares it: `x-kubernetes-int-or-string`, which is how Kubernetes' own types
have quantities in an OpenAPI schema, or `format: quantity`. To take any text that could be one would make the model
names "1" and "1000m" equal. Where such a field holds no quantity ("50%"), it is compared as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from portal.domain.json_limits import pointer
from portal.domain.structural import INT_OR_STRING, ITEMS, Node, children

MAX_DIFFERENCES = 500  # a spec that differs in more places is another spec; the rest is counted by nobody

# Kubernetes, "Quantity" (apimachinery pkg/api/resource/quantity.go, read 2026-12-01).
_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60}))(?:([eE][+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE]))?", re.A
)
_SUFFIXES = {
    **{name: Decimal(10) ** power for name, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)},
    **{f"{name}i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", start=1)},
}


class Difference(msgspec.Struct, frozen=True):
    """One place where two values differ, as a JSON pointer. Null: it isn't there."""

    pointer: str
    old: Any
    new: Any


def differences(old: Any, new: Any, schema: Node | None = None) -> tuple[Difference, ...]:
    """Where `new` differs from `old`, in the order of the schema, at most MAX_DIFFERENCES.

    Objects are gone into, also where one side has none; lists of objects of the same length too. Any other list, and
    any other value, is one difference as a whole; a list of type set has no order.
    """
    found = _walk("", old, new, schema or {})
    return tuple(each for each, _ in zip(found, range(MAX_DIFFERENCES), strict=False))


def quantity(value: Any) -> Decimal | None:
    """The value of a Kubernetes quantity, a text or a number; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None:
        return None
    number = Decimal(match[1] + (match[2] or ""))
    return number * _SUFFIXES[match[3]] if match[3] else number


def equal(old: Any, new: Any, schema: Node | None = None) -> bool:
    """Whether two values mean the same."""
    return not differences(old, new, schema)


def _walk(at: str, old: Any, new: Any, node: Node) -> Iterator[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _members(at, old, new, node)
    elif isinstance(old, Mapping) and old and new is None:
        yield from _members(at, old, {}, node)
    elif isinstance(new, Mapping) and new and old is None:
        yield from _members(at, {}, new, node)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(at, old, new, node)
    elif not _same(old, new, node):
        yield Difference(at, old, new)


def _members(at: str, old: Mapping[str, Any], new: Mapping[str, Any], node: Node) -> Iterator[Difference]:
    below = dict(children(node))
    names = [*(name for name in below if name in old or name in new), *sorted((set(old) | set(new)) - set(below))]
    for name in names:
        yield from _walk(at + pointer(name), old.get(name), new.get(name), below.get(name) or below.get(ITEMS) or {})


def _lists(at: str, old: list[Any], new: list[Any], node: Node) -> Iterator[Difference]:
    items = dict(children(node)).get(ITEMS) or {}
    pairs = list(zip(old, new, strict=False))
    if len(old) == len(new) and pairs and all(isinstance(item, Mapping) for pair in pairs for item in pair):
        for index, (one, other) in enumerate(pairs):
            yield from _walk(at + pointer(index), one, other, items)
    elif len(old) != len(new) or not _same_items(old, new, node, items):
        yield Difference(at, old, new)


def _same_items(old: list[Any], new: list[Any], node: Node, items: Node) -> bool:
    if node.get("x-kubernetes-list-type") == "set":
        old, new = sorted(old, key=repr), sorted(new, key=repr)
    return all(equal(one, other, items) for one, other in zip(old, new, strict=True))


def _same(old: Any, new: Any, node: Node) -> bool:
    if node.get(INT_OR_STRING) or node.get("format") == "quantity":
        one, other = quantity(old), quantity(new)
        if one is not None and other is not None:
            return one == other
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)
