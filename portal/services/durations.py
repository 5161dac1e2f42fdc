"""How long phases take: one row when a phase ends, and the typical time of one from the last hundred.

Not in charge of: finding a phase out (observing), or writing one (transitions).
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass

from django.utils import timezone

from portal.domain.lifecycle import InstancePhase
from portal.models import Instance, PhaseDuration

LAST = 100  # rows that a typical time is made of
FEWEST = 5  # rows under which nothing is called typical
KEPT = dt.timedelta(days=90)
# Seconds. A core that notes its own references in a claim makes a new generation, and is behind for that long: no
# update that anybody waited for, and there are many.
AT_ONCE = 1.0
# Phases that lead somewhere by themselves; how long one is Ready or Stuck says nothing to who waits.
MOVING = frozenset({InstancePhase.PENDING, InstancePhase.PROVISIONING, InstancePhase.UPDATING, InstancePhase.DELETING})


@dataclass(frozen=True)
class Typical:
    """Seconds: half of the last `count` took at most `median`, 95 of 100 at most `p95`."""

    median: float
    p95: float
    count: int


def ended(instance: Instance) -> None:
    """The phase that an instance is in ends now; to be called before `since` moves, in the transaction of that."""
    now = timezone.now()
    seconds = max(0.0, (now - instance.since).total_seconds())
    if instance.phase == InstancePhase.UPDATING and seconds < AT_ONCE:
        return
    PhaseDuration.objects.create(offering=instance.offering, phase=instance.phase, seconds=seconds, ended_at=now)


def typical(offering: str, phase: InstancePhase | str) -> Typical | None:
    """What a moving phase of this offering took; None while there are too few to tell, or for one that doesn't move."""
    if InstancePhase(phase) not in MOVING:
        return None
    rows = PhaseDuration.objects.filter(offering=offering, phase=str(phase)).order_by("-ended_at")
    seconds = sorted(rows.values_list("seconds", flat=True)[:LAST])
    if len(seconds) < FEWEST:
        return None
    return Typical(_at(seconds, 50), _at(seconds, 95), len(seconds))


def forget_old() -> int:
    """Forget what ended long ago."""
    return PhaseDuration.objects.filter(ended_at__lt=timezone.now() - KEPT).delete()[0]


def _at(ordered: list[float], percent: int) -> float:
    """The value that `percent` of 100 don't exceed (nearest rank), to a tenth of a second."""
    return round(ordered[math.ceil(len(ordered) * percent / 100) - 1], 1)
