"""A call to the function as plain Python: what comes in, what goes out.

Keeps the modules that compose free of gRPC and protobuf, so that they can be read and tested as functions of dicts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from composition_function.slots import Placement

Manifest = dict[str, Any]

# Seconds after which the control plane should call again. Required resources are not watched, so a claim that waits for
# something to change in the fleet has to look by itself.
TTL_NEXT_STEP = 1
TTL_PENDING = 10
TTL_SETTLED = 60
TTL_WAITING_MOST = 300


class SpecError(Exception):
    """A field of an object can't be used. The message names the object, the JSON pointer and the way out."""


@dataclass(frozen=True)
class Selector:
    """All objects of a kind that a composer has to see: with these labels, in all namespaces unless one is named; or
    the one with a name."""

    name: str
    api_version: str
    kind: str
    labels: tuple[tuple[str, str], ...] = ()
    namespace: str | None = None
    match_name: str | None = None


@dataclass(frozen=True)
class Approval:
    """What came of a claim's signed approval. ``keeps``: not granted, but what is composed already may stay as long as
    it doesn't grow. Not ``enforced``: a refusal is told, and nothing else comes of it."""

    granted: bool
    reason: str
    message: str = ""
    keeps: bool = False
    enforced: bool = True


@dataclass(frozen=True)
class Request:
    """The claim, what was composed for it, and the objects asked for, by selector name.

    ``answered`` is the placement that it was given a moment ago, which ``composite`` may not show yet (``memory``).
    """

    composite: Manifest
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    required: Mapping[str, Sequence[Manifest]] = field(default_factory=dict)
    answered: Placement | None = None
    approval: Approval = Approval(True, "NotAsked")


@dataclass(frozen=True)
class Condition:
    """A condition of the claim. ``Ready`` and ``Synced`` belong to the control plane and are not among these."""

    type: str
    status: bool
    reason: str
    message: str = ""


@dataclass
class Composed:
    """A desired resource, and whether what it stands for was observed to be ready."""

    manifest: Manifest
    ready: bool = False


@dataclass
class Outcome:
    """What should be. ``ready`` is said explicitly: composing nothing must never count as ready."""

    ready: bool = False
    resources: dict[str, Composed] = field(default_factory=dict)
    status: Manifest = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    ttl: int = TTL_SETTLED
    placement: Placement | None = None  # of a claim that was placed


def at(document: Any, *path: str | int, default: Any = None) -> Any:
    """The value at a path of keys and indices, or ``default`` where a step is missing or of another shape."""
    for step in path:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return default
    return default if document is None else document


def describe(composite: Manifest) -> str:
    """Kind and name of an object for messages, for example ``ModelDeployment search-dev/chat``."""
    names = [at(composite, "metadata", "namespace"), at(composite, "metadata", "name", default="?")]
    return f"{composite.get('kind', '?')} " + "/".join(name for name in names if name)


def whole(document: Manifest, *path: str, minimum: int = 0) -> int:
    """An integer field. Numbers come as floats from protobuf; only those without a fraction are taken."""
    value = at(document, *path)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < minimum:
        pointer = "/" + "/".join(path)
        shown = "missing" if value is None else repr(value)
        raise SpecError(f"{describe(document)}: {pointer} is {shown}; it must be an integer of at least {minimum}")
    return int(value)


def text(document: Manifest, *path: str) -> str:
    """A string field that must be there."""
    value = at(document, *path)
    if not isinstance(value, str) or not value:
        shown = "missing" if value is None else repr(value)
        raise SpecError(f"{describe(document)}: /{'/'.join(path)} is {shown}; it must be a text that is not empty")
    return value
