"""The life of a Request: its states, and the one table that says which verb leads from which state to which.

In charge of: the names of states, verbs and Instance phases, and which step is possible. Not in charge of: who may
take a step (approval, access), doing it (services), or finding out an Instance's phase (claim_status).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique
from types import MappingProxyType


@unique
class RequestState(StrEnum):
    """Where a Request stands."""

    DRAFT = "Draft"
    WAITING = "Waiting"
    APPROVED = "Approved"
    DELIVERING = "Delivering"
    DONE = "Done"
    FAILED = "Failed"
    DENIED = "Denied"
    REJECTED = "Rejected"
    WITHDRAWN = "Withdrawn"
    EXPIRED = "Expired"
    SUPERSEDED = "Superseded"


@unique
class InstancePhase(StrEnum):
    """What is known of an Instance from its claim."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    READY = "Ready"
    DEGRADED = "Degraded"
    UPDATING = "Updating"
    SUSPENDED = "Suspended"
    DELETING = "Deleting"
    STUCK = "Stuck"
    GONE = "Gone"
    UNKNOWN = "Unknown"


@unique
class Verb(StrEnum):
    """A step of a Request. `ask`, `allow` and `deny` are the three answers of the policies when it is submitted."""

    ASK = "ask"  # submitted, and stages are demanded
    ALLOW = "allow"  # submitted, and nobody has to be asked
    DENY = "deny"  # the policies refuse, at submission or when deciding again
    APPROVE = "approve"  # the last vote of the last stage
    REJECT = "reject"
    WITHDRAW = "withdraw"
    EXPIRE = "expire"
    SUPERSEDE = "supersede"
    ASK_AGAIN = "ask_again"  # decided again: a new stage, or a cost above the quote
    DELIVER = "deliver"  # the first delivery attempt: from here on the inputs are frozen
    FINISH = "finish"  # observed as it was asked
    FAIL = "fail"
    ADOPT = "adopt"  # found on a control plane: it was asked for and delivered without this database's knowing


_S, _V = RequestState, Verb

TRANSITIONS: Mapping[tuple[RequestState, Verb], RequestState] = MappingProxyType(
    {
        (_S.DRAFT, _V.ASK): _S.WAITING,
        (_S.DRAFT, _V.ALLOW): _S.APPROVED,
        (_S.DRAFT, _V.DENY): _S.DENIED,
        (_S.DRAFT, _V.WITHDRAW): _S.WITHDRAWN,
        (_S.DRAFT, _V.ADOPT): _S.DONE,
        (_S.WAITING, _V.ADOPT): _S.DONE,
        (_S.APPROVED, _V.ADOPT): _S.DONE,
        (_S.WAITING, _V.APPROVE): _S.APPROVED,
        (_S.WAITING, _V.REJECT): _S.REJECTED,
        (_S.WAITING, _V.WITHDRAW): _S.WITHDRAWN,
        (_S.WAITING, _V.EXPIRE): _S.EXPIRED,
        (_S.WAITING, _V.SUPERSEDE): _S.SUPERSEDED,
        (_S.WAITING, _V.DENY): _S.DENIED,
        # Decided again while waiting (at the last vote): it stays in line, with other stages.
        (_S.WAITING, _V.ASK_AGAIN): _S.WAITING,
        (_S.APPROVED, _V.DELIVER): _S.DELIVERING,
        (_S.APPROVED, _V.WITHDRAW): _S.WITHDRAWN,
        (_S.APPROVED, _V.ASK_AGAIN): _S.WAITING,
        (_S.APPROVED, _V.DENY): _S.DENIED,
        (_S.APPROVED, _V.EXPIRE): _S.EXPIRED,
        (_S.APPROVED, _V.SUPERSEDE): _S.SUPERSEDED,
        (_S.APPROVED, _V.FAIL): _S.FAILED,
        (_S.DELIVERING, _V.FINISH): _S.DONE,
        (_S.DELIVERING, _V.FAIL): _S.FAILED,
        # A later change of the same instance is delivered before this one was observed: a revert of one that fails.
        (_S.DELIVERING, _V.SUPERSEDE): _S.SUPERSEDED,
    }
)

FINAL: frozenset[RequestState] = frozenset(
    {_S.DONE, _S.FAILED, _S.DENIED, _S.REJECTED, _S.WITHDRAWN, _S.EXPIRED, _S.SUPERSEDED}
)
OPEN: frozenset[RequestState] = frozenset(_S) - FINAL

_HOLDING = frozenset({_S.WAITING, _S.APPROVED, _S.DELIVERING})


class IllegalTransition(Exception):
    """A verb that a state doesn't know. The message names the verbs that are possible; nothing was changed."""

    code = "illegal-transition"

    def __init__(self, state: RequestState, verb: Verb, possible: tuple[Verb, ...]) -> None:
        self.state, self.verb, self.possible = state, verb, possible
        way_out = f"possible: {', '.join(possible)}" if possible else "this state is final"
        super().__init__(f"a request in state {state} can't {verb.replace('_', ' ')}; {way_out}")


def verbs(state: RequestState) -> tuple[Verb, ...]:
    """The verbs that a state knows, in the order of `Verb`; empty for a final one."""
    return tuple(verb for verb in Verb if (state, verb) in TRANSITIONS)


def next_state(state: RequestState | str, verb: Verb | str) -> RequestState:
    """Where a verb leads. Raises IllegalTransition when the state doesn't know it, ValueError for an unknown word."""
    state, verb = RequestState(state), Verb(verb)
    try:
        return TRANSITIONS[state, verb]
    except KeyError:
        raise IllegalTransition(state, verb, verbs(state)) from None


def holds_quota(state: RequestState | str) -> bool:
    """Whether a Request in this state has a reservation of its own.

    A final one has none: a Done Create has handed it to its Instance, which holds it until its claim is gone; so has
    a Failed or Superseded one whose claim may exist (see `phase_holds_quota`).
    """
    return RequestState(state) in _HOLDING


def phase_holds_quota(phase: InstancePhase | str) -> bool:
    """Whether an Instance in this phase holds quota: until it is seen to be gone, also while Unknown or Stuck."""
    return InstancePhase(phase) is not InstancePhase.GONE
