"""Prices: reading a price list, and quoting a request's monthly ceiling from one.

In charge of: which rows of a list can be relied on, and the sum for the dearest place a request may end up in. Not in
charge of: what a spec is priced by (offerings), storing lists (services), budgets. Money is an exact Decimal, rounded
half-up to cents once per line. A price that can't be relied on is "needs review", never free.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections.abc import Collection, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from statistics import median_high, median_low
from typing import Literal, NamedTuple

import msgspec

from portal.domain.decision import CostLine, PriceRow, Quote

COLUMNS = ("sku", "unit", "price", "currency", "region", "effectiveFrom", "source", "asOf")
EVERYWHERE = "*"

HOURS_PER_MONTH = 730  # 8760 hours a year / 12, as cloud calculators count
UNITS = {"hour": HOURS_PER_MONTH, "month": 1}  # unit -> how many of it a month has

MAX_LENGTHS = {"sku": 100, "region": 63, "source": 500}
FAR = 100  # times its class's median, either way: skypilot#9156 had a B200 at $0.01 (read 2026-12)
_CENT = Decimal("0.01")
_PLAIN = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?", re.ASCII)  # Decimal() alone would take 1_000, 1e9 and other scripts
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


class PriceProblem(msgspec.Struct, frozen=True):
    """What is wrong with one line of the file (1 is the header). `review`: the row is kept without a price."""

    line: int
    verdict: Literal["refused", "review"]
    message: str


class PriceList(msgspec.Struct, frozen=True):
    """A price list that was read. Load it only if `refused` is empty: a row that is left out could be the dearest."""

    rows: tuple[PriceRow, ...]
    problems: tuple[PriceProblem, ...]

    @property
    def refused(self) -> tuple[PriceProblem, ...]:
        """The lines that can't be taken at all."""
        return tuple(problem for problem in self.problems if problem.verdict == "refused")


class PriceKey(NamedTuple):
    """A priced component of a request: how many of a sku."""

    sku: str
    quantity: int


class _Refused(Exception):
    pass


def parse_prices(text: str, currency: str) -> PriceList:
    """Read a CSV with the columns COLUMNS (any order), all rows in `currency`.

    Refuses, with the line: a wrong header, an empty or malformed cell, an unknown unit, another currency, a bad date, a
    second row for the same (sku, region, effectiveFrom). Keeps without a price, for review: a price that is empty, 0,
    negative, no plain number, or FAR times off the median of its class (case 20).
    """
    rows: list[tuple[int, PriceRow]] = []
    problems: list[PriceProblem] = []
    seen: dict[tuple[str, str, dt.date], int] = {}
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        header = _header(next(reader, []))
        for cells in reader:
            if not cells:
                continue
            try:
                row = _row(header, cells, currency)
                first = seen.setdefault((row.sku, row.region, row.effective_from), reader.line_num)
                if first != reader.line_num:
                    raise _Refused(f"{row.sku} in {row.region} from {row.effective_from} is on line {first} already")
                rows.append((reader.line_num, row))
            except _Refused as refused:
                problems.append(PriceProblem(reader.line_num, "refused", str(refused)))
    except (_Refused, csv.Error) as error:
        problems.append(PriceProblem(max(reader.line_num, 1), "refused", str(error)))
    rows = _flag_far(rows)
    problems += [PriceProblem(line, "review", row.problem) for line, row in rows if row.problem]
    return PriceList(tuple(row for _, row in rows), tuple(sorted(problems, key=lambda p: p.line)))


def _header(cells: Sequence[str]) -> list[str]:
    if sorted(cells) != sorted(COLUMNS):
        raise _Refused(f"the header must have the columns {', '.join(COLUMNS)}; it has {', '.join(cells) or 'none'}")
    return list(cells)


def _row(header: Sequence[str], cells: Sequence[str], currency: str) -> PriceRow:
    if len(cells) != len(header):
        raise _Refused(f"{len(header)} cells are needed; this line has {len(cells)}")
    cell = {name: value.strip() for name, value in zip(header, cells, strict=True)}
    for name in COLUMNS:
        if not cell[name] and name != "price":
            raise _Refused(f"{name} is empty")
        if len(cell[name]) > MAX_LENGTHS.get(name, 40) and name != "price":
            raise _Refused(f"{name} has {len(cell[name])} characters; at most {MAX_LENGTHS.get(name, 40)} are taken")
    if not _NAME.fullmatch(cell["sku"]):
        raise _Refused(f"sku {cell['sku']!r}: letters, digits, '.', '_' and '-' only")
    if cell["unit"] not in UNITS:
        raise _Refused(f"unit {cell['unit']!r} is not one of {', '.join(UNITS)}")
    if cell["currency"] != currency:
        raise _Refused(f"currency {cell['currency']!r}: this portal's prices are in {currency}; convert it first")
    if cell["region"] != EVERYWHERE and not _NAME.fullmatch(cell["region"]):
        raise _Refused(f"region {cell['region']!r}: a region's name, or {EVERYWHERE} for everywhere")
    price, problem = _price(cell["price"])
    return PriceRow(
        sku=cell["sku"],
        unit=cell["unit"],
        price=price,
        currency=currency,
        region=cell["region"],
        effective_from=_date("effectiveFrom", cell["effectiveFrom"]),
        source=cell["source"],
        as_of=_date("asOf", cell["asOf"]),
        problem=problem,
    )


def _price(text: str) -> tuple[Decimal | None, str | None]:
    if not text:
        return None, "needs review: the price is empty"
    if not _PLAIN.fullmatch(text):
        return None, f"needs review: the price {text[:40]!r} is not a plain decimal above 0, such as 2.95"
    price = Decimal(text)
    return (price, None) if price > 0 else (None, "needs review: a price of 0 is never taken as free")


def _date(name: str, text: str) -> dt.date:
    try:
        if len(text) == len("2026-12-31"):  # fromisoformat also takes 20261231 and 2026-W01-1
            return dt.date.fromisoformat(text)
    except ValueError:
        pass
    raise _Refused(f"{name} {text!r} is not a date such as 2026-12-31")


def _flag_far(rows: Sequence[tuple[int, PriceRow]]) -> list[tuple[int, PriceRow]]:
    """Drop the price of a row that is FAR off the median of the other rows of its class.

    The class is the sku; for a sku with one row only, everything with the same unit and first word (`gpu.`): a new
    class with a mistyped first price has nothing nearer to be compared with.
    """
    by_sku: dict[str, list[Decimal]] = {}
    by_family: dict[str, list[Decimal]] = {}
    for _, row in rows:
        if row.price is not None:
            by_sku.setdefault(row.sku, []).append(_monthly_unit(row.price, row.unit))
            by_family.setdefault(_family(row), []).append(_monthly_unit(row.price, row.unit))
    for prices in (*by_sku.values(), *by_family.values()):
        prices.sort()
    return [(line, _checked(row, by_sku, by_family)) for line, row in rows]


def _checked(row: PriceRow, by_sku: dict[str, list[Decimal]], by_family: dict[str, list[Decimal]]) -> PriceRow:
    if row.price is None:
        return row
    own = _monthly_unit(row.price, row.unit)
    group, name = by_sku[row.sku], row.sku
    if len(group) < 2:
        group, name = by_family[_family(row)], f"all of {row.sku.split('.')[0]}"
    others = list(group)
    others.remove(own)
    if not others:
        return row
    # Of an even number both middles count: one wild row of three must not make the two good ones look wild.
    if any(own * FAR > middle and own < middle * FAR for middle in (median_low(others), median_high(others))):
        return row
    reason = f"needs review: {row.price} is {FAR} times or more off the median of {name}"
    return msgspec.structs.replace(row, price=None, problem=reason)


def _family(row: PriceRow) -> str:
    return f"{row.sku.split('.')[0]} {row.unit}"


def _monthly_unit(price: Decimal, unit: str) -> Decimal:
    return price * UNITS[unit]


def quote(
    keys: Iterable[tuple[str, int]],
    regions: Collection[str],
    rows: Iterable[PriceRow],
    at: dt.datetime,
    currency: str,
    valid_days: int,
) -> Quote:
    """The monthly ceiling of `keys` (sku, quantity) in the dearest of `regions`; no regions: anywhere that is priced.

    monthly = quantity x price x (730 if the unit is hour else 1), per line. In a region the newest row with
    effectiveFrom on or before `at` applies; a row for `*` stands in where a region has none of its own. If any price
    in any eligible region is missing or needs review, the ceiling is unknown: `monthly` None, and the line says why.
    No keys cost 0: the offering says so. Raises ValueError for a negative quantity.
    """
    wanted = sorted(keys)
    if wanted and min(quantity for _, quantity in wanted) < 0:
        raise ValueError("a quantity can't be negative")
    today = at.date()
    index: dict[tuple[str, str], list[PriceRow]] = {}
    for row in rows:
        if row.effective_from <= today:
            index.setdefault((row.sku, row.region), []).append(row)
    offers = [(place, _lines(wanted, place, index, currency)) for place in _places(wanted, regions, index)]
    place, lines = max(offers, key=_dearest)
    amounts = [line.monthly for line in lines]
    monthly = None if None in amounts else sum((a for a in amounts if a is not None), Decimal("0.00"))
    return Quote(currency, monthly, place, lines, today + dt.timedelta(days=valid_days))


def _places(
    wanted: Sequence[tuple[str, int]], regions: Collection[str], index: dict[tuple[str, str], list[PriceRow]]
) -> list[str]:
    if regions:
        return sorted(set(regions))
    skus = {sku for sku, _ in wanted}
    places = sorted({region for sku, region in index if sku in skus and region != EVERYWHERE})
    if not places or all((sku, EVERYWHERE) in index for sku in skus):
        places.append(EVERYWHERE)  # regions that no row names
    return places


def _lines(
    wanted: Sequence[tuple[str, int]], place: str, index: dict[tuple[str, str], list[PriceRow]], currency: str
) -> tuple[CostLine, ...]:
    return tuple(
        _line(sku, quantity, place, index.get((sku, place)) or index.get((sku, EVERYWHERE)) or [], currency)
        for sku, quantity in wanted
    )


def _line(sku: str, quantity: int, place: str, rows: Sequence[PriceRow], currency: str) -> CostLine:
    if not rows:
        problem = f"needs review: the price list has no price for {sku} {_named(place)}"
        return CostLine(sku, quantity, "", None, place, None, "", problem)
    row = max(rows, key=lambda row: _newest(row, currency))
    if row.currency != currency:
        problem = f"needs review: {sku} in {place} is priced in {row.currency}, and the quote is in {currency}"
    elif row.unit not in UNITS:
        problem = f"needs review: {sku} in {place} is priced per {row.unit}, which is not one of {', '.join(UNITS)}"
    elif row.price is None or not row.price.is_finite() or row.price <= 0:
        problem = row.problem or f"needs review: {sku} in {place} has no price that can be relied on"
    else:
        with localcontext(prec=60):  # a quantity of 19 digits times a price of 18: exact until it is rounded
            exact = quantity * row.price * UNITS[row.unit]
            monthly = exact.quantize(_CENT, rounding=ROUND_HALF_UP)
        return CostLine(sku, quantity, row.unit, row.price, place, monthly, row.source)
    return CostLine(sku, quantity, row.unit, None, place, None, row.source, problem)


def _named(place: str) -> str:
    return "in any region" if place == EVERYWHERE else f"in {place}"


def _newest(row: PriceRow, currency: str) -> tuple[dt.date, bool, Decimal, str, str]:
    """Of two rows from the same day (two lists) one that can't be quoted wins, then the dearer one."""
    unknown = row.price is None or not row.price.is_finite() or row.currency != currency
    return (row.effective_from, unknown, _sortable(row), row.source, f"{row.currency} {row.unit}")


def _sortable(row: PriceRow) -> Decimal:
    if row.price is None or not row.price.is_finite():
        return Decimal(0)
    return _monthly_unit(row.price, row.unit) if row.unit in UNITS else Decimal(0)


def _dearest(offer: tuple[str, tuple[CostLine, ...]]) -> tuple[bool, Decimal, str]:
    """Unknown is dearer than any number; the region's name breaks ties, so that order doesn't matter."""
    place, lines = offer
    amounts = [line.monthly for line in lines]
    return (None in amounts, sum((a for a in amounts if a is not None), Decimal(0)), place)
