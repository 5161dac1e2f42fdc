"""What others have set in a claim: each field with who and when, and what of it goes beyond what was approved.

In charge of: comparing an approved spec with a live one. Not in charge of: what is done about it (services.drifting).

No drift are: what means the same (difference), what Crossplane keeps in the spec itself, defaults that the control
plane filled in (nobody owns such a field, or it has the schema's default), and what the portal itself set earlier: a
live value that only the portal owns is one that its next apply replaces.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from portal.domain.cel import CelError
from portal.domain.decision import digest
from portal.domain.difference import Difference, differences
from portal.domain.offerings import Offering

PORTAL = "portal"  # the portal's field manager
MAX_TOLD = 10  # fields in a sentence; all of them are in the rows
_LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)
Row = dict[str, Any]


class Manager(Protocol):
    """What is read of a field manager; ports.FieldManager has all of it."""

    @property
    def manager(self) -> str: ...
    @property
    def subresource(self) -> str: ...
    @property
    def at(self) -> dt.datetime | None: ...
    @property
    def fields(self) -> Sequence[str]: ...


class DriftedField(msgspec.Struct, frozen=True):
    """A field of a claim, as a JSON pointer, that was approved with one value and has another; None: it isn't set.
    `manager` "": nobody says who. `metered`: quota or price depend on it."""

    field: str
    approved: Any
    live: Any
    manager: str
    at: dt.datetime | None
    metered: bool

    def row(self) -> Row:
        """As it is kept and shown."""
        made: Row = msgspec.to_builtins(self)
        return made


class Excess(msgspec.Struct, frozen=True):
    """A dimension of which the live spec takes more than was approved."""

    dimension: str
    approved: int
    live: int


class Drift(msgspec.Struct, frozen=True):
    """All of it. `unmeasurable` says why what the live spec takes can't be told; that counts as beyond."""

    fields: tuple[DriftedField, ...] = ()
    excess: tuple[Excess, ...] = ()
    unmeasurable: str = ""

    @property
    def is_beyond(self) -> bool:
        """Whether it takes more than was approved: somebody has to say yes, or it is taken back."""
        return bool(self.excess or self.unmeasurable)

    def told(self) -> str:
        """Which fields, by whom, when, and what is beyond; for the reason of a request."""
        parts = [_told(each) for each in self.fields if each.metered or not self.is_beyond][:MAX_TOLD]
        beyond = [f"{each.dimension}: {each.live} instead of {each.approved}" for each in self.excess]
        text = "; ".join(parts)
        text += f". Beyond what was approved: {', '.join(beyond)}" if beyond else ""
        return text + (f". What it takes can't be told: {self.unmeasurable}" if self.unmeasurable else "") + "."


def drift_of(
    approved: Mapping[str, Any],
    live: Mapping[str, Any],
    managers: Sequence[Manager],
    offering: Offering,
    machinery: frozenset[str] = frozenset({"crossplane"}),
    *,
    ours: bool = True,
) -> list[DriftedField]:
    """What differs between a claim's spec as it was delivered and as it is.

    `machinery`: members of the spec that Crossplane keeps; of these only what was delivered is compared. Without any
    `managers` every difference counts: the caller knows whether the portal's own apply is on its way. `ours`: what the
    portal alone has set is from before that, and no drift.
    """
    plain, given = _plain(approved, machinery, offering), _plain(live, machinery, offering)
    found = list(differences(plain, given, offering.spec_schema))
    kept = {name: approved[name] for name in machinery if name in approved}
    found += differences(kept, _within(kept, {name: live.get(name) for name in kept}))
    return [each for each in (_field(item, managers, plain, offering, ours) for item in found) if each is not None]


def judged(rows: Sequence[Row], approved: Mapping[str, Any], live: Mapping[str, Any], offering: Offering) -> Drift:
    """What of these rows goes beyond what was approved. Both specs are without what Crossplane keeps in them."""
    fields = tuple(msgspec.convert(row, DriftedField) for row in rows)
    if not any(field.metered for field in fields):
        return Drift(fields)
    try:
        before, now = offering.measure(approved), offering.measure(live)
    except (CelError, ValueError) as error:
        return Drift(fields, unmeasurable=str(error))
    more = [Excess(name, before.get(name, 0), amount) for name, amount in sorted(now.items())]
    return Drift(fields, tuple(each for each in more if each.live > each.approved))


def values_of(rows: Sequence[Row]) -> str:
    """A digest of the metered values that are live: what was refused once is known again by it."""
    return digest([[row["field"], row["live"]] for row in rows if row["metered"]])


def news(before: Sequence[Row], now: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """(seen, ended): rows that are new or have another live value, and rows whose field is as approved again."""
    known = {row["field"]: row["live"] for row in before}
    fields = {row["field"] for row in now}
    seen = [row for row in now if row["field"] not in known or known[row["field"]] != row["live"]]
    return seen, [row for row in before if row["field"] not in fields]


def _plain(spec: Mapping[str, Any], machinery: frozenset[str], offering: Offering) -> dict[str, Any]:
    given = {name: value for name, value in spec.items() if name not in machinery}
    try:
        return offering.with_defaults(given)
    except ValueError:  # something that the schema can't even look at: compared as it is
        return given


def _field(
    item: Difference, managers: Sequence[Manager], approved: dict[str, Any], offering: Offering, ours: bool
) -> DriftedField | None:
    place = f"/spec{item.pointer}"
    owners = [each for each in managers if not each.subresource and any(_covers(name, place) for name in each.fields)]
    others = [each for each in owners if each.manager != PORTAL]
    if owners and not others and ours:
        return None  # the portal's own, from before
    if managers and not owners and item.old is None:
        return None  # filled in: nobody has set it
    newest = max(others or owners, key=lambda each: each.at or _LONG_AGO, default=None)
    return DriftedField(
        field=place,
        approved=item.old,
        live=item.new,
        manager=newest.manager if newest else "",
        at=newest.at if newest else None,
        metered=_is_metered(item, approved, offering),
    )


def _covers(owned: str, place: str) -> bool:
    """A manager's pointers end at leaves, or where a list's or a map's item begins."""
    return owned == place or place.startswith(f"{owned}/") or owned.startswith(f"{place}/")


def _is_metered(item: Difference, approved: dict[str, Any], offering: Offering) -> bool:
    """Whether quota or price are another with this field alone as it is live."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in item.pointer.split("/")[1:]]
    if not steps or steps[0] not in {*approved, *offering.spec_schema.get("properties", {})}:
        return False
    try:
        changed = offering.with_defaults(_put(approved, steps, item.new))
        return (offering.measure(changed), offering.price_keys(changed)) != (
            offering.measure(approved),
            offering.price_keys(approved),
        )
    except (CelError, ValueError):
        return True


def _put(value: Any, steps: Sequence[str], leaf: Any) -> Any:
    """A copy with `leaf` at that place; None takes the place away."""
    step, rest = steps[0], steps[1:]
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        made_list = list(value)
        made_list[int(step)] = _put(value[int(step)], rest, leaf) if rest else leaf
        return made_list
    made = dict(value) if isinstance(value, Mapping) else {}
    if rest:
        made[step] = _put(made.get(step), rest, leaf)
    elif leaf is None:
        made.pop(step, None)
    else:
        made[step] = leaf
    return made


def _within(shape: Any, value: Any) -> Any:
    """Of `value` only the members that `shape` has too."""
    if isinstance(shape, Mapping) and isinstance(value, Mapping):
        return {name: _within(item, value.get(name)) for name, item in shape.items()}
    return value


def _told(each: DriftedField) -> str:
    by = f" by {each.manager}" if each.manager else ""
    at = f" at {each.at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC" if each.at else ""
    return f"{each.field} was set from {_shown(each.approved)} to {_shown(each.live)}{by}{at}"


def _shown(value: Any) -> str:
    text = "nothing" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:79]}…"
