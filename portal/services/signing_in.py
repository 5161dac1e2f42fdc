"""The brake on guessing passwords, and the record of who signed in.

In charge of: when an attempt is refused unseen, and what is written of each. Failures are counted in the audit log,
which all web processes share. Not in charge of: passwords themselves (Django), or tokens (256 random bits).
"""

from __future__ import annotations

import datetime as dt

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from portal.models import AuditEvent
from portal.services import journal

FAILED = "person.signin_failed"
WINDOW = dt.timedelta(minutes=10)
MOST_OF_ACCOUNT = 10  # failures in WINDOW
MOST_OF_ADDRESS = 50  # an office or a proxy is one address for many people


def refused(username: str, address: str) -> bool:
    """Whether there were too many failures for this name or from this address lately; then even the right password is
    not looked at. Holds for names that nobody has too: it tells nothing about who there is."""
    lately = AuditEvent.objects.filter(verb=FAILED, at__gt=timezone.now() - WINDOW)
    return (
        lately.filter(data__account=_mark(username))[:MOST_OF_ACCOUNT].count() >= MOST_OF_ACCOUNT
        or lately.filter(data__address=address)[:MOST_OF_ADDRESS].count() >= MOST_OF_ADDRESS
    )


def failed(username: str, address: str) -> None:
    """Count a failure. The log never forgets, so a name is written only if it is one: people type passwords there."""
    known = User.objects.filter(username=username).values_list("username", flat=True).first()
    with transaction.atomic():
        data = {"account": _mark(username), "user": known, "address": address}
        journal.record(FAILED, system="sign-in", data=data)


def succeeded(user: User, address: str) -> None:
    with transaction.atomic():
        journal.record("person.signin", actor=user, data={"address": address})


def _mark(username: str) -> str:
    return salted_hmac("portal.signing_in", username, algorithm="sha256").hexdigest()[:32]
