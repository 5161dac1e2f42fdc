"""One look at a claim: what is read of it, what was seen of it before, and what comes of it.

In charge of: the shapes that the rules of claim_trouble and claim_status share, and the words that several of them
say. Not in charge of: any rule.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from portal.domain import claim_deletion
from portal.domain.conditions import Condition, behind
from portal.domain.lifecycle import InstancePhase


class Composed(claim_deletion.Leaving, Protocol):
    """What is read of a composed object."""

    @property
    def ready(self) -> bool | None: ...


class Claim(Protocol):
    """What is read of a claim; ports.ObservedClaim has all of it."""

    @property
    def generation(self) -> int: ...
    @property
    def created_at(self) -> dt.datetime: ...
    @property
    def deletion_requested_at(self) -> dt.datetime | None: ...
    @property
    def finalizers(self) -> Sequence[str]: ...
    @property
    def spec(self) -> Mapping[str, Any]: ...
    @property
    def status(self) -> Mapping[str, Any]: ...
    @property
    def composed(self) -> Sequence[Composed]: ...


class Past(msgspec.Struct, frozen=True):
    """What was seen of the claim before. `spec_generation` is the first generation seen with the spec that it has now,
    since `spec_since`; `served` the last generation at which it was healthy (None: never, or not known)."""

    was_ready: bool = False  # then a Ready that is False is Degraded, and else Provisioning
    was_suspended: bool = False
    generation_since: dt.datetime | None = None  # when its present generation was seen first
    spec_generation: int | None = None
    spec_since: dt.datetime | None = None
    served: int | None = None
    deletion_is_ours: bool = True


class Assessment(msgspec.Struct, frozen=True):
    """What is known. `condition` is the one that decided, `since` when it last changed (None: it doesn't say),
    `observed_generation` the generation that is served, `advice` who must do what ("": nobody anything)."""

    phase: InstancePhase
    message: str
    condition: str | None = None
    since: dt.datetime | None = None
    observed_generation: int | None = None
    advice: str = ""


class Look(msgspec.Struct, frozen=True):
    """One look at a claim, or at the composite resource behind one of v1."""

    claim: Claim
    found: Mapping[str, Condition]
    generation: int
    now: dt.datetime
    stuck_after: float
    past: Past

    @property
    def ready(self) -> Condition | None:
        return self.found.get("Ready")

    @property
    def synced(self) -> Condition | None:
        return self.found.get("Synced")

    @property
    def served(self) -> int | None:
        """The generation that its Ready is about."""
        return self.ready.observed_generation if self.ready else None

    @property
    def serves(self) -> bool:
        return self.ready is not None and self.ready.status == "True"

    def older(self, since: dt.datetime | None, seconds: float) -> bool:
        return since is not None and (self.now - since).total_seconds() >= seconds

    @property
    def suspend(self) -> bool:
        """Whether its spec asks for it to be suspended."""
        return self.claim.spec.get("suspend") is True

    @property
    def is_suspended(self) -> bool:
        """Whether the composition says that it is."""
        suspended = self.found.get("Suspended")
        return suspended is not None and suspended.status == "True"

    @property
    def doing(self) -> str:
        """What a spec that isn't served yet is about."""
        if self.suspend:
            return "suspending"
        return "resuming" if self.past.was_suspended or self.is_suspended else "updating"

    @property
    def composite(self) -> str:
        """The composite resource behind a claim of v1, as far as it says which."""
        reference = self.claim.spec.get("resourceRef")
        name = reference.get("name") if isinstance(reference, Mapping) else None
        named = f"{reference.get('kind')} {name}, " if isinstance(reference, Mapping) and name else ""
        return f"{named}the composite resource behind the claim"

    @property
    def told(self) -> str:
        """What the composition's own conditions, or Responsive, say is not well; to be appended."""
        return "".join(f"; {c.type} is False: {c.text()}" for c in behind(self.found))

    @property
    def unready(self) -> str:
        """Which composed objects are not ready; to be appended."""
        waiting = [c for c in self.claim.composed if c.ready is False]
        return "".join(f"; {c.kind} {c.name} is not ready{f': {c.message}' if c.message else ''}" for c in waiting[:3])
