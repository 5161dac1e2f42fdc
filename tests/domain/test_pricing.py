"""Price lists with bad rows, and quotes: the dearest place, exact, and never free by accident."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.decision import PriceRow
from portal.domain.pricing import parse_prices, quote

HEADER = "sku,unit,price,currency,region,effectiveFrom,source,asOf"
AT = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)


def line(
    sku: str = "gpu.l4", price: str = "0.80", region: str = "*", since: str = "2026-01-01", unit: str = "hour"
) -> str:
    return f"{sku},{unit},{price},EUR,{region},{since},https://example.org/prices,2026-01-01"


def parsed(*lines: str) -> str:
    return "\n".join([HEADER, *lines])


def row(
    sku: str = "gpu.l4",
    price: str | None = "0.80",
    region: str = "*",
    since: str = "2026-01-01",
    unit: str = "hour",
    currency: str = "EUR",
) -> PriceRow:
    amount = None if price is None else Decimal(price)
    day = dt.date.fromisoformat(since)
    return PriceRow(sku, unit, amount, currency, region, day, "test", day, None if amount else "needs review: empty")


REFUSED = [
    ("sku,price", 1, "the header must have the columns", "columns are missing"),
    (HEADER + ",extra", 1, "the header must have the columns", "a column that nobody reads"),
    ("", 1, "it has none", "an empty file"),
    (parsed(line().replace("EUR", "USD")), 2, "prices are in EUR; convert it first", "another currency"),
    (parsed(line(since="2026-13-01")), 2, "effectiveFrom '2026-13-01' is not a date", "no such month"),
    (parsed(line(since="20260101")), 2, "is not a date such as", "one way to write a date"),
    (parsed(line(since="")), 2, "effectiveFrom is empty", "no date"),
    (parsed(line(), line()), 3, "is on line 2 already", "a duplicate, as zones repeat rows"),
    (parsed(line(), line(price="9")), 3, "is on line 2 already", "the same key with another price"),
    (parsed(line(unit="fortnight")), 2, "unit 'fortnight' is not one of hour, month", "an unknown unit"),
    (parsed(line(sku="")), 2, "sku is empty", "no sku"),
    (parsed(line(sku="gpu l4")), 2, "sku 'gpu l4'", "a blank in a sku"),
    (parsed(line(region="eu central")), 2, "region 'eu central'", "a blank in a region"),
    (parsed("gpu.l4,hour,1"), 2, "8 cells are needed; this line has 3", "a short line"),
    (parsed(line() + ",x"), 2, "8 cells are needed; this line has 9", "a long line"),
    (parsed(line(), '"gpu.l4'), 3, "unexpected end of data", "an open quote"),
]


@pytest.mark.parametrize(("text", "number", "message", "reason"), REFUSED)
def test_a_row_that_cannot_be_read_is_refused_with_its_line(text: str, number: int, message: str, reason: str) -> None:
    (problem,) = parse_prices(text, "EUR").refused
    assert problem.line == number, reason
    assert message in problem.message, reason


REVIEW = [
    ("", "the price is empty"),
    ("0", "never taken as free"),
    ("0.00", "never taken as free"),
    ("-2.95", "not a plain decimal"),
    ("NaN", "not a plain decimal"),
    ("inf", "not a plain decimal"),
    ("1e-9", "not a plain decimal"),
    ("1_000", "not a plain decimal"),
    ("２.９５", "not a plain decimal"),
    ("$2.95", "not a plain decimal"),
    ("9" * 40, "not a plain decimal"),
    ("0.0295", "100 times or more off the median"),
    ("0.01", "100 times or more off the median"),
    ("295", "100 times or more off the median"),
]


@pytest.mark.parametrize(("price", "message"), REVIEW)
def test_a_doubtful_price_is_kept_for_review_and_never_free(price: str, message: str) -> None:
    good = [line("gpu.h100-80gb", "2.95", region) for region in ("eu-central", "eu-west")]
    found = parse_prices(parsed(*good, line("gpu.h100-80gb", price, "us-east")), "EUR")
    assert [p.line for p in found.problems] == [4]
    assert message in found.problems[0].message
    assert not found.refused
    doubtful = found.rows[2]
    assert (doubtful.price, doubtful.problem) == (None, found.problems[0].message)
    asked = quote([("gpu.h100-80gb", 1)], ["us-east"], found.rows, AT, "EUR", 7)
    assert asked.monthly is None
    assert asked.lines[0].problem == doubtful.problem


def test_a_price_within_its_class_is_taken_and_a_lone_sku_is_compared_with_its_family() -> None:
    fine = parse_prices(parsed(line("gpu.l4", "0.80"), line("gpu.b200", "6.99"), line("db.gib", "0.01")), "EUR")
    assert fine.problems == ()
    lone = parse_prices(parsed(line("gpu.l40s", "1.55"), line("gpu.h100", "2.95"), line("gpu.b200", "0.01")), "EUR")
    assert [(p.line, p.verdict) for p in lone.problems] == [(4, "review")]
    assert "all of gpu" in lone.problems[0].message


def test_one_wild_row_of_three_does_not_take_the_good_ones_with_it() -> None:
    wild = [line("gpu.h100", price, region) for price, region in (("2.95", "a"), ("3.10", "b"), ("2950", "c"))]
    assert [p.line for p in parse_prices(parsed(*wild), "EUR").problems] == [4]


def test_columns_may_come_in_any_order_with_a_byte_order_mark_and_blank_lines() -> None:
    header = "\ufeffprice,sku,unit,currency,region,effectiveFrom,source,asOf"
    found = parse_prices(header + "\r\n\r\n1.5,a,month,EUR,*,2026-01-01,x,2026-01-01", "EUR")
    assert found.problems == ()
    assert (found.rows[0].sku, found.rows[0].price) == ("a", Decimal("1.5"))


QUOTES = [
    ([row()], ["eu-central"], "584.00", "eu-central", "`*` applies everywhere; 0.80 x 730"),
    ([row(unit="month")], [], "0.80", "*", "a monthly price is taken once"),
    ([row(price="1", region="a"), row(price="2", region="b")], ["a", "b"], "1460.00", "b", "the dearest eligible"),
    ([row(price="1", region="a"), row(price="2", region="b")], ["a"], "730.00", "a", "b is not eligible"),
    ([row(price="1", region="a"), row(price="2", region="b")], [], "1460.00", "b", "no regions: everywhere"),
    ([row(price="1", region="a"), row(price="2")], [], "1460.00", "*", "a place that only `*` covers counts too"),
    ([row(price="1", region="a"), row(price="2")], ["a"], "730.00", "a", "a region's own row before `*`"),
    ([row(price="1"), row(price="3", since="2026-12-01")], ["a"], "2190.00", "a", "effective from today"),
    ([row(price="1"), row(price="3", since="2026-12-02")], ["a"], "730.00", "a", "not effective yet"),
    ([row(price="1"), row(price=None, since="2026-06-01")], ["a"], None, "a", "the newest is under review"),
    ([row(price=None), row(price="1", since="2026-06-01")], ["a"], "730.00", "a", "a newer row settled the review"),
    ([row(price="9", region="a"), row(price=None, region="b")], ["a", "b"], None, "b", "unknown is dearer than any"),
    ([row(price="9", region="a")], ["a", "b"], None, "b", "no price where it might go"),
    ([row(since="2027-01-01")], ["a"], None, "a", "only future prices"),
    ([row(currency="USD")], ["a"], None, "a", "another currency"),
    ([row(), row(currency="USD")], ["a"], None, "a", "two rows of one day, one in another currency, in either order"),
    ([row(currency="USD"), row()], ["a"], None, "a", "the same the other way round"),
    ([], [], None, "*", "no prices at all"),
    ([row(price="0")], ["a"], None, "a", "a price of 0 that got into a list somehow"),
    ([row(price="-1")], ["a"], None, "a", "a negative one"),
    ([row(price="NaN")], ["a"], None, "a", "one that is no number"),
    ([row(price="0.000005", unit="month")], ["a"], "0.00", "a", "rounded only at the end"),
]


@pytest.mark.parametrize(("rows", "regions", "monthly", "region", "reason"), QUOTES)
def test_a_quote(rows: list[PriceRow], regions: list[str], monthly: str | None, region: str, reason: str) -> None:
    found = quote([("gpu.l4", 1)], regions, rows, AT, "EUR", 30)
    assert found.monthly == (None if monthly is None else Decimal(monthly)), reason
    assert found.region == region, reason
    assert found.valid_until == dt.date(2026, 12, 31)
    assert (found.lines[0].problem is None) == (monthly is not None), reason


def test_cents_round_half_up_per_line_and_each_line_is_shown() -> None:
    rows = [row("a", "0.005", unit="month"), row("b", "0.015", unit="month")]
    found = quote([("b", 1), ("a", 1)], ["x"], rows, AT, "EUR", 1)
    assert [(item.sku, item.monthly) for item in found.lines] == [("a", Decimal("0.01")), ("b", Decimal("0.02"))]
    assert found.monthly == Decimal("0.03")


def test_an_offering_without_price_keys_costs_nothing() -> None:
    assert quote([], ["x"], [row()], AT, "EUR", 1).monthly == Decimal("0.00")


def test_a_negative_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        quote([("gpu.l4", -1)], [], [row()], AT, "EUR", 1)


PRICES = st.none() | st.decimals(min_value=Decimal("0.0001"), max_value=10**6, places=4)
ROWS = st.builds(
    PriceRow,
    sku=st.sampled_from(["a", "b"]),
    unit=st.sampled_from(["hour", "month"]),
    price=PRICES,
    currency=st.sampled_from(["EUR", "EUR", "EUR", "USD"]),
    region=st.sampled_from(["*", "x", "y", "z"]),
    effective_from=st.dates(dt.date(2026, 11, 29), dt.date(2026, 12, 2)),
    source=st.just("test"),
    as_of=st.just(dt.date(2026, 11, 1)),
)
KEYS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2**53)), max_size=3)
REGIONS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=3)


@given(KEYS, REGIONS, st.lists(ROWS, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_keys_regions_and_rows_does_not_matter(
    keys: list[tuple[str, int]], regions: list[str], rows: list[PriceRow], random: object
) -> None:
    before = quote(keys, regions, rows, AT, "EUR", 7)
    for items in (keys, regions, rows):
        random.shuffle(items)  # type: ignore[attr-defined]  # hypothesis hands in a random.Random
    assert quote(keys, regions, rows, AT, "EUR", 7) == before


@given(KEYS, REGIONS, st.lists(ROWS, max_size=8))
def test_a_quote_is_never_negative_and_known_only_if_every_line_is(
    keys: list[tuple[str, int]], regions: list[str], rows: list[PriceRow]
) -> None:
    found = quote(keys, regions, rows, AT, "EUR", 7)
    assert found.monthly is None or found.monthly >= 0
    assert (found.monthly is None) == any(item.problem for item in found.lines)


@given(KEYS, REGIONS.filter(bool), st.lists(ROWS, max_size=8))
def test_the_ceiling_covers_every_eligible_region(
    keys: list[tuple[str, int]], regions: list[str], rows: list[PriceRow]
) -> None:
    ceiling = quote(keys, regions, rows, AT, "EUR", 7).monthly
    alone = [quote(keys, [region], rows, AT, "EUR", 7).monthly for region in regions]
    if ceiling is None:
        assert None in alone
    else:
        assert ceiling == max(amount for amount in alone if amount is not None)
        assert None not in alone


@given(st.integers(0, 2**53), st.integers(0, 2**53), REGIONS, st.lists(ROWS, max_size=8))
def test_more_never_costs_less(first: int, second: int, regions: list[str], rows: list[PriceRow]) -> None:
    less, more = (quote([("a", n)], regions, rows, AT, "EUR", 7).monthly for n in sorted((first, second)))
    assert (less is None) == (more is None)
    assert less is None or more is None or less <= more


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_but_never_breaks(text: str) -> None:
    for found in (parse_prices(text, "EUR"), parse_prices(HEADER + "\n" + text, "EUR")):
        assert all(p.line >= 1 and p.message for p in found.problems)
        assert all(r.price is None or r.price > 0 for r in found.rows)
