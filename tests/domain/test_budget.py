"""Budget sums: soft and hard lines, all checked, all named."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.budget import budget_lines, check_budgets
from portal.domain.decision import BudgetState, Quote


def quote(monthly: str | Decimal | None, currency: str = "EUR") -> Quote:
    amount = None if monthly is None else Decimal(monthly)
    return Quote(currency, amount, "eu-central", (), dt.date(2026, 12, 31))


def budget(team: str, committed: str, soft: str, hard: str, currency: str = "EUR") -> BudgetState:
    return BudgetState(team, currency, Decimal(committed), Decimal(soft), Decimal(hard))


CASES = [
    ([("search", "0", "80", "100")], "80", [], "reaching the soft line is within it"),
    ([("search", "0", "80", "100")], "80.01", ["budget-soft"], "a cent over the soft line asks"),
    ([("search", "0", "80", "100")], "100", ["budget-soft"], "reaching the hard line is within it"),
    ([("search", "0", "80", "100")], "100.01", ["budget-exceeded"], "a cent over the hard line, named once"),
    ([("search", "500", "80", "100")], "0", [], "what costs nothing passes though prices rose"),
    (
        [("org", "0", "900", "1000"), ("dept", "0", "10", "1000"), ("search", "95", "80", "100")],
        "20",
        ["budget-soft", "budget-exceeded"],
        "the first is fine, the second asks, the third is exceeded (case 25)",
    ),
    ([("search", "99", "80", "100")], None, ["budget-soft"], "unknown price, over the soft line already"),
    ([("search", "100", "80", "100")], None, ["budget-exceeded"], "unknown price is more than the nothing that fits"),
    ([("search", "0", "80", "100")], None, [], "unknown price: the price reviewers decide"),
    ([], "1e9", [], "no budget, no line"),
]


@pytest.mark.parametrize(("rows", "monthly", "codes", "reason"), CASES)
def test_every_passed_line_is_named(
    rows: list[tuple[str, str, str, str]], monthly: str | None, codes: list[str], reason: str
) -> None:
    asked = quote(monthly)
    lines = budget_lines([budget(*row) for row in rows], asked)
    assert [r.code for r in check_budgets(lines, asked)] == codes, reason


def test_the_message_says_what_would_have_fitted() -> None:
    asked = quote("4000")
    (reason,) = check_budgets(budget_lines([budget("search", "1000", "3000", "4500.5")], asked), asked)
    assert reason.effect == "deny"
    assert reason.message == (
        "search would commit 5000.00 EUR a month, over its hard line of 4500.50 EUR; up to 3500.50 EUR fits. "
        "Ask for less, or ask a platform admin for a budget of 5000.00 EUR"
    )


def test_over_a_soft_line_nobody_has_to_ask_for_another_budget() -> None:
    asked = quote("10")
    (reason,) = check_budgets(budget_lines([budget("search", "80", "80", "100")], asked), asked)
    assert reason.message == (
        "search would commit 90.00 EUR a month, over its soft line of 80.00 EUR; nothing more fits without approval"
    )


def test_another_currency_is_refused_and_not_compared() -> None:
    asked = quote("1")
    (reason,) = check_budgets(budget_lines([budget("search", "0", "80", "100", "USD")], asked), asked)
    assert (reason.code, reason.effect) == ("budget-currency", "deny")


@given(st.decimals(0, 10**7, places=2), st.decimals(0, 10**7, places=2), st.decimals(0, 10**7, places=2))
def test_without_a_denial_the_hard_line_holds_to_the_cent(committed: Decimal, hard: Decimal, monthly: Decimal) -> None:
    asked = quote(monthly)
    lines = budget_lines([BudgetState("search", "EUR", committed, Decimal(0), hard)], asked)
    denied = any(r.effect == "deny" for r in check_budgets(lines, asked))
    assert denied == (monthly > 0 and committed + monthly > hard)
