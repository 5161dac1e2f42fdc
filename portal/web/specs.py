"""A spec, and what differs between two, as people read it.

In charge of: texts and their order. Not in charge of: what counts as a difference (domain.difference), forms (fields).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from portal.domain.difference import Difference


def differences(old: Any, new: Any) -> list[tuple[str, str, str]]:
    """(place, old, new) for each leaf that differs; places as people write them, `replicas.max`."""
    before, after = dict(leaves(old)), dict(leaves(new))
    places = list(dict.fromkeys([*after, *before]))
    return [
        (place, before.get(place, "—"), after.get(place, "—"))
        for place in places
        if before.get(place) != after.get(place)
    ]


def changes(difference: Sequence[Mapping[str, Any] | Difference]) -> list[tuple[str, str, str]]:
    """(place, old, new) of each difference that a change was asked with, as people write them."""
    rows = [each if isinstance(each, Difference) else Difference(**each) for each in difference]
    return [(_place_of(row.pointer), _told(row.old), _told(row.new)) for row in rows]


def _place_of(pointer: str) -> str:
    words = {"/compositionRevision": "composition revision", "/offering": "version of the offering"}
    inside = pointer.removeprefix("/spec/").replace("/", ".").replace("~1", "/").replace("~0", "~")
    return words.get(pointer, inside)


def _told(value: Any) -> str:
    return "—" if value is None or value == "" else _leaf(value)


def leaves(value: Any, place: str = "") -> Sequence[tuple[str, str]]:
    """(place, text) of each leaf of a JSON value, in its order."""
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in leaves(item, f"{place}.{key}" if place else str(key))]
    if isinstance(value, list) and value and any(isinstance(item, dict | list) for item in value):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, f"{place}[{index}]")]
    if value is None:
        return []
    return [(place, _leaf(value))]


def _leaf(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | dict):
        return ", ".join(str(item) for item in value) or "none"
    return str(value)


def in_order(value: Any, schema: Mapping[str, Any]) -> Any:
    """The same value with its keys in the schema's order: a database keeps no order, and people read it in that one."""
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return value
    names = [name for name in properties if name in value] + [name for name in value if name not in properties]
    return {name: in_order(value[name], properties.get(name) or {}) for name in names}
