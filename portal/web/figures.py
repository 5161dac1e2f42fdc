"""A decision in words and figures for people: reasons, quota and budget lines with bars, a price with its lines.

In charge of: turning a Decision into texts and numbers that a template shows as they are. Not in charge of: deciding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from portal.domain.decision import BudgetLine, CostLine, Decision, Inputs, Quote, Reason, StageDemand, UsageLine
from portal.domain.decision import from_json as shaped
from portal.domain.pricing import EVERYWHERE
from portal.models import Budget, DecisionRecord, Quota
from portal.web.spelling import unknown_names

SENTENCES = {
    "Allowed": "Allowed at once",
    "NeedsApproval": "Needs approval",
    "Denied": "Denied",
}
BAR = 100.0  # of a width


@dataclass(frozen=True)
class Bar:
    """A ceiling and what fills it: `first` is taken already, `second` comes on top; 0 to 100, as is the place of a
    `mark` in between (a soft line, the lower of two limits). `text` says it in figures."""

    label: str
    team: str
    text: str
    fits: bool
    first: float
    second: float
    mark: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Change:
    """A quota's limit as it was (None: there was none) and as it was asked for."""

    team: str
    dimension: str
    old: int | None
    new: int


@dataclass(frozen=True)
class PriceLine:
    sku: str
    amount: str  # "2 at 2.95 per hour", or "2" without a price
    monthly: str
    region: str
    source: str
    problem: str


@dataclass(frozen=True)
class Figures:
    """All that a page shows of one decision."""

    outcome: str
    sentence: str
    denials: list[Reason]
    approvals: list[Reason]
    notes: list[Reason]
    stages: tuple[StageDemand, ...]
    quotas: list[Bar]
    budgets: list[Bar]
    price: str  # the whole of it: "584.00 USD per month", "needs review (never free)"; empty: nothing has a price
    valid_until: Any
    lines: list[PriceLine] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def figures(decision: Decision, change: Change | None = None) -> Figures:
    """`change`: what a request for a quota changes, since its decision holds only the lines as they were."""
    quote = decision.quote
    return Figures(
        outcome=decision.outcome,
        sentence=SENTENCES[decision.outcome],
        denials=[reason for reason in decision.reasons if reason.effect == "deny"],
        approvals=[reason for reason in decision.reasons if reason.effect == "approve"],
        notes=[reason for reason in decision.reasons if reason.effect == "note"],
        stages=decision.stages,
        quotas=[_usage(line) if change is None else _changed(line, change) for line in decision.usage],
        budgets=[_budget(line, quote is None or quote.monthly is not None) for line in decision.budgets],
        price=_price_text(quote),
        valid_until=quote.valid_until if quote and quote.monthly is not None else None,
        lines=[_price(line) for line in quote.lines] if quote else [],
        hints=unknown_names(decision),
    )


def of_record(record: DecisionRecord) -> Figures:
    """The figures of a stored decision."""
    return figures(shaped(Decision, record.result), change_of(shaped(Inputs, record.inputs)))


def change_of(inputs: Inputs) -> Change | None:
    """The change of a quota that was decided on; None for what is no such thing."""
    dimension, limit = inputs.spec.get("dimension"), inputs.spec.get("limit")
    if inputs.request.kind != "Quota" or not isinstance(limit, int):
        return None
    return Change(inputs.request.team, str(dimension), (inputs.old or {}).get("limit"), limit)


def money(amount: Decimal) -> str:
    """With two decimals and thousands apart: 12,345.60."""
    return f"{amount:,.2f}"


def plain(amount: Decimal) -> str:
    """As short as it can be without losing a digit: 0.8, 3.99."""
    return f"{amount.normalize():f}"


def _price_text(quote: Quote | None) -> str:
    if quote is None or not quote.lines:
        return ""
    if quote.monthly is None:
        return "needs review (never free)"
    return f"{money(quote.monthly)} {quote.currency} per month"


def quota_bar(quota: Quota) -> Bar:
    """A quota as it stands: what is used, and what open requests hold on top."""
    held = quota.used + quota.reserved
    first, second = _widths(quota.used, held, quota.limit)
    return Bar(
        label=quota.dimension,
        team=quota.team.slug,
        text=f"{quota.used:,} used, {quota.reserved:,} reserved, limit {quota.limit:,}",
        fits=held < quota.limit,
        first=first,
        second=second,
        note=f"{quota.limit - held:,} free",
    )


def budget_bar(budget: Budget) -> Bar:
    """A budget as it stands."""
    first, _ = _widths(budget.committed, budget.committed, budget.hard)
    lines = f"soft {money(budget.soft)}, hard {money(budget.hard)} {budget.currency}"
    return Bar(
        label="Budget per month",
        team="",
        text=f"{money(budget.committed)} committed, {lines}",
        fits=budget.committed <= budget.soft,
        first=first,
        second=0,
        mark=_place(budget.soft, budget.hard),
        note=_budget_note(budget.committed, budget.soft, budget.hard),
    )


def _usage(line: UsageLine) -> Bar:
    first, second = _widths(line.before, line.after, line.limit or 0)
    return Bar(
        label=line.dimension,
        team=line.team,
        text=f"{line.before:,} → {line.after:,}{', no quota' if line.limit is None else f' of {line.limit:,}'}",
        fits=line.limit is not None and line.after <= line.limit,
        first=first,
        second=second,
        note=_usage_note(line),
    )


def _changed(line: UsageLine, change: Change) -> Bar:
    """A line of a quota that is to change: what is held stays, and the limit moves. Groups above keep theirs."""
    held = line.before
    if line.team != change.team:
        limit = line.limit or 0
        first, _ = _widths(held, held, limit)
        note = f"the group above has only {limit:,}" if limit < change.new else f"{limit - held:,} left"
        return Bar(line.dimension, line.team, f"{held:,} held of {limit:,}", True, first, 0, note=note)
    ceiling = max(change.old or 0, change.new)
    first, _ = _widths(held, held, ceiling)
    return Bar(
        label=line.dimension,
        team=line.team,
        text=f"limit {'none' if change.old is None else f'{change.old:,}'} → {change.new:,}",
        fits=held <= change.new,
        first=first,
        second=0,
        mark=None if change.old is None else _place(min(change.old, change.new), ceiling),
        note=f"{held:,} held",
    )


def _usage_note(line: UsageLine) -> str:
    if line.limit is None:
        return "no quota is set"
    over = line.after - line.limit
    return f"{over:,} over the limit" if over > 0 else f"{-over:,} left"


def _budget(line: BudgetLine, priced: bool) -> Bar:
    """`priced` False: what the request adds is unknown, and not nothing."""
    added = f" → {money(line.after)}" if priced else ""
    first, second = _widths(line.before, line.after, line.hard)
    return Bar(
        label=line.team,
        team="",
        text=f"{money(line.before)}{added} of {money(line.hard)} {line.currency}{'' if priced else ', without this'}",
        fits=line.after <= line.hard,
        first=first,
        second=second,
        mark=_place(line.soft, line.hard),
        note=_budget_note(line.after, line.soft, line.hard),
    )


def _budget_note(amount: Decimal, soft: Decimal, hard: Decimal) -> str:
    if amount > hard:
        return f"{money(amount - hard)} over the hard line"
    return f"{money(amount - soft)} over the soft line" if amount > soft else f"{money(soft - amount)} to the soft line"


def _price(line: CostLine) -> PriceLine:
    amount = f"{line.quantity:,}"
    if line.unit_price is not None:
        amount += f" at {plain(line.unit_price)} per {line.unit}"
    return PriceLine(
        sku=line.sku,
        amount=amount,
        monthly="" if line.monthly is None else money(line.monthly),
        region="" if line.region == EVERYWHERE else line.region,
        source=line.source,
        problem=_problem(line),
    )


def _problem(line: CostLine) -> str:
    """Why it has no price, short: sku and region stand beside it. Without a unit the price list has no row for it."""
    if line.problem is None:
        return ""
    return "the price list has no price for it" if not line.unit else line.problem.removeprefix("needs review: ")


def _place(part: int | Decimal, whole: int | Decimal) -> float | None:
    return round(float(part) / float(whole) * BAR, 2) if whole else None


def _widths(before: int | Decimal, after: int | Decimal, limit: int | Decimal) -> tuple[float, float]:
    """Of the part that was there and of the part that is added; what is over the limit is cut off at the end."""
    top = float(limit) or max(float(after), 1.0)
    first = min(float(before) / top, 1.0) * BAR
    second = min(max(float(after) - float(before), 0.0) / top, 1.0 - first / BAR) * BAR
    return round(first, 2), round(second, 2)


def differences(old: Any, new: Any) -> list[tuple[str, str, str]]:
    """(place, old, new) for each leaf that differs; places as people write them, `replicas.max`."""
    before, after = dict(leaves(old)), dict(leaves(new))
    places = list(dict.fromkeys([*after, *before]))
    return [
        (place, before.get(place, "—"), after.get(place, "—"))
        for place in places
        if before.get(place) != after.get(place)
    ]


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
