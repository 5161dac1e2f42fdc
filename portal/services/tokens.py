"""Makes, checks and revokes API tokens. The secret is shown once; what is kept is its hash.

A token is `prt_<prefix>_<secret>`; 256 random bits need no slow hash (they can't be guessed offline), so SHA-256 it is.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import re
import secrets

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from portal.domain.schema import Problem
from portal.models import ApiToken
from portal.services import journal
from portal.services.access import SCOPES, Actor
from portal.services.errors import InvalidInput

PATTERN = re.compile(r"^prt_([a-z0-9]{12})_([A-Za-z0-9_-]{43})$")
MAX_DAYS = 366


def create_token(user: User, *, name: str, scopes: list[str], days: int, actor: User | None = None) -> str:
    """Make a token and return it, once. `feed` on a token is a right of its own: give it to services only."""
    problems = [
        Problem(f"/scopes/{place}", "unknown-scope", f"'{scope}' is none of {', '.join(SCOPES)}")
        for place, scope in enumerate(scopes)
        if scope not in SCOPES
    ]
    if not 1 <= days <= MAX_DAYS:
        problems.append(Problem("/days", "out-of-range", f"{days} days; a token lives 1 to {MAX_DAYS} days"))
    if problems:
        raise InvalidInput(problems)
    prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    with transaction.atomic():
        ApiToken.objects.create(
            prefix=prefix,
            secret_hash=_hash(secret),
            user=user,
            name=name,
            scopes=sorted(set(scopes)),
            expires_at=timezone.now() + dt.timedelta(days=days),
        )
        journal.record(
            "token.create",
            actor=actor,
            system="" if actor else "token command",
            data={"user": user.username, "prefix": prefix, "name": name, "scopes": sorted(set(scopes)), "days": days},
        )
    return f"prt_{prefix}_{secret}"


def actor_for_token(token: str) -> Actor | None:
    """Who presents it, or None when it is malformed, unknown, wrong, expired or revoked, or its person inactive."""
    match = PATTERN.match(token)
    if not match:
        return None
    row = ApiToken.objects.select_related("user").filter(prefix=match[1]).first()
    if row is None or not hmac.compare_digest(row.secret_hash, _hash(match[2])):
        return None
    if row.revoked_at is not None or row.expires_at <= timezone.now() or not row.user.is_active:
        return None
    return Actor(user=row.user, scopes=frozenset(row.scopes))


def revoke_token(prefix: str, *, actor: User | None = None) -> bool:
    """End a token now; False when there is none to end."""
    with transaction.atomic():
        ended = ApiToken.objects.filter(prefix=prefix, revoked_at=None).update(revoked_at=timezone.now())
        if ended:
            journal.record(
                "token.revoke", actor=actor, system="" if actor else "token command", data={"prefix": prefix}
            )
    return bool(ended)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
