"""One process leads, others stand by: a session's advisory lock in PostgreSQL, on a connection of its own.

The lock lives as long as that connection: who is killed, or loses the database, has lost the lead, and another takes
it. A host that vanishes without a word is noticed by TCP keepalives within half a minute. A pooler that hands
connections from transaction to transaction (PgBouncer's transaction mode) can't stand in between.

Not in charge of: what the leader does; it asks `check` before each thing that only a leader may do.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from typing import Any

import psycopg
from django.db import connections

CONNECT_SECONDS = 10
# Both ends notice a dead peer after 10 + 3 * 5 s; else the server would keep a vanished leader's lock for hours.
_KEEPALIVE: dict[str, Any] = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_SERVER_KEEPALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
_NAME_LIMIT = 63  # bytes of an application_name


class LeadLost(Exception):
    """The lock's connection is gone: somebody else may lead by now. Stop writing, and stand by."""


class Lead:
    """The lead in one matter (`what`). Not to be shared by threads."""

    def __init__(self, what: str) -> None:
        self._what = what
        digest = hashlib.sha256(what.encode()).digest()
        self._key = int.from_bytes(digest[:8], signed=True)
        self._connection: psycopg.Connection[Any] | None = None
        self._held = False

    def take(self) -> bool:
        """Whether we lead, from now on or still. psycopg.Error when the database is away."""
        if self._held:
            with contextlib.suppress(LeadLost):
                self.check()
                return True
        if self._connection is None:
            self._connection = _connect(self._name())
        row = self._ask("SELECT pg_try_advisory_lock(%s)", [self._key])
        self._held = bool(row and row[0])
        return self._held

    def check(self) -> None:
        """LeadLost unless the lock's connection is alive: one round trip."""
        if self._connection is None or not self._held:
            raise LeadLost(self._what)
        try:
            self._ask("SELECT 1", [])
        except psycopg.Error as error:
            raise LeadLost(f"{self._what}: {error}") from error

    def leader(self) -> str:
        """Who leads, as it called itself; empty if nobody does."""
        if self._connection is None:
            return ""
        row = self._ask(
            "SELECT a.application_name, a.client_addr FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "
            "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND (l.classid::bigint << 32 | l.objid::bigint) = %s",
            [self._key],
        )
        return " ".join(str(part) for part in row or () if part)

    def release(self) -> None:
        """Give the lead up; also without having it."""
        self._held = False
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _ask(self, sql: str, values: list[Any]) -> tuple[Any, ...] | None:
        assert self._connection is not None  # noqa: S101 - the two callers have made it
        try:
            found: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
        except psycopg.Error:
            self.release()
            raise
        return found

    def _name(self) -> str:
        return f"{self._what} at {socket.gethostname()} pid {os.getpid()}".encode()[:_NAME_LIMIT].decode(
            errors="ignore"
        )


def _connect(name: str) -> psycopg.Connection[Any]:
    """A connection to the portal's database, outside of its pool: nobody else may get the lock with it."""
    parameters = dict(connections["default"].get_connection_params())
    for own in ("context", "cursor_factory", "prepare_threshold"):  # what makes it Django's
        parameters.pop(own, None)
    options = f"{parameters.pop('options', '')} {_SERVER_KEEPALIVE}".strip()
    given = {"connect_timeout": CONNECT_SECONDS, **_KEEPALIVE, **parameters}
    return psycopg.connect(**given, options=options, application_name=name, autocommit=True)
