"""What was answered to a claim a moment ago, as long as the control plane may not show it yet.

Crossplane reads a claim from a cache. Under load that lags behind Crossplane's own writes, and a claim is handed over
as it was before the last answer took effect (seen on v2.2.1 with 50 claims at once: bound, a second later unbound; what
was composed was forgotten while its slot went to another). Two things keep that harmless:

- The very version that was answered comes again although that answer changes it: nothing is answered to it. Crossplane
  would write its old conditions back over the new ones, which wakes it again and so on. It can't note the refusal
  either, since what it would write to is old; and it comes back with the newer version as soon as it has that.
- Another version, that doesn't show the last placement either: placement goes on from the answer, not from what is
  shown (``workloads``). It is safe only if a claim's next call sees what its last one wrote.

One process of this function serves one control plane; after a restart of it the cache has had its time.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from composition_function.contract import Manifest, Outcome, at
from composition_function.slots import Claim, Placement, Step

REFUSE_SECONDS = 5.0  # for so long the same version is refused
LAG_SECONDS = 30.0  # far more than was seen; an answer that was never written is forgotten after it
_MANY = 10_000  # answers kept before old ones are looked for


@dataclass(frozen=True)
class _Answer:
    at: float
    version: str  # of the claim that was answered
    changes: bool  # whether the answer changes the claim
    placement: Placement | None


def is_seen(answer: Placement, me: Claim, composed: bool) -> bool:
    """Whether a claim, as it is handed over, shows an answer. ``composed``: something was composed for it."""
    return me.held == answer.slot and composed == (answer.step is Step.BOUND)


def changes(composite: Manifest, outcome: Outcome) -> bool:
    """Whether an answer changes what the claim itself says: its conditions, whether it is ready, where it is."""
    shown = {c.get("type"): c for c in at(composite, "status", "conditions", default=[])}
    ready = outcome.ready == (at(shown, "Ready", "status") == "True")
    conditions = all(
        (at(shown, c.type, "status"), at(shown, c.type, "reason"), at(shown, c.type, "message", default=""))
        == ("True" if c.status else "False", c.reason, c.message)
        for c in outcome.conditions
    )
    placed = all(
        at(composite, "status", "placement", key) == at(outcome.status, "placement", key) for key in ("cluster", "pool")
    )
    return not (ready and conditions and placed)


class Memory:
    """Answers by uid. Not for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    def is_old(self, composite: Manifest) -> bool:
        """Whether a claim is handed over as it was before an answer that changes it."""
        uid, version = _identity(composite)
        found = self._answers.get(uid)
        if found is None or not found.changes or found.version != version:
            return False
        return self._clock() < found.at + REFUSE_SECONDS

    def placement(self, composite: Manifest) -> Placement | None:
        """Where a claim was placed a moment ago."""
        found = self._answers.get(_identity(composite)[0])
        return found.placement if found is not None and self._clock() < found.at + LAG_SECONDS else None

    def keep(self, composite: Manifest, outcome: Outcome) -> None:
        """Remember an answer."""
        uid, version = _identity(composite)
        if not uid:
            return
        now = self._clock()
        if len(self._answers) > _MANY:
            self._answers = {key: kept for key, kept in self._answers.items() if now < kept.at + LAG_SECONDS}
        self._answers[uid] = _Answer(now, version, changes(composite, outcome), outcome.placement)


def _identity(composite: Manifest) -> tuple[str, str]:
    meta = at(composite, "metadata", default={})
    return str(at(meta, "uid", default="")), str(at(meta, "resourceVersion", default=""))
