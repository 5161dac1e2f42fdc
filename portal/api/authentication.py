"""Who is at the door: a bearer token, or the session of somebody who is signed in.

In charge of: turning credentials into an `Actor`, and the one answer for all that are no good. Not in charge of:
making or checking tokens (services.tokens), or what an Actor may do (services.access).
"""

from __future__ import annotations

from django.contrib.auth.models import User
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.request import Request

from portal.services.access import Actor
from portal.services.tokens import actor_for_token

SCHEME = "bearer"


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer prt_…`. A header that is there and no good is refused, whatever else is sent along."""

    def authenticate(self, request: Request) -> tuple[User, Actor] | None:
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, token = header.strip().partition(" ")
        if scheme.lower() != SCHEME:
            raise AuthenticationFailed("The Authorization header is not of the form 'Bearer prt_…'.")
        actor = actor_for_token(token.strip())
        if actor is None:
            # One answer for malformed, unknown, expired and revoked: it helps nobody to guess.
            raise AuthenticationFailed("This token is not valid (any more). Ask for a new one: manage.py token USER.")
        return actor.user, actor

    def authenticate_header(self, request: Request) -> str:
        """Answers 401 rather than 403 to those without credentials (RFC 6750, 3)."""
        return 'Bearer realm="portal"'


class SignedIn(SessionAuthentication):
    """The session of the pages, for htmx and the API's own documentation. Writing needs the CSRF token."""


def actor_of(request: Request) -> Actor:
    """The Actor of an authenticated request."""
    if isinstance(request.auth, Actor):
        return request.auth
    if not isinstance(request.user, User):
        raise NotAuthenticated()
    return Actor(user=request.user)
