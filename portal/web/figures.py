"""A decision in words and figures for people: reasons, quota and budget lines with bars, a price with its lines.

In charge of: turning a Decision into texts and numbers that a template shows as they are. Not in charge of: deciding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from portal.domain.decision import (
    CHANGES,
    BudgetLine,
    CostLine,
    Decision,
    Inputs,
    Quote,
    Reason,
    StageDemand,
    UsageLine,
)
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
    price_was: str  # of a change: what it cost before, "1,168.00 USD"; else empty
    price_by: str  # and by how much it changes: "+584.00", "-584.00", "the same"
    valid_until: Any
    lines: list[PriceLine] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def figures(decision: Decision, inputs: Inputs) -> Figures:
    """`inputs`: what was decided on. It says what a quota was, and what an instance cost."""
    quote, change = decision.quote, change_of(inputs)
    changing = inputs.request.kind in CHANGES
    return Figures(
        outcome=decision.outcome,
        sentence=SENTENCES[decision.outcome],
        denials=[reason for reason in decision.reasons if reason.effect == "deny"],
        approvals=[reason for reason in decision.reasons if reason.effect == "approve"],
        notes=[reason for reason in decision.reasons if reason.effect == "note"],
        stages=decision.stages,
        quotas=[_usage(line) if change is None else _changed(line, change) for line in decision.usage],
        budgets=[_budget(line, quote is None or quote.monthly is not None) for line in decision.budgets],
        price=_price_text(quote, changing),
        price_was=_price_was(quote, inputs) if changing else "",
        price_by=_price_by(quote, inputs) if changing else "",
        valid_until=quote.valid_until if quote and quote.monthly is not None else None,
        lines=[_price(line) for line in quote.lines] if quote else [],
        hints=unknown_names(decision),
    )


def of_record(record: DecisionRecord) -> Figures:
    """The figures of a stored decision."""
    return figures(shaped(Decision, record.result), shaped(Inputs, record.inputs))


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


def _price_was(quote: Quote | None, inputs: Inputs) -> str:
    if quote is None:
        return ""
    return "unknown" if inputs.committed is None else f"{money(inputs.committed)} {quote.currency}"


def _price_by(quote: Quote | None, inputs: Inputs) -> str:
    if quote is None or quote.monthly is None or inputs.committed is None:
        return ""
    more = quote.monthly - inputs.committed
    return f"{more:+,.2f}" if more else "the same"


def _price_text(quote: Quote | None, changing: bool) -> str:
    """What changes to cost nothing says so; what has no price at all says nothing."""
    if quote is None or (not quote.lines and not changing):
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
