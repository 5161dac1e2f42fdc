"""The demo's sign-ins: a password and a token for each sample person. They exist in demo mode alone.

The tokens are the demo's own way in; passwords are for whoever looks at the pages afterwards.
"""

from __future__ import annotations

import secrets
from typing import TypedDict

from django.contrib.auth.models import User
from django.db import transaction

from portal.services import journal
from portal.services.tokens import create_token

SERVICE = "catalog-service"


class Account(TypedDict):
    """One way in. `role` is for people to read."""

    username: str
    password: str
    role: str
    token: str


def make_accounts() -> list[Account]:
    """Give every person there a new password and a token of one day, and return them. Demo mode only."""
    with transaction.atomic():
        return [_account(user) for user in User.objects.filter(is_active=True).order_by("username")]


def _account(user: User) -> Account:
    password = "" if user.username == SERVICE else secrets.token_urlsafe(9)
    if password:
        user.set_password(password)
        user.save(update_fields=["password"])
        journal.record("person.demo_password", system="demo", data={"user": user.username})
    scopes = ["feed"] if user.username == SERVICE else ["read", "request", "approve"]
    token = create_token(user, name="demo", scopes=scopes, days=1)
    return {"username": user.username, "password": password, "role": _role(user), "token": token}


def _role(user: User) -> str:
    teams = [f"{row.role} of {row.team.slug}" for row in user.memberships.select_related("team")]
    return ", ".join([*teams, *user.groups.order_by("name").values_list("name", flat=True)]) or "service"
