"""What the portal needs from the systems around it, as Protocols, and how their failures are sorted.

In charge of: the shapes that cross these borders. Not in charge of: doing anything. The twins under one shared suite
live in adapters; services get one handed in and never ask which.

    PortError
     |- RetryableError   the same call may go through later (down, throttled, a conflict that passes)
     |- TerminalError    it never will as it stands; the message says who must do what
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class PortError(Exception):
    """A failure of a system behind a port. `code` is stable kebab-case, `message` is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class RetryableError(PortError):
    """May pass. `retry_after` is in seconds, if the other side named it."""

    def __init__(self, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(code, message)
        self.retry_after = retry_after


class TerminalError(PortError):
    """Will not pass without somebody's change; ends the request as Failed."""


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """Where a claim is: `api_version` is group/version, `plural` the resource name in the API's path."""

    api_version: str
    kind: str
    plural: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What the control plane answered to an apply."""

    uid: str
    generation: int
    resource_version: str


@dataclass(frozen=True, slots=True)
class ComposedObject:
    """One object that the composition made for a claim. `ready` None: it does not say."""

    api_version: str
    kind: str
    namespace: str
    name: str
    ready: bool | None
    message: str
    manifest: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Who set which fields of a claim, and when: one entry of metadata.managedFields. `fields` are JSON pointers to
    leaves (`/spec/replicas/max`); those of a list's or map's items end where the item begins."""

    manager: str
    operation: str  # Apply or Update
    subresource: str
    at: dt.datetime | None
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """An Event that says why: of a claim or of something composed for it."""

    type: str  # Normal or Warning
    reason: str
    message: str
    about: str  # kind and name of what it is about
    count: int
    last_seen: dt.datetime | None


@dataclass(frozen=True, slots=True)
class FleetPool:
    """Accelerators of one class (or memory) in one cluster, in whole units of `resource`."""

    name: str
    resource: str  # an AcceleratorClass, or `memory_gib`
    capacity: int
    used: int


@dataclass(frozen=True, slots=True)
class FleetCluster:
    """A workload cluster. `state`: Ready, Cordoned (takes nothing new), Unreachable (keeps what it has), Unknown."""

    name: str
    region: str
    state: str
    message: str
    since: dt.datetime | None
    pools: tuple[FleetPool, ...]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What an apply would make, written nowhere. `claim` has the control plane's defaults; `live` None: nothing is
    there yet."""

    claim: dict[str, Any]
    live: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ObservedClaim:
    """A claim as the control plane has it now. `status` holds conditions and the offering's own fields."""

    ref: ClaimRef
    uid: str
    generation: int
    resource_version: str
    created_at: dt.datetime
    deletion_requested_at: dt.datetime | None
    finalizers: tuple[str, ...]
    labels: dict[str, str]
    annotations: dict[str, str]
    spec: dict[str, Any]
    status: dict[str, Any]
    composed: tuple[ComposedObject, ...]
    managers: tuple[FieldManager, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimEvent:
    """One step of a watch. `claim` is the last known state when it is gone. `cursor` resumes after this event."""

    gone: bool
    claim: ObservedClaim
    cursor: str


@dataclass(frozen=True, slots=True)
class DirectoryPerson:
    """A person as the directory has them. `person_id` stays with the person where a name may go to another; `groups`
    are references of all groups they are in, those above included."""

    ref: str
    person_id: str
    name: str
    email: str
    groups: tuple[str, ...]


class Directory(Protocol):
    """Who people are and which groups they are in."""

    def person(self, ref: str) -> DirectoryPerson | None:
        """The person of a reference (user:default/ada); None: there is nobody. Complete, or RetryableError."""


@dataclass(frozen=True, slots=True)
class Notification:
    """What people are told. Recipients are references of the directory (user:default/ada, group:default/search: all in
    it and in groups below); `exclude` those who are left out of groups. `scope` names what it is about: of one scope
    nobody has two."""

    recipients: tuple[str, ...]
    title: str
    description: str
    link: str  # http or https
    topic: str
    scope: str
    severity: str = "normal"  # critical, high, normal, low
    exclude: tuple[str, ...] = ()


class Notifier(Protocol):
    """Tells people. Has a timeout and raises only PortError."""

    def send(self, notification: Notification) -> None:
        """Tell them, once per scope however often it is called. TerminalError `notification-refused`: never will be."""


class Deliver(Protocol):
    """The writing half of a control plane. Every call has a timeout and raises only PortError."""

    def ensure_namespace(self, namespace: str, create: bool, labels: dict[str, str]) -> None:
        """Make sure the namespace is there; with create=False a missing one is TerminalError `namespace-missing`."""

    def composition_revision(self, composition: str) -> str:
        """Name of the newest revision of a Composition, to be pinned. TerminalError `composition-missing`."""

    def apply(self, claim: dict[str, Any], *, force: bool = False) -> Applied:
        """Create or change the claim, idempotently. An object of that name whose instance label differs is somebody
        else's: TerminalError `claim-name-taken`, and nothing is written. A field that somebody else has set to
        another value: TerminalError `field-conflict`, naming field and manager; `force` takes it back (an audited
        decision of the caller's)."""

    def dry_run(self, claim: dict[str, Any]) -> DryRun:
        """What `apply` would make of it now: raises what apply would, and writes nothing."""

    def publish_approval_keys(self, keys: dict[str, str]) -> None:
        """Hand the public keys that approvals are verified with (key id -> PEM) to the composition function, in place
        of those that are there."""

    def delete(self, ref: ClaimRef, uid: str | None) -> None:
        """Ask for (foreground) deletion of this uid; an absent claim is fine. It is gone when Observe says so."""


class Observe(Protocol):
    """The reading half. A list that can't be complete raises; it never answers with less."""

    def get(self, ref: ClaimRef) -> ObservedClaim | None:
        """The claim now, or None when it is gone."""

    def watch(self, kinds: list[ClaimRef], cursor: str, timeout: float) -> Iterator[ClaimEvent]:
        """Changes after `cursor` for up to `timeout` seconds, then ends. A cursor that is too old: RetryableError
        `cursor-expired` (list again)."""

    def list(self, kinds: list[ClaimRef]) -> tuple[list[ObservedClaim], str]:
        """All claims of these kinds (name and namespace of the refs are ignored) and the cursor to watch from."""

    def explanations(self, claim: ObservedClaim) -> tuple[Explanation, ...]:
        """The Events of a claim and of what it composed, newest first, at most 20. They expire: none is no news."""

    def fleet(self) -> tuple[FleetCluster, ...]:
        """The workload clusters behind it with capacity and use, by name."""


class ControlPlane(Deliver, Observe, Protocol):
    """Both halves."""

    name: str
    label: str  # what people are told of it, e.g. "embedded: simulated, no cluster behind it"
