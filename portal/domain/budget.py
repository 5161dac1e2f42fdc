"""Budget arithmetic: the monthly run rate with a request, against each soft and hard line.

In charge of: sums, comparisons and their messages. Not in charge of: what a request costs (pricing), reading or locking
budgets (services), or who is asked over a soft line (the bundle). Money is a Decimal in the budget's currency, per
month.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from portal.domain.decision import BudgetLine, BudgetState, Quote, Reason


def budget_lines(
    budgets: Iterable[BudgetState], quote: Quote, instead_of: Decimal | None = None
) -> tuple[BudgetLine, ...]:
    """Each budget before and after the quoted request. `after` is `before` under an unknown price. `instead_of`: what
    the instance that it changes is committed for already."""
    own = instead_of or Decimal(0)
    monthly = own if quote.monthly is None else quote.monthly
    return tuple(
        BudgetLine(b.team, b.currency, b.committed + own, b.committed + monthly, b.soft, b.hard) for b in budgets
    )


def check_budgets(lines: Sequence[BudgetLine], quote: Quote) -> tuple[Reason, ...]:
    """Every line that is passed, all of them named.

    `budget-exceeded` (deny) over the hard line, `budget-soft` (approve) over the soft one only, `budget-currency`
    (deny) for a budget in another currency than the quote. Reaching a line exactly is within it. Under an unknown
    price a line counts as passed once it is reached, since whatever the price is, it is more than nothing.
    """
    return tuple(reason for line in lines if (reason := _check(line, quote)) is not None)


def _check(line: BudgetLine, quote: Quote) -> Reason | None:
    if line.currency != quote.currency:
        message = (
            f"the budget of {line.team} is in {line.currency} and the quote in {quote.currency}: they can't be "
            f"compared. Ask a platform admin for a budget in {quote.currency}"
        )
        return Reason("budget-currency", "deny", message)
    if _passed(line, line.hard, quote):
        return Reason("budget-exceeded", "deny", _message(line, line.hard, "hard", quote))
    if _passed(line, line.soft, quote):
        return Reason("budget-soft", "approve", _message(line, line.soft, "soft", quote))
    return None


def _passed(line: BudgetLine, mark: Decimal, quote: Quote) -> bool:
    if quote.monthly is None:
        return line.before >= mark
    return line.after > line.before and line.after > mark


def _message(line: BudgetLine, mark: Decimal, name: str, quote: Quote) -> str:
    if quote.monthly is None:
        return (
            f"{line.team} has committed {money(line.before, line.currency)} a month of its {name} line of "
            f"{money(mark, line.currency)}; nothing more fits, and the price of this is unknown"
            f"{'. Ask a platform admin for a larger budget' if name == 'hard' else ''}"
        )
    room = max(Decimal(0), mark - line.before)
    message = (
        f"{line.team} would commit {money(line.after, line.currency)} a month, over its {name} line of "
        f"{money(mark, line.currency)}; {f'up to {money(room, line.currency)}' if room else 'nothing more'} fits"
    )
    if name == "soft":
        return f"{message} without approval"
    return f"{message}. Ask for less, or ask a platform admin for a budget of {money(line.after, line.currency)}"


def money(amount: Decimal, currency: str) -> str:
    """`1234.50 EUR`: two decimals, no grouping, so that it can be searched for."""
    return f"{amount:.2f} {currency}"
