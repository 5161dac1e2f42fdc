"""The public keys of a Backstage plugin: kept, and fetched again when a token names one that is not among them.

In charge of: how often and how long. A key set is asked for at most every REFETCH_AFTER seconds, whatever tokens come;
while it can't be fetched, the keys that were there last go on for KEEP seconds. Not in charge of: tokens.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import jwt

from portal.adapters.backstage.reading import fetch
from portal.ports import RetryableError

REFETCH_AFTER = 5.0  # seconds between two fetches because of a key that is not known
FRESH = 600.0  # seconds after which keys are fetched again anyway, so that a withdrawn one ends
KEEP = 3600.0  # seconds for which old keys hold while Backstage does not answer
MAX_KEYS = 100
ALGORITHM = "ES256"  # what Backstage signs with; its tokens don't choose


class KeySet:
    """The keys at one address. Safe to use from several threads."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url, self._clock = url, clock
        self._lock = threading.Lock()
        self._keys: dict[str, Any] = {}
        self._fetched: float | None = None  # the last time that it answered
        self._tried: float | None = None

    def key(self, kid: str) -> Any | None:
        """The public key of this id, None when there is none. Raises RetryableError when that can't be known."""
        with self._lock:
            now = self._clock()
            fresh = self._fetched is not None and now - self._fetched < FRESH
            if (kid not in self._keys or not fresh) and (self._tried is None or now - self._tried >= REFETCH_AFTER):
                self._fetch(now)
            if self._fetched is None or now - self._fetched > KEEP:
                raise RetryableError("backstage-unavailable", "its keys can't be read")
            return self._keys.get(kid)

    def _fetch(self, now: float) -> None:
        self._tried = now
        try:
            status, answer = fetch("GET", self._url)
        except RetryableError:
            return
        rows = answer.get("keys") if status == 200 and isinstance(answer, dict) else None
        if isinstance(rows, list) and len(rows) <= MAX_KEYS:
            self._keys, self._fetched = dict(filter(None, map(_public, rows))), now


def _public(row: object) -> tuple[str, Any] | None:
    """Key id and key of a JWK that Backstage may have signed with; others are left alone."""
    if not isinstance(row, dict) or not isinstance(row.get("kid"), str) or row.get("kty") != "EC":
        return None
    if row.get("alg", ALGORITHM) != ALGORITHM:
        return None
    try:
        return row["kid"], jwt.PyJWK(row, ALGORITHM).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
