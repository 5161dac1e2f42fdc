"""A claim that is on its way out: for how long, which finalizers hold it, and which composed objects hold those.

In charge of: the sentence that names them. Not in charge of: asking for a deletion, or when it counts as stuck
(the caller's `stuck_after`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from portal.domain import advice
from portal.domain.conditions import of_manifest, time_of
from portal.domain.spans import span

SHOWN = 3  # objects with what holds them; more are counted
MAX_SAID = 300  # characters of what one object says


class Leaving(Protocol):
    """What is read of a composed object."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def manifest(self) -> Mapping[str, Any]: ...


def told(
    asked: dt.datetime, finalizers: Sequence[str], composed: Sequence[Leaving], now: dt.datetime, ours: bool
) -> str:
    """Since when, what holds the claim, and what of it is still there and why. `ours`: the portal asked for it."""
    held = ", ".join(f"{name}{_because(name)}" for name in finalizers)
    message = f"deleting for {span(now - asked)}"
    message += "" if ours else ", asked by somebody other than the portal"
    message += f"; waiting for finalizer {held}" if held else "; no finalizer holds it"
    left = ", ".join(f"{each.kind} {each.name}" for each in composed[:5])
    message += f"; still there: {left}" if left else ""
    message += f" and {len(composed) - 5} more" if len(composed) > 5 else ""
    holders = [each for each in composed if kept_by(each.manifest)]
    message += "".join(f"; {_holder(each, now)}" for each in holders[:SHOWN])
    return message + (f"; {len(holders) - SHOWN} more objects keep finalizers" if len(holders) > SHOWN else "")


def kept_by(manifest: Mapping[str, Any]) -> list[str]:
    """The finalizers of an object."""
    listed = _metadata(manifest).get("finalizers")
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def to_do(composed: Sequence[Leaving], stuck: bool, ours: bool) -> str:
    """Who must do what about it."""
    if not stuck:
        return advice.EXPECTED if ours else advice.NOT_OURS
    said = " ".join(_said(each) for each in composed)
    holders = [f"{each.kind} {each.name}" for each in composed if kept_by(each.manifest)]
    whom = f" of {', '.join(holders[:SHOWN])}" if holders else ""
    return advice.about(
        said,
        f"The platform team sees why whoever set the finalizer{whom} doesn't remove it. It is taken off by hand only "
        "when what it stands for is gone; quota is held until the claim is gone.",
    )


def _holder(each: Leaving, now: dt.datetime) -> str:
    asked = time_of(_metadata(each.manifest).get("deletionTimestamp"))
    when = f"asked to go {span(now - asked)} ago" if asked else "not asked to go yet"
    kept = ", ".join(f"{name}{_because(name)}" for name in kept_by(each.manifest))
    said = _said(each)
    return f"{each.kind} {each.name} ({when}) keeps finalizer {kept}" + (f", and says: {said}" if said else "")


def _said(each: Leaving) -> str:
    """What it says of its own trouble: Synced is where a provider writes why it can't delete."""
    synced = of_manifest(each.manifest).get("Synced")
    text = synced.text() if synced is not None and synced.status == "False" else each.message
    return text if len(text) <= MAX_SAID else text[: MAX_SAID - 1] + "…"


def _because(finalizer: str) -> str:
    why = advice.why_kept(finalizer)
    return f" because {why}" if why else ""


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
