"""What was answered to a claim a moment ago, as long as the control plane may not show it yet.

Crossplane reads a claim from a cache. Under load that lags behind Crossplane's own writes, and a claim is handed over
as it was before the last answer took effect (seen on v2.2.1 with 50 claims at once: bound, a second later unbound; what
was composed was forgotten while its slot went to another). Placement is safe only if a claim's next call sees what its
last one wrote, so the last answer is kept here until it is seen. One process of this function serves one control plane;
after a restart of it the cache has had its time.
"""

import time
from collections.abc import Callable

from composition_function.slots import Claim, Placement, Step

LAG_SECONDS = 30.0  # far more than was seen; an answer that was never written is forgotten after it
_MANY = 10_000  # answers kept before old ones are looked for


def is_seen(answer: Placement, me: Claim, composed: bool) -> bool:
    """Whether a claim, as it is handed over, shows an answer. ``composed``: something was composed for it."""
    return me.held == answer.slot and composed == (answer.step is Step.BOUND)


class Memory:
    """Answers by uid. Not for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[str, tuple[float, Placement]] = {}

    def recall(self, uid: str) -> Placement | None:
        """The last answer, if it is recent."""
        found = self._answers.get(uid)
        return found[1] if found is not None and found[0] > self._clock() else None

    def keep(self, uid: str, answer: Placement | None) -> None:
        """Remember an answer; None for a claim that was not placed."""
        if answer is None:
            self._answers.pop(uid, None)
            return
        if len(self._answers) > _MANY:
            now = self._clock()
            self._answers = {key: kept for key, kept in self._answers.items() if kept[0] > now}
        self._answers[uid] = (self._clock() + LAG_SECONDS, answer)
