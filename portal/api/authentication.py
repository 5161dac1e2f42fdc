"""Who is at the door: a bearer token of the portal's or of Backstage's, or the session of somebody who is signed in.

In charge of: turning credentials into an `Actor`, and the one answer for all that are no good. Not in charge of:
making or checking tokens (services.tokens), or what an Actor may do (services.access).
"""

from __future__ import annotations

import structlog
from django.contrib.auth.models import User
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.request import Request

from portal.adapters import backstage
from portal.adapters.backstage.tokens import BadToken, Tokens
from portal.ports import RetryableError
from portal.services import identities
from portal.services.access import Actor
from portal.services.tokens import actor_for_token

SCHEME = "bearer"
log = structlog.get_logger()


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer prt_…`, or a token of Backstage's.

    A header that is there and no good is refused, whatever else is sent along.
    """

    def authenticate(self, request: Request) -> tuple[User, Actor] | None:
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, token = header.strip().partition(" ")
        if scheme.lower() != SCHEME:
            raise AuthenticationFailed("The Authorization header is not of the form 'Bearer prt_…'.")
        actor = _actor(token.strip())
        if actor is None:
            # One answer for malformed, unknown, expired and revoked: it helps nobody to guess.
            raise AuthenticationFailed("This token is not valid (any more). Ask for a new one: manage.py token USER.")
        return actor.user, actor

    def authenticate_header(self, request: Request) -> str:
        """Answers 401 rather than 403 to those without credentials (RFC 6750, 3)."""
        return 'Bearer realm="portal"'


def _actor(token: str) -> Actor | None:
    known = backstage.tokens()
    if known is None or not Tokens.looks_like_one(token):
        return actor_for_token(token)
    try:
        caller = known.caller(token)
    except BadToken as error:
        log.info("authentication.refused", of="backstage", why=error.why)
        return None
    except RetryableError as error:
        # Nobody can say whose it is: not let in.
        log.warning("authentication.refused", of="backstage", why=error.message)
        raise AuthenticationFailed("Backstage's keys can't be read now, so its tokens can't be. Try again.") from None
    if not caller.is_person:
        return identities.service(caller.ref)
    return identities.person(caller.ref, backstage.directory())


class SignedIn(SessionAuthentication):
    """The session of the pages, for htmx and the API's own documentation. Writing needs the CSRF token."""


def actor_of(request: Request) -> Actor:
    """The Actor of an authenticated request."""
    if isinstance(request.auth, Actor):
        return request.auth
    if not isinstance(request.user, User):
        raise NotAuthenticated()
    return Actor(user=request.user)
