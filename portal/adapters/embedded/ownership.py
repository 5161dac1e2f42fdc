"""Who set which fields of a claim's spec, as far as that is not the portal: what server-side apply keeps in
metadata.managedFields.

In charge of: noting who set a field last, conflicts, and the form in a manifest. Not in charge of: writing (deliver).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

from portal.adapters.embedded.names import PORTAL_MANAGER
from portal.domain.difference import differences
from portal.domain.json_limits import pointer
from portal.ports import FieldManager

SetBy = dict[str, list[str]]  # JSON pointer into the object -> [manager, time in RFC 3339]


def after_write(before: dict[str, Any], after: dict[str, Any], set_by: SetBy, manager: str, at: str) -> SetBy:
    """Who set what once `manager` has put the body `after` in place of `before`. What the portal sets is not noted."""
    changed = _changed(before, after)
    kept = {place: who for place, who in set_by.items() if not any(_covers(place, each) for each in changed)}
    if manager == PORTAL_MANAGER:
        return kept
    return kept | {each: [manager, at] for each in changed}


def conflicts(before: dict[str, Any], after: dict[str, Any], set_by: SetBy) -> list[tuple[str, str]]:
    """(field, manager) of each field that somebody else has set and that the portal would change."""
    changed = _changed(before, after)
    return [(place, who[0]) for place, who in set_by.items() if any(_covers(place, each) for each in changed)]


def managed_fields(set_by: SetBy) -> list[dict[str, Any]]:
    """As metadata.managedFields has it: one entry for each manager and time."""
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for place, (manager, at) in sorted(set_by.items()):
        fields = entries.setdefault((manager, at), {})
        for step in _steps(place):
            fields = fields.setdefault(f"f:{step}", {})
    return [
        {"manager": manager, "operation": "Update", "time": at, "fieldsType": "FieldsV1", "fieldsV1": fields}
        for (manager, at), fields in entries.items()
    ]


def managers(manifest: dict[str, Any], made_at: dt.datetime) -> tuple[FieldManager, ...]:
    """Those of a manifest; what none of them has set is the portal's."""
    others = [
        FieldManager(
            manager=entry["manager"],
            operation=entry["operation"],
            subresource="",
            at=dt.datetime.fromisoformat(entry["time"]),
            fields=tuple(_owned(entry["fieldsV1"], ())),
        )
        for entry in manifest["metadata"].get("managedFields", ())
    ]
    theirs = [place for entry in others for place in entry.fields]
    leaves = [
        each for each in _leaves(manifest.get("spec", {}), ("spec",)) if not any(_covers(p, each) for p in theirs)
    ]
    return (FieldManager(PORTAL_MANAGER, "Apply", "", made_at, tuple(leaves)), *others)


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [f"/spec{each.pointer}" for each in differences(before.get("spec") or {}, after.get("spec") or {})]


def _covers(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _steps(place: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in place.split("/")[1:]]


def _owned(fields: Mapping[str, Any], steps: tuple[str, ...]) -> Iterator[str]:
    for key, below in fields.items():
        place = (*steps, key.removeprefix("f:"))
        if below:
            yield from _owned(below, place)
        else:
            yield pointer(*place)


def _leaves(value: Any, steps: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*steps, key))
    else:
        yield pointer(*steps)
