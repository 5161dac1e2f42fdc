"""Whoever set up another person's account lately could sign in as that person: is that so for a voter and a requester?

In charge of: reading who did what to whose account, from the audit log. Not in charge of: who may do that (the admin),
or any other rule about votes (approving).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from django.contrib.auth.models import User
from django.utils import timezone

from portal.models import AuditEvent
from portal.services.errors import Forbidden

VERBS = ("person.create", "person.change")
WINDOW = dt.timedelta(hours=24)


def refusal(voter: User, requesters: Collection[str]) -> Forbidden | None:
    """Why this person's vote does not count for a request of these people (user names), or None."""
    behind = _set_up_by(set(requesters))
    if voter.username not in behind:
        return None
    by = behind[voter.username]
    whose = "by whoever asked for this" if by in requesters else f"by {by}, whom whoever asked for this set up"
    return Forbidden(
        "approver-set-up-by-requester",
        f"your account was made or changed {whose}, less than {WINDOW.total_seconds() // 3600:.0f} hours ago; "
        "somebody else has to vote, or you when that time is over",
    )


def _set_up_by(people: set[str]) -> dict[str, str]:
    """Who was set up lately by these people, or by somebody whom they set up: user name -> by whom."""
    events = AuditEvent.objects.filter(verb__in=VERBS, at__gt=timezone.now() - WINDOW, actor__isnull=False)
    rows = list(events.values_list("actor__username", "data__person", "data__name"))
    names = dict(User.objects.filter(pk__in=[pk for _, pk, _ in rows if pk]).values_list("pk", "username"))
    done = [(by, names.get(pk, name)) for by, pk, name in rows]  # somebody who was renamed is the same person
    found: dict[str, str] = {}
    more = True
    while more:
        known = people | found.keys()
        fresh = {whom: by for by, whom in done if by in known and whom not in known}
        found |= fresh
        more = bool(fresh)
    return found
