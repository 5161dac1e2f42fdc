"""What Instances and open Requests hold of quotas and budgets: reserve, use, release; and the lines a decision reads.

Each request of an instance has rows of its own, and the instance holds the *largest* of them by dimension (and of its
commitments), since one claim is all that runs: while a change is on its way that is the larger of old and new. Once a
spec is observed as it was asked, `settle` releases the rows of all that it replaced. So a row may come and go without
knowing of the others, and what is held is never below what may be running.

The caller holds the locks of services.locks on the team chain. Counters of every group on the way up move together with
the rows behind them; the database refuses an overshoot whatever this module does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet, Sum

from portal.domain.decision import CHANGES, BudgetState, HeldLine, Quote
from portal.models import UNDELIVERED_STATES, Budget, Commitment, Instance, Quota, Request, Reservation, Team
from portal.services.access import descendants
from portal.services.locks import team_chain

RESERVED, USED, RELEASED = Reservation.State.RESERVED, Reservation.State.USED, Reservation.State.RELEASED
HELD = [RESERVED, USED]
ZERO = Decimal(0)


def held_lines(
    chain: Sequence[Team],
    dimensions: Iterable[str],
    *,
    instance: Instance | None = None,
    besides: Request | None = None,
) -> list[HeldLine]:
    """Per dimension, the quota rows of the chain, root first; one line without limit where no row is there.

    `instance`: what it holds is its `own`, and its dimensions have lines too. `besides`: a request whose own
    reservations don't count (it is being decided again).
    """
    rows = _held(instance)
    own, whole = _totals(row for row in rows if besides is None or row.request_id != besides.pk), _totals(rows)
    wanted = sorted({*dimensions, *own})
    quotas = {(row.team_id, row.dimension): row for row in Quota.objects.filter(team__in=chain, dimension__in=wanted)}
    lines = []
    for dimension in wanted:
        of_dimension = [(team, quotas[team.pk, dimension]) for team in chain if (team.pk, dimension) in quotas]
        mine, there = sum(own.get(dimension, (0, 0))), sum(whole.get(dimension, (0, 0)))
        lines += [
            HeldLine(team.slug, dimension, row.reserved + row.used - there, row.limit, mine)
            for team, row in of_dimension
        ]
        if not of_dimension:
            lines.append(HeldLine(chain[-1].slug, dimension, 0, None, mine))
    return lines


def budget_states(chain: Sequence[Team], *, instance: Instance | None = None) -> list[BudgetState]:
    """The budgets of the chain, root first, without what `instance` has committed."""
    rows = {row.team_id: row for row in Budget.objects.filter(team__in=chain)}
    own = _largest(_committed(instance)) if rows else ZERO
    return [
        BudgetState(team.slug, row.currency, row.committed - own, row.soft, row.hard)
        for team in chain
        if (row := rows.get(team.pk))
    ]


def committed_of(instance: Instance, *, besides: Request | None = None) -> Decimal | None:
    """What an instance counts for per month, apart from one of its requests; None: nothing, or its price is unknown."""
    amounts = [row.monthly for row in _committed(instance) if besides is None or row.request_id != besides.pk]
    return max(amounts, default=None)


def reserve(
    request: Request, instance: Instance, demand: Mapping[str, int], quote: Quote | None, chain: Sequence[Team]
) -> None:
    """Hold the demand and the quote for an open request; `chain` is its team's, as it was locked."""
    there = _held(instance) if request.kind in CHANGES else []
    made = Reservation.objects.bulk_create(
        Reservation(request=request, instance=instance, team=request.team, dimension=dimension, amount=amount)
        for dimension, amount in sorted(demand.items())
    )
    _move(chain, _totals(there), _totals([*there, *made]))
    if quote is not None and quote.monthly is not None:
        committed = _largest(_committed(instance)) if request.kind in CHANGES else ZERO
        Commitment.objects.create(
            request=request, instance=instance, team=request.team, currency=quote.currency, monthly=quote.monthly
        )
        _move_budgets(chain, max(committed, quote.monthly) - committed)


def recommit(request: Request, quote: Quote) -> None:
    """A request that was decided again at another price commits that one from here on."""
    if quote.monthly is None or request.instance is None:
        return
    committed = _largest(_committed(request.instance))
    Commitment.objects.update_or_create(
        request=request,
        defaults={"monthly": quote.monthly},
        create_defaults={
            "instance": request.instance,
            "team": request.team,
            "currency": quote.currency,
            "monthly": quote.monthly,
        },
    )
    _move_budgets(team_chain(request.team), _largest(_committed(request.instance)) - committed)


def use(request: Request) -> None:
    """The claim is as this request wants it, or becomes it: what was reserved is used."""
    rows = _held(request.instance)
    before = _totals(rows)
    for row in rows:
        if row.request_id == request.pk:
            row.state = USED
    _move(team_chain(request.team), before, _totals(rows))
    Reservation.objects.filter(request=request, state=RESERVED).update(state=USED)


def settle(request: Request) -> None:
    """Its spec was observed as it was asked: what earlier ones of its instance hold is given back. What waits to be
    delivered keeps its own. An unknown price replaces no known one: the last that was known stays committed."""
    if request.instance is None:
        return
    waiting = Request.objects.filter(instance=request.instance, state__in=UNDELIVERED_STATES).values("pk")
    kept = Q(request=request) | Q(request__in=waiting)
    priced = Commitment.objects.filter(request=request, released=False).exists()
    _release(request.instance, ~kept, ~kept if priced else Q(pk=None))


def give_up(request: Request) -> None:
    """It ended before it was delivered: what it held on top of the others is given back."""
    if request.instance is not None:
        _release(request.instance, Q(request=request), Q(request=request))


def release(instance: Instance) -> None:
    """Nothing of this instance is there any more: give everything back."""
    _release(instance, Q(), Q())


def held_by(instance: Instance) -> dict[str, int]:
    """Dimension -> what the instance holds of it, reserved and used."""
    return {dimension: sum(amounts) for dimension, amounts in _totals(_held(instance)).items() if sum(amounts)}


def overdue(instance: Instance, request: Request) -> bool:
    """Whether others than `request`, and than those that wait to be delivered, hold something of the instance."""
    rows = Reservation.objects.filter(instance=instance, state__in=HELD).exclude(request=request)
    return rows.exclude(request__state__in=UNDELIVERED_STATES).exists()


def set_quota(team: Team, dimension: str, limit: int) -> tuple[Quota, int | None]:
    """Write a limit; returns the row and the limit before (None: none). A new row starts with what is held."""
    row = Quota.objects.filter(team=team, dimension=dimension).first()
    if row is not None:
        before = row.limit
        row.limit = limit
        row.save(update_fields=["limit", "changed_at"])
        return row, before
    reserved, used = held_below(team, dimension)
    return Quota.objects.create(team=team, dimension=dimension, limit=limit, reserved=reserved, used=used), None


def held_below(team: Team, dimension: str) -> tuple[int, int]:
    """(reserved, used) of this team and every team below it, from the rows themselves."""
    rows = Reservation.objects.filter(team__in=descendants({team.pk}), dimension=dimension, state__in=HELD)
    each = rows.order_by().values("instance")
    each = each.annotate(largest=Max("amount"), running=Max("amount", filter=Q(state=USED)))
    sums = each.aggregate(held=Sum("largest"), used=Sum("running"))
    used = sums["used"] or 0
    return (sums["held"] or 0) - used, used


def committed_below(team: Team) -> Decimal:
    """The run rate of this team and every team below it, from the rows themselves."""
    rows = Commitment.objects.filter(team__in=descendants({team.pk}), released=False)
    each = rows.order_by().values("instance").annotate(largest=Max("monthly"))
    return each.aggregate(total=Sum("largest"))["total"] or ZERO


def largest_rows(rows: QuerySet[Reservation]) -> QuerySet[Reservation]:
    """Of these rows, which are held, the one of each instance and dimension that counts."""
    others = Reservation.objects.filter(instance=OuterRef("instance"), dimension=OuterRef("dimension"), state__in=HELD)
    more = others.filter(Q(amount__gt=OuterRef("amount")) | Q(amount=OuterRef("amount"), id__gt=OuterRef("id")))
    return rows.filter(~Exists(more))


def _held(instance: Instance | None) -> list[Reservation]:
    return [] if instance is None else list(Reservation.objects.filter(instance=instance, state__in=HELD))


def _committed(instance: Instance | None) -> list[Commitment]:
    return [] if instance is None else list(Commitment.objects.filter(instance=instance, released=False))


def _totals(rows: Iterable[Reservation]) -> dict[str, tuple[int, int]]:
    """Dimension -> (reserved, used) of one instance: the largest that runs, and what is held on top of that."""
    used: dict[str, int] = {}
    held: dict[str, int] = {}
    for row in rows:
        held[row.dimension] = max(held.get(row.dimension, 0), row.amount)
        if row.state == USED:
            used[row.dimension] = max(used.get(row.dimension, 0), row.amount)
    return {dimension: (amount - used.get(dimension, 0), used.get(dimension, 0)) for dimension, amount in held.items()}


def _largest(rows: Iterable[Commitment]) -> Decimal:
    return max((row.monthly for row in rows), default=ZERO)


def _release(instance: Instance, reservations: Q, commitments: Q) -> None:
    """Give back these rows of an instance, and lower the counters by what that changes."""
    chain = team_chain(instance.team)
    before = _totals(_held(instance))
    Reservation.objects.filter(reservations, instance=instance, state__in=HELD).update(state=RELEASED)
    _move(chain, before, _totals(_held(instance)))
    committed = _largest(_committed(instance))
    Commitment.objects.filter(commitments, instance=instance, released=False).update(released=True)
    _move_budgets(chain, _largest(_committed(instance)) - committed)


def _move(chain: Sequence[Team], before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> None:
    for dimension in sorted({*before, *after}):
        (reserved, used), (reserved_now, used_now) = before.get(dimension, (0, 0)), after.get(dimension, (0, 0))
        if (reserved, used) != (reserved_now, used_now):
            Quota.objects.filter(team__in=chain, dimension=dimension).update(
                reserved=F("reserved") + (reserved_now - reserved), used=F("used") + (used_now - used)
            )


def _move_budgets(chain: Sequence[Team], by: Decimal) -> None:
    if by:
        Budget.objects.filter(team__in=chain).update(committed=F("committed") + by)
