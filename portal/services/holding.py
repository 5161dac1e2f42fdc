"""What Instances and open Requests hold of quotas and budgets: reserve, use, release; and the lines a decision reads.

The caller holds the locks of services.locks on the team chain. Counters of every group on the way up move together with
the rows behind them; the database refuses an overshoot whatever this module does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from django.db.models import F, Sum

from portal.domain.decision import BudgetState, HeldLine, Quote
from portal.models import Budget, Commitment, Instance, Quota, Request, Reservation, Team
from portal.services.access import descendants
from portal.services.locks import team_chain

HELD = [Reservation.State.RESERVED, Reservation.State.USED]


def held_lines(chain: Sequence[Team], dimensions: Sequence[str], *, besides: Request | None = None) -> list[HeldLine]:
    """Per dimension, the quota rows of the chain, root first; one line without limit where no row is there.

    `besides`: a request whose own reservations don't count (it is being decided again).
    """
    found = Quota.objects.filter(team__in=chain, dimension__in=dimensions)
    rows = {(row.team_id, row.dimension): row for row in found}
    own: Mapping[str, int] = _own_amounts(besides)
    lines = []
    for dimension in dimensions:
        of_dimension = [(team, rows[team.pk, dimension]) for team in chain if (team.pk, dimension) in rows]
        for team, row in of_dimension:
            held = row.reserved + row.used - own.get(dimension, 0)
            lines.append(HeldLine(team.slug, dimension, held, row.limit))
        if not of_dimension:
            lines.append(HeldLine(chain[-1].slug, dimension, 0, None))
    return lines


def budget_states(chain: Sequence[Team], *, besides: Request | None = None) -> list[BudgetState]:
    """The budgets of the chain, root first, without what `besides` has committed."""
    rows = {row.team_id: row for row in Budget.objects.filter(team__in=chain)}
    own = Commitment.objects.filter(request=besides, released=False).first() if besides else None
    own_monthly = own.monthly if own else Decimal(0)
    return [
        BudgetState(team.slug, row.currency, row.committed - own_monthly, row.soft, row.hard)
        for team in chain
        if (row := rows.get(team.pk))
    ]


def reserve(
    request: Request, instance: Instance, demand: Mapping[str, int], quote: Quote | None, chain: Sequence[Team]
) -> None:
    """Hold the demand and the quote for an open request; `chain` is its team's, as it was locked."""
    for dimension, amount in sorted(demand.items()):
        Reservation.objects.create(
            request=request, instance=instance, team=request.team, dimension=dimension, amount=amount
        )
        _move(chain, dimension, reserved=amount)
    if quote is not None and quote.monthly is not None:
        Commitment.objects.create(
            request=request, instance=instance, team=request.team, currency=quote.currency, monthly=quote.monthly
        )
        Budget.objects.filter(team__in=chain).update(committed=F("committed") + quote.monthly)


def recommit(request: Request, quote: Quote) -> None:
    """A request that was decided again at another price commits that one from here on."""
    if quote.monthly is None or request.instance is None:
        return
    chain = team_chain(request.team)
    row, _ = Commitment.objects.get_or_create(
        request=request,
        defaults={"instance": request.instance, "team": request.team, "currency": quote.currency, "monthly": 0},
    )
    Budget.objects.filter(team__in=chain).update(committed=F("committed") + (quote.monthly - row.monthly))
    row.monthly = quote.monthly
    row.save(update_fields=["monthly"])


def use(request: Request) -> None:
    """The claim exists: what was reserved is used."""
    chain = team_chain(request.team)
    for row in Reservation.objects.filter(request=request, state=Reservation.State.RESERVED):
        _move(chain, row.dimension, reserved=-row.amount, used=row.amount)
        row.state = Reservation.State.USED
        row.save(update_fields=["state"])


def release(instance: Instance) -> None:
    """Nothing of this instance is there any more: give everything back."""
    chain = team_chain(instance.team)
    for row in Reservation.objects.filter(instance=instance, state__in=HELD):
        if row.state == Reservation.State.RESERVED:
            _move(chain, row.dimension, reserved=-row.amount)
        else:
            _move(chain, row.dimension, used=-row.amount)
        row.state = Reservation.State.RELEASED
        row.save(update_fields=["state"])
    for commitment in Commitment.objects.filter(instance=instance, released=False):
        Budget.objects.filter(team__in=chain).update(committed=F("committed") - commitment.monthly)
        commitment.released = True
        commitment.save(update_fields=["released"])


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
    rows = Reservation.objects.filter(team__in=descendants({team.pk}), dimension=dimension)
    sums = {row["state"]: row["total"] for row in rows.values("state").annotate(total=Sum("amount")).order_by()}
    return sums.get(Reservation.State.RESERVED, 0), sums.get(Reservation.State.USED, 0)


def committed_below(team: Team) -> Decimal:
    """The run rate of this team and every team below it, from the rows themselves."""
    rows = Commitment.objects.filter(team__in=descendants({team.pk}), released=False)
    return rows.aggregate(total=Sum("monthly"))["total"] or Decimal(0)


def _move(chain: Sequence[Team], dimension: str, *, reserved: int = 0, used: int = 0) -> None:
    Quota.objects.filter(team__in=chain, dimension=dimension).update(
        reserved=F("reserved") + reserved, used=F("used") + used
    )


def _own_amounts(request: Request | None) -> dict[str, int]:
    if request is None:
        return {}
    rows = Reservation.objects.filter(request=request, state__in=HELD)
    return {row.dimension: row.amount for row in rows}
