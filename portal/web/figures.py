"""A decision in words and figures for people: reasons, quota and budget lines with bars, a price with its lines.

In charge of: turning a Decision into texts and numbers that a template shows as they are. Not in charge of: deciding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from portal.domain.decision import BudgetLine, CostLine, Decision, Quote, Reason, StageDemand, UsageLine, from_json
from portal.models import Budget, DecisionRecord, Quota

SENTENCES = {
    "Allowed": "Allowed at once",
    "NeedsApproval": "Needs approval",
    "Denied": "Denied",
}
BAR = 100.0  # units of a bar's width


@dataclass(frozen=True)
class Bar:
    """A ceiling and what fills it: `before` of it is taken already, `added` comes on top. Widths are 0 to 100."""

    label: str
    team: str
    before: str
    after: str
    limit: str
    fits: bool
    first: float
    second: float
    soft_at: float | None = None
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class PriceLine:
    sku: str
    amount: str  # "2 at 2.95 per hour"
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
    monthly: str
    currency: str
    region: str
    valid_until: Any
    lines: list[PriceLine] = field(default_factory=list)
    priced: bool = False


def figures(decision: Decision) -> Figures:
    quote = decision.quote
    return Figures(
        outcome=decision.outcome,
        sentence=SENTENCES[decision.outcome],
        denials=[reason for reason in decision.reasons if reason.effect == "deny"],
        approvals=[reason for reason in decision.reasons if reason.effect == "approve"],
        notes=[reason for reason in decision.reasons if reason.effect == "note"],
        stages=decision.stages,
        quotas=[_usage(line) for line in decision.usage],
        budgets=[_budget(line) for line in decision.budgets],
        monthly=monthly_text(quote),
        currency=quote.currency if quote else "",
        region=(quote.region or "") if quote else "",
        valid_until=quote.valid_until if quote else None,
        lines=[_price(line) for line in quote.lines] if quote else [],
        priced=bool(quote and quote.lines),
    )


def of_record(record: DecisionRecord) -> Figures:
    """The figures of a stored decision."""
    return figures(from_json(Decision, record.result))


def money(amount: Decimal) -> str:
    """With two decimals and thousands apart: 12,345.60."""
    return f"{amount:,.2f}"


def plain(amount: Decimal) -> str:
    """As short as it can be without losing a digit: 0.8, 3.99."""
    return f"{amount.normalize():f}"


def monthly_text(quote: Quote | None) -> str:
    if quote is None or not quote.lines:
        return ""
    return "needs review" if quote.monthly is None else f"{money(quote.monthly)} {quote.currency}"


def quota_bar(quota: Quota) -> Bar:
    """A quota as it stands: what is used, and what open requests hold on top."""
    held = quota.used + quota.reserved
    first, second = _widths(quota.used, held, quota.limit)
    return Bar(
        label=quota.dimension,
        team=quota.team.slug,
        before=f"{quota.used:,}",
        after=f"{quota.reserved:,}",
        limit=f"{quota.limit:,}",
        fits=held < quota.limit,
        first=first,
        second=second,
        note=f"{quota.limit - held:,} free",
    )


def budget_bar(budget: Budget) -> Bar:
    """A budget as it stands."""
    first, _ = _widths(budget.committed, budget.committed, budget.hard)
    soft_at = round(float(budget.soft / budget.hard) * BAR, 2) if budget.hard else None
    return Bar(
        label="Budget per month",
        team="",
        before=money(budget.committed),
        after=money(budget.soft),
        limit=money(budget.hard),
        fits=budget.committed <= budget.soft,
        first=first,
        second=0,
        soft_at=soft_at,
        unit=budget.currency,
        note=_budget_note(budget.committed, budget.soft, budget.hard),
    )


def _usage(line: UsageLine) -> Bar:
    first, second = _widths(line.before, line.after, line.limit or 0)
    return Bar(
        label=line.dimension,
        team=line.team,
        before=f"{line.before:,}",
        after=f"{line.after:,}",
        limit="no quota" if line.limit is None else f"{line.limit:,}",
        fits=line.limit is not None and line.after <= line.limit,
        first=first,
        second=second,
        note=_usage_note(line),
    )


def _usage_note(line: UsageLine) -> str:
    if line.limit is None:
        return "no quota is set"
    over = line.after - line.limit
    return f"{over:,} over the limit" if over > 0 else f"{-over:,} left"


def _budget(line: BudgetLine) -> Bar:
    first, second = _widths(line.before, line.after, line.hard)
    return Bar(
        label=line.team,
        team="",
        before=money(line.before),
        after=money(line.after),
        limit=money(line.hard),
        fits=line.after <= line.hard,
        first=first,
        second=second,
        soft_at=round(float(line.soft / line.hard) * BAR, 2) if line.hard else None,
        unit=line.currency,
        note=_budget_note(line.after, line.soft, line.hard),
    )


def _budget_note(amount: Decimal, soft: Decimal, hard: Decimal) -> str:
    if amount > hard:
        return f"{money(amount - hard)} over the hard line"
    return f"{money(amount - soft)} over the soft line" if amount > soft else f"{money(soft - amount)} to the soft line"


def _price(line: CostLine) -> PriceLine:
    unit_price = "unknown" if line.unit_price is None else plain(line.unit_price)
    return PriceLine(
        sku=line.sku,
        amount=f"{line.quantity:,} at {unit_price} per {line.unit}",
        monthly="needs review" if line.monthly is None else money(line.monthly),
        region=line.region,
        source=line.source,
        problem=line.problem or "",
    )


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
