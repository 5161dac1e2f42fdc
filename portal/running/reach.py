"""In charge of: whether a database or broker that somebody else runs can be reached, asked once before anything starts.

Not in charge of: outages later on; each process waits those out itself.
"""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from portal.running import doors
from portal.running.errors import Unreachable

SECONDS = 5
_POSTGRES_PORT, _REDIS_PORT = 5432, 6379


def database(url: str) -> None:
    """Connects once to the PostgreSQL at a libpq URL. Raises Unreachable, in one line."""
    try:
        psycopg.connect(url, connect_timeout=SECONDS).close()
    except psycopg.Error as error:
        parts = conninfo_to_dict(url)
        place = f"{parts.get('host', 'localhost')} port {parts.get('port', _POSTGRES_PORT)}"
        said = " ".join(str(error).split())
        raise Unreachable(
            f"DATABASE_URL: the database {parts.get('dbname')!r} at {place} can't be used: {said}"
        ) from None


def broker(url: str) -> None:
    """Connects once to where a broker listens. Raises Unreachable, in one line."""
    parts = urlsplit(url)
    if parts.scheme == "redis+socket":
        path = Path(unquote(parts.path))
        if not doors.accepts(path):
            raise Unreachable(f"BROKER_URL: nobody listens on the socket {path}.")
        return
    host, port = parts.hostname or "localhost", parts.port or _REDIS_PORT
    try:
        socket.create_connection((host, port), SECONDS).close()
    except OSError as error:
        raise Unreachable(
            f"BROKER_URL: the broker at {host} port {port} can't be reached: {error.strerror or error}."
        ) from None
