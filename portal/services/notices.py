"""Which steps of a request people are told of: a row of the outbox, in the transaction of the step.

In charge of: when somebody is told. Not in charge of: whom, in which words, and sending it (notifying). Without a
Backstage (BACKSTAGE_URL and BACKSTAGE_TOKEN) nothing is written.
"""

from __future__ import annotations

from django.conf import settings

from portal.domain.lifecycle import RequestState, Verb
from portal.models import Request
from portal.services import outbox

TOPIC = "notify"
WAITS, APPROVED, DONE, FAILED, DENIED, REJECTED, EXPIRED = (
    "waits",
    "approved",
    "done",
    "failed",
    "denied",
    "rejected",
    "expired",
)
_ABOUT = {
    Verb.ASK: WAITS,
    Verb.ASK_AGAIN: WAITS,
    Verb.APPROVE: APPROVED,
    Verb.FINISH: DONE,
    Verb.FAIL: FAILED,
    Verb.DENY: DENIED,
    Verb.REJECT: REJECTED,
    Verb.EXPIRE: EXPIRED,
}


def step(request: Request, before: str, verb: Verb) -> None:
    """A request took this step. Not told: what one did oneself, what is answered at the door (a denial at submission),
    and that an approved quota holds, which it does at once."""
    about = _ABOUT.get(verb)
    at_the_door = before == RequestState.DRAFT and verb == Verb.DENY
    if about and not at_the_door and not (request.kind == "Quota" and about == DONE):
        put(request, about)


def put(request: Request, about: str) -> None:
    """Queue it in the request's own lane, so that it holds up nothing and comes in order."""
    if settings.BACKSTAGE_URL and settings.BACKSTAGE_TOKEN:
        outbox.put(f"request:{request.pk}:notify", TOPIC, {"request": str(request.pk), "about": about})
