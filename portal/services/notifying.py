"""Tells people what waits for them and how their requests go on.

In charge of: whom, and in which words. Not in charge of: when (notices), or how it is sent (adapters, handed in).
Nobody is asked to vote on their own request: the same rules as for a vote say whom to ask.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from portal.models import Identity, OutboxRow, Request
from portal.ports import Notification, Notifier, TerminalError
from portal.rendering.entity_texts import page, shown
from portal.services import approving, journal, loading, notices, outbox
from portal.services.access import Actor, ownership
from portal.services.identities import BACKSTAGE

SYSTEM = "notifying"
MAX_TITLE, MAX_DESCRIPTION = 200, 1000  # characters
MAX_PEOPLE = 200  # of one approver group who are named one by one; beyond that its groups in Backstage are
FOR_APPROVERS, FOR_REQUESTERS = "ai-platform-approvals", "ai-platform-requests"  # people can mute either
_SENTENCES = {
    notices.WAITS: "waits for your approval",
    notices.APPROVED: "is approved",
    notices.FAILED: "failed",
    notices.DENIED: "is denied",
    notices.REJECTED: "is rejected",
    notices.EXPIRED: "has expired: nobody decided in time",
}
_THINGS = {
    "Create": "{name}",
    "Change": "The change of {name}",
    "Suspend": "The suspension of {name}",
    "Resume": "The resumption of {name}",
    "Delete": "The deletion of {name}",
    "Quota": "The quota of {name}",
}


def notify(row: OutboxRow, notifier: Notifier | None) -> None:
    """Topic `notify`: tell whoever it is for, if it still is so. Raises RetryableError for the caller to postpone."""
    request = Request.objects.select_related("team", "environment", "instance", "requester", "made_for").get(
        pk=row.payload["request"]
    )
    about = row.payload["about"]
    notification = None if notifier is None or _overtaken(row) else _notification(request, about)
    if notifier is None or notification is None:
        with transaction.atomic():
            outbox.acknowledge(row, "cancelled")
        return
    try:
        notifier.send(notification)
    except TerminalError as error:
        give_up(row, str(error))
        return
    with transaction.atomic():
        outbox.acknowledge(row)
        data = {"about": about, "recipients": list(notification.recipients), "exclude": list(notification.exclude)}
        journal.record("notification.send", system=SYSTEM, request=request, data=data)


def give_up(row: OutboxRow, error: str) -> None:
    """It will not be told. The portal's own pages say it all the same."""
    with transaction.atomic():
        OutboxRow.objects.filter(pk=row.pk).update(last_error=error[:2000])
        outbox.acknowledge(row, "failed")
        request = Request.objects.get(pk=row.payload["request"])
        data = {"about": row.payload["about"], "error": error[:500]}
        journal.record("notification.fail", system=SYSTEM, request=request, data=data)


def _overtaken(row: OutboxRow) -> bool:
    """Whether a later round of asking is queued: it asks the right ones."""
    later = OutboxRow.objects.filter(lane=row.lane, done_at=None, pk__gt=row.pk)
    return row.payload["about"] == notices.WAITS and later.exists()


def _notification(request: Request, about: str) -> Notification | None:
    """None where nobody is to be told, or nobody whom Backstage knows."""
    if about == notices.WAITS:
        return _asking(request)
    recipients = _refs([request.requester, *([request.made_for] if request.made_for else [])])
    bad = about not in (notices.APPROVED, notices.DONE)
    return _made(
        request, about, recipients, _outcome(request, about), FOR_REQUESTERS, severity="high" if bad else "normal"
    )


def _asking(request: Request) -> Notification | None:
    """To those who can vote on the open stage: the groups in Backstage that make its approver group, and its members
    here. Whoever can't, such as the requester, is left out of both."""
    stage = approving.open_stage(request)
    if stage is None:
        return None
    members = User.objects.filter(groups__name=stage.group, is_active=True).order_by("pk")
    known = members.filter(identities__issuer=BACKSTAGE, identities__ended_at=None).distinct()[:MAX_PEOPLE]
    may: list[User] = []
    may_not: list[User] = []
    for user in known:
        (may_not if approving.why_not(request, Actor(user)) else may).append(user)
    whose = ownership(request)
    own = User.objects.filter(username__in=whose.requesters | whose.made_for | whose.gaining)
    groups = loading.directory_rules().groups_of(approvers=stage.group)
    who = request.requester.get_full_name() or request.requester.username
    words = [f"{who} asks for it, for {request.team.slug}{_place(request)}{_cost(request)}.", stage.message]
    if request.reason:
        words.append(f"Reason: {request.reason}")
    return _made(
        request,
        notices.WAITS,
        (*groups, *_refs(may)),
        " ".join(word for word in words if word),
        FOR_APPROVERS,
        scope=f":{stage.pk}",
        exclude=_refs([*may_not, *own]),
    )


def _made(
    request: Request,
    about: str,
    recipients: tuple[str, ...],
    description: str,
    topic: str,
    *,
    severity: str = "normal",
    scope: str = "",
    exclude: tuple[str, ...] = (),
) -> Notification | None:
    left = tuple(ref for ref in recipients if ref not in exclude)
    if not left:
        return None
    name = request.instance.name if request.instance else request.name or request.team.slug
    thing = _THINGS.get(request.kind, "{name}").replace("{name}", name)
    done = "is ready" if request.kind == "Create" else "is done"
    return Notification(
        recipients=left,
        title=shown(f"{thing} {_SENTENCES.get(about, done)}", MAX_TITLE),
        description=shown(description, MAX_DESCRIPTION),
        link=page(settings.PUBLIC_URL, "requests", str(request.pk)),
        topic=topic,
        scope=f"portal:{request.pk}:{about}{scope}",
        severity=severity,
        exclude=exclude,
    )


def _outcome(request: Request, about: str) -> str:
    """What the requester wants to know: why not, or what it is now."""
    if about == notices.FAILED:
        return request.failure_message or "It could not be delivered."
    if about == notices.REJECTED:
        vote = next((v for s in approving.current_stages(request) for v in s.votes.all() if v.answer == "reject"), None)
        return f"{vote.voter.get_full_name() or vote.voter.username}: {vote.comment}" if vote else ""
    if about == notices.DENIED:
        return " ".join(str(each["message"]) for each in request.decisions.latest("id").result["reasons"])
    return f"For {request.team.slug}{_place(request)}{_cost(request)}."


def _place(request: Request) -> str:
    return f" in {request.environment.slug}" if request.environment else ""


def _cost(request: Request) -> str:
    if request.quote_monthly is None:
        return ""
    return f", up to {request.quote_monthly} {request.quote_currency} a month"


def _refs(users: Iterable[User]) -> tuple[str, ...]:
    """How Backstage calls them, those of them whom it knows."""
    found = Identity.objects.filter(user__in=list(users), issuer=BACKSTAGE, ended_at=None, ref__startswith="user:")
    return tuple(found.order_by("ref").values_list("ref", flat=True))
