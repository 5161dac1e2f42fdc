"""What was answered to a claim a moment ago, as long as the control plane may not show it yet.

Crossplane reads a claim from a cache. Under load that lags behind Crossplane's own writes, and a claim is handed over
as it was before the last answer took effect (seen on v2.2.1 with 50 claims at once: bound, a second later unbound; what
was composed was forgotten while its slot went to another). Two things keep that harmless:

- It doesn't show that anything was composed, or, within seconds, the conditions of the last answer: it is not answered.
  Crossplane would forget what it composed, or write old conditions back over the new ones, which wakes it again and so
  on. It can't note the refusal either, since what it would write to is old; and it comes back with the newer version
  as soon as it has that.
- It doesn't show the last placement, for whatever reason: placement goes on from the answer, not from what is shown
  (``workloads``). It is safe only if a claim's next call sees what its last one wrote.

One process of this function serves one control plane; after a restart of it the cache has had its time.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from composition_function import objects
from composition_function.contract import Manifest, Outcome, at
from composition_function.slots import Claim, Placement, Step

REFUSE_SECONDS = 5.0  # for so long the same version is refused
# An answer takes effect while its reconcile lasts, at most 2 minutes (composite/reconciler.go, timeout).
LAG_SECONDS = 150.0
_MANY = 10_000  # answers kept before old ones are looked for


@dataclass(frozen=True)
class _Answer:
    at: float
    says: Manifest  # what the claim's status shows once it is written
    composes: bool  # whether anything is composed for it
    placement: Placement | None


def shows_composed(composite: Manifest, observed: Mapping[str, Manifest]) -> bool:
    """Whether something was composed for a claim, or is about to be: references are written first."""
    return bool(observed) or bool(at(composite, "spec", "crossplane", "resourceRefs"))


def is_seen(answer: Placement, me: Claim, composed: bool) -> bool:
    """Whether a claim, as it is handed over, shows an answer. ``composed``: something was composed for it."""
    return me.held == answer.slot and composed == (answer.step is Step.BOUND)


def _says(outcome: Outcome) -> Manifest:
    """What an answer makes the claim's status show: readiness, the function's conditions, where it is."""
    found: Manifest = {c.type: ("True" if c.status else "False", c.reason, c.message) for c in outcome.conditions}
    placement = at(outcome.status, "placement")
    return found | {"Ready": "True" if outcome.ready else "False", "slot": _slot(placement)}


def _shows(composite: Manifest, says: Manifest) -> Manifest:
    """The same of a claim as it is handed over."""
    found: Manifest = {}
    for shown in at(composite, "status", "conditions", default=[]):
        found[str(at(shown, "type"))] = tuple(at(shown, key, default="") for key in ("status", "reason", "message"))
    found |= {"Ready": at(found, "Ready", 0), "slot": _slot(at(composite, "status", "placement"))}
    return {key: found.get(key) for key in says}


def _slot(placement: Manifest | None) -> tuple[object, object]:
    return at(placement, "cluster"), at(placement, "pool")


class Memory:
    """Answers by uid. Not for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    def is_old(self, composite: Manifest, observed: Mapping[str, Manifest]) -> bool:
        """Whether a claim is handed over as it was before the last answer."""
        found = self._answers.get(_uid(composite))
        age = self._clock() - found.at if found is not None else LAG_SECONDS
        if found is None or age >= LAG_SECONDS:
            return False
        # Where writing fails, or was given up, an answer is never shown; the control plane then says so.
        if objects.condition(composite, "Synced").get("status") == "False":
            return False
        if found.composes and not shows_composed(composite, observed):
            return True  # whatever is answered now, what was composed would be forgotten
        return age < REFUSE_SECONDS and _shows(composite, found.says) != found.says

    def placement(self, composite: Manifest) -> Placement | None:
        """Where a claim was placed a moment ago."""
        found = self._answers.get(_uid(composite))
        return found.placement if found is not None and self._clock() < found.at + LAG_SECONDS else None

    def keep(self, composite: Manifest, outcome: Outcome) -> None:
        """Remember an answer."""
        uid, now = _uid(composite), self._clock()
        if not uid:
            return
        if len(self._answers) > _MANY:
            self._answers = {key: kept for key, kept in self._answers.items() if now < kept.at + LAG_SECONDS}
        self._answers[uid] = _Answer(now, _says(outcome), bool(outcome.resources), outcome.placement)


def _uid(composite: Manifest) -> str:
    return str(at(composite, "metadata", "uid", default=""))
