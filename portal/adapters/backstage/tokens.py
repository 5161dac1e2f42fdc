"""Backstage's own tokens: whose they are, or that they are no good.

    typ vnd.backstage.user          a person, from the browser through Backstage's proxy
    typ vnd.backstage.plugin        a plugin; with `obo` (typ vnd.backstage.limited-user) it acts for that person

Both layers of the second are verified, each with the keys of whoever signed it. Source: @backstage/plugin-auth-node and
@backstage/backend-defaults (auth), and what a real backend sends (tests/e2e_backstage). In charge of the verdict only;
no part of a token gets into an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from portal.adapters.backstage.jwks import ALGORITHM, KeySet
from portal.domain.directory_rules import is_user_ref

USER, PLUGIN, LIMITED = "vnd.backstage.user", "vnd.backstage.plugin", "vnd.backstage.limited-user"
MAX_CHARACTERS = 16 * 1024  # real ones have less than 2,000
LEEWAY = 30  # seconds by which clocks may differ
OF_USERS = "backstage"
OF_PLUGINS = frozenset({"proxy", "portal"})  # whom a plugin's token may be for
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\Z")
_PLUGIN_ID = re.compile(r"[a-z][a-z0-9-]{0,62}\Z")


class BadToken(Exception):
    """It opens nothing. `why` is for the log, in words of ours."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Caller:
    """Who it is: a person by reference (user:default/ada), or a plugin by itself (plugin:catalog)."""

    ref: str
    is_person: bool


class Tokens:
    """Tokens of the Backstage at `url`; `plugins` may come in, by themselves or for a person."""

    def __init__(self, url: str, plugins: frozenset[str]) -> None:
        self._url, self._plugins = url, plugins
        self._users = KeySet(f"{url}/api/auth/.well-known/jwks.json")
        self._of_plugins = {name: KeySet(f"{url}/api/{name}/.backstage/auth/v1/jwks.json") for name in plugins}

    @staticmethod
    def looks_like_one(token: str) -> bool:
        """Whether it is a JWS by its form: whose, and whether it is good, is another question."""
        return _FORM.match(token) is not None

    def caller(self, token: str) -> Caller:
        """Whose token it is. Raises BadToken; RetryableError where keys can't be read."""
        header = _header(token)
        if header["typ"] == USER:
            claims = self._claims(token, header, self._users, audience=OF_USERS, issuer=f"{self._url}/api/auth")
            return Caller(_person(claims), True)
        if header["typ"] == PLUGIN:
            return self._plugin(token, header)
        raise BadToken("its typ is none that comes in here")

    def _plugin(self, token: str, header: Mapping[str, Any]) -> Caller:
        name = _unverified(token).get("sub")
        if not isinstance(name, str) or not _PLUGIN_ID.match(name) or name not in self._plugins:
            raise BadToken("its plugin is not among BACKSTAGE_PLUGINS")
        claims = self._claims(token, header, self._of_plugins[name], audience=OF_PLUGINS)
        if claims.get("sub") != name:
            raise BadToken("its plugin is another")
        if "obo" not in claims:
            return Caller(f"plugin:{name}", False)
        inner = claims["obo"]
        if not isinstance(inner, str):
            raise BadToken("obo is no token")
        inside = _header(inner)
        if inside["typ"] != LIMITED:
            raise BadToken("obo is no token of a person")
        return Caller(_person(self._claims(inner, inside, self._users)), True)

    def _claims(
        self,
        token: str,
        header: Mapping[str, Any],
        keys: KeySet,
        audience: str | frozenset[str] | None = None,
        issuer: str | None = None,
    ) -> dict[str, Any]:
        key = keys.key(header["kid"])
        if key is None:
            raise BadToken("its key is not known")
        required = ["sub", "iat", "exp", *(["aud"] if audience else []), *(["iss"] if issuer else [])]
        wanted = [audience] if isinstance(audience, str) else sorted(audience) if audience else None
        options: Any = {"require": required, "verify_aud": wanted is not None}
        try:
            claims: dict[str, Any] = jwt.decode(
                token, key, [ALGORITHM], options, audience=wanted, issuer=issuer, leeway=LEEWAY
            )
        except jwt.PyJWTError as error:
            raise BadToken(type(error).__name__) from None
        except (ValueError, TypeError, OverflowError):
            raise BadToken("its claims have wrong types") from None
        return claims


def _header(token: str) -> dict[str, Any]:
    if len(token) > MAX_CHARACTERS or not _FORM.match(token):
        raise BadToken("it is no compact JWS, or too long")
    try:
        header: dict[str, Any] = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError):
        raise BadToken("its header can't be read") from None
    if header.get("alg") != ALGORITHM:
        raise BadToken(f"it is not signed by {ALGORITHM}")
    if not isinstance(header.get("kid"), str) or not isinstance(header.get("typ"), str) or "crit" in header:
        raise BadToken("its header lacks kid or typ, or asks for an extension")
    return header


def _unverified(token: str) -> dict[str, Any]:
    """Its claims, to know whose keys to ask; nothing of them is believed."""
    try:
        claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False, "verify_exp": False})
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
        raise BadToken("its claims can't be read") from None
    return claims


def _person(claims: Mapping[str, Any]) -> str:
    ref = claims.get("sub")
    if not isinstance(ref, str) or not is_user_ref(ref):
        raise BadToken("its sub is no user")
    return ref
