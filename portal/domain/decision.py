"""The words a decision is made of: what goes in (Inputs), what comes out (Decision).

In charge of: the shapes that governance reads and writes, and that are stored so that a decision can be explained and
made again. Not in charge of: how a decision is reached (governance), where inputs come from (services), or prices,
quotas and policies themselves. Everything here is immutable and turns into plain JSON with `to_json` and back with
`from_json`; money is a Decimal here and a string there.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from decimal import Decimal
from typing import Any, Literal, TypeVar

import msgspec

Outcome = Literal["Allowed", "NeedsApproval", "Denied"]
Effect = Literal["deny", "approve", "note"]
RequestKind = Literal["Create", "Change", "Suspend", "Resume", "Delete", "Quota"]
CHANGES: tuple[RequestKind, ...] = ("Change", "Suspend", "Resume")  # of an Instance that lives
APPLIED: tuple[RequestKind, ...] = ("Create", *CHANGES)  # whose spec becomes the claim's


class RequestFacts(msgspec.Struct, frozen=True):
    """Who asks for what, as policies see it. `groups` are the requester's groups and teams at that moment."""

    kind: RequestKind
    requester: str
    groups: tuple[str, ...]
    team: str
    environment: str
    labels: dict[str, str]
    reason: str


class HeldLine(msgspec.Struct, frozen=True):
    """One quota row as it was under the lock: `held` = reserved + used, by everybody but this request's instance, which
    holds `own` already, apart from this request.

    `limit` None says that neither this team nor a parent group has a quota for the dimension. Rows of parent groups are
    lines of their own (root first), since each of them must fit.
    """

    team: str
    dimension: str
    held: int
    limit: int | None
    own: int = 0


class PriceRow(msgspec.Struct, frozen=True):
    """One row of a price list. `price` is None when it can't be relied on; `problem` then says why (never free)."""

    sku: str
    unit: str
    price: Decimal | None
    currency: str
    region: str
    effective_from: dt.date
    source: str
    as_of: dt.date
    problem: str | None = None


class BudgetState(msgspec.Struct, frozen=True):
    """One budget row as it was under the lock: `committed` is the monthly run rate without this request's instance."""

    team: str
    currency: str
    committed: Decimal
    soft: Decimal
    hard: Decimal


class SharedApprovers(msgspec.Struct, frozen=True):
    """How many of the people counted in `Inputs.approvers` are in exactly these groups, two or more of them."""

    groups: tuple[str, ...]  # sorted
    people: int


class Inputs(msgspec.Struct, frozen=True):
    """Everything a decision depends on. Offering and bundle are named by digest: their texts are stored by it.

    Of a change: `old` is the spec that was approved before, `offering_was` the digest of the offering it was approved
    with, `committed` the monthly amount that the instance counts for already.
    """

    request: RequestFacts
    offering: str | None
    offering_digest: str | None
    bundle_digest: str
    spec: dict[str, Any]
    old: dict[str, Any] | None
    held: tuple[HeldLine, ...]
    prices: tuple[PriceRow, ...]
    budgets: tuple[BudgetState, ...]
    approvers: dict[str, int]  # group -> how many of its members may vote on this request (not one's own)
    at: dt.datetime
    shared_approvers: tuple[SharedApprovers, ...] = ()  # both come from approval.count_approvers
    offering_was: str | None = None
    committed: Decimal | None = None


class UsageLine(msgspec.Struct, frozen=True):
    """A quota line before and after this request, in the dimension's unit. It fits when after <= limit."""

    team: str
    dimension: str
    before: int
    after: int
    limit: int | None


class CostLine(msgspec.Struct, frozen=True):
    """One priced component, in the region that was quoted. `monthly` None: `problem` says what is unknown."""

    sku: str
    quantity: int
    unit: str
    unit_price: Decimal | None
    region: str
    monthly: Decimal | None
    source: str
    problem: str | None = None


class Quote(msgspec.Struct, frozen=True):
    """The monthly ceiling in the dearest eligible region. `monthly` None: needs review, never free."""

    currency: str
    monthly: Decimal | None
    region: str | None
    lines: tuple[CostLine, ...]
    valid_until: dt.date


class BudgetLine(msgspec.Struct, frozen=True):
    """A budget before and after this request, per month."""

    team: str
    currency: str
    before: Decimal
    after: Decimal
    soft: Decimal
    hard: Decimal


class Reason(msgspec.Struct, frozen=True):
    """Why: a stable `code` to grep for, a message that says what would have passed, and the field it is about."""

    code: str
    effect: Effect
    message: str
    field: str | None = None  # JSON pointer, e.g. /spec/replicas/max


class StageDemand(msgspec.Struct, frozen=True):
    """A stage that this request must pass: `quorum` members of `group`, within `timeout_hours`, else it expires."""

    code: str
    group: str
    quorum: int
    timeout_hours: int
    message: str


class Decision(msgspec.Struct, frozen=True):
    """What the policies say, with every reason (not only the first) and the figures it rests on."""

    outcome: Outcome
    reasons: tuple[Reason, ...]
    stages: tuple[StageDemand, ...]
    usage: tuple[UsageLine, ...]
    quote: Quote | None
    budgets: tuple[BudgetLine, ...]


T = TypeVar("T", bound=msgspec.Struct)


def to_json(value: msgspec.Struct) -> dict[str, Any]:
    """Plain JSON of one of the shapes above, equal to what a database gives back of it: Decimal and dates become
    strings, tuples lists."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return plain


def from_json(shape: type[T], value: dict[str, Any]) -> T:
    """The shape again. Raises msgspec.ValidationError, which names the path, when the JSON was altered in form."""
    return msgspec.convert(value, shape, strict=False, str_keys=True)


def digest(value: Any) -> str:
    """sha256 over canonical JSON (sorted keys, no spaces): 64 hexadecimal digits."""
    plain = msgspec.to_builtins(value, str_keys=True)
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()
