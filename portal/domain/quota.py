"""Quota arithmetic: what a request would bring each line to, which lines it doesn't fit, and what would have fitted.

In charge of: sums, comparisons and their messages. Not in charge of: what a spec takes (metering, in offerings),
reading or locking quota rows (services), or who may change a quota (approval, governance).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from portal.domain.decision import HeldLine, Reason, UsageLine


def usage_lines(team: str, demand: Mapping[str, int], held: Iterable[HeldLine]) -> tuple[UsageLine, ...]:
    """Each line a demand touches, by dimension, with the order of `held` (root group first) kept within one.

    `demand` is dimension -> amount, what the request takes at its maximum, in place of what its instance holds (`own`).
    A dimension that no held line knows becomes a line of `team` without a limit, which never fits. Raises ValueError
    for a negative amount.
    """
    lines: list[UsageLine] = []
    rows = tuple(held)
    for dimension in sorted(set(demand) | {row.dimension for row in rows if row.own}):
        amount = demand.get(dimension, 0)
        if amount < 0:
            raise ValueError(f"a demand can't be negative: {amount} {dimension}")
        of_dimension = [row for row in rows if row.dimension == dimension]
        if not of_dimension:
            of_dimension = [HeldLine(team=team, dimension=dimension, held=0, limit=None)]
        lines += [
            UsageLine(row.team, dimension, row.held + row.own, row.held + amount, row.limit) for row in of_dimension
        ]
    return tuple(lines)


def fits(line: UsageLine) -> bool:
    """Whether a line allows what is asked. Asking for no more fits even where too much is held already."""
    return line.after <= line.before or (line.limit is not None and line.after <= line.limit)


def check_usage(team: str, lines: Iterable[UsageLine]) -> tuple[Reason, ...]:
    """A denial for each line that doesn't fit, none left out: `quota-exceeded`, or `quota-missing` without a limit.

    `team` is the one that asks: it can ask for its own quota, and not for that of a group above it.
    """
    return tuple(_refusal(team, line) for line in lines if not fits(line))


def _refusal(team: str, line: UsageLine) -> Reason:
    asked = line.after - line.before
    if line.limit is None:
        message = (
            f"{line.team} has no quota for {line.dimension}, nor has a group above it; you asked for {asked}. "
            f"Ask for a quota of {line.after}"
        )
        return Reason("quota-missing", "deny", message)
    room = max(0, line.limit - line.before)
    own = line.team == team
    way_out = (
        f"Ask for a quota of {line.after} or free some"
        if own
        else f"Its members or a platform admin can ask for a quota of {line.after}"
    )
    message = (
        f"{line.team}{'' if own else f', the group above {team},'} holds {line.before} of {line.limit} "
        f"{line.dimension}; you asked for {asked}, {f'up to {room}' if room else 'none'} "
        f"{'fits' if room < 2 else 'fit'}. {way_out}"
    )
    return Reason("quota-exceeded", "deny", message)


def tightest(lines: Iterable[UsageLine]) -> dict[str, UsageLine]:
    """For each dimension the line with the least room left after the request; one without a limit has none at all."""
    found: dict[str, UsageLine] = {}
    for line in lines:
        best = found.get(line.dimension)
        if best is None or _room(line) < _room(best):
            found[line.dimension] = line
    return found


def _room(line: UsageLine) -> float:
    return float("-inf") if line.limit is None else line.limit - line.after


def check_change(team: str, dimension: str, old: int | None, new: int, held: Iterable[HeldLine]) -> tuple[Reason, ...]:
    """What speaks against changing a team's limit from `old` (None: there was none) to `new`, and what is worth
    knowing.

    Denies `quota-unchanged`, and `quota-below-held` for a limit under what is held, also for a first one. Notes
    `quota-above-parent` when a group above has less, since each line must fit.
    """
    if new == old:
        message = f"the quota of {team} for {dimension} is {old} already; ask for another number"
        return (Reason("quota-unchanged", "deny", message, "/spec/limit"),)
    lines = [row for row in held if row.dimension == dimension]
    reasons = []
    holding = max((row.held for row in lines if row.team == team), default=0)
    if new < holding:
        message = (
            f"{team} holds {holding} {dimension}, so its quota can't be {new}. "
            f"The lowest that fits is {holding}; delete instances first to go lower"
        )
        reasons.append(Reason("quota-below-held", "deny", message, "/spec/limit"))
    for row in lines:
        if row.team != team and row.limit is not None and row.limit < new:
            message = (
                f"{row.team}, the group above {team}, has only {row.limit} {dimension}: no more than that can be used, "
                f"whatever the quota of {team} says. Its members or a platform admin can ask for more"
            )
            reasons.append(Reason("quota-above-parent", "note", message, "/spec/limit"))
    return tuple(reasons)
