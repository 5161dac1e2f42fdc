"""In charge of: the HTTP port, opened once and kept while the web processes behind it come and go; and asking sockets.

Not in charge of: what is answered.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from portal.running import addresses
from portal.running.errors import PortTaken

TRIED = 100  # ports, when the next free one will do


@dataclass(frozen=True)
class Door:
    """A socket that listens, to be handed to a web server."""

    descriptor: int
    port: int
    url: str  # without a path; where a client on this machine reaches it


@contextlib.contextmanager
def listen(bind: str, port: int, next_free: bool) -> Iterator[Door]:
    """Listens on bind:port, or on the next free port after it. Raises PortTaken."""
    listener = _open(bind, port, next_free)
    with listener:
        listener.listen(1024)
        taken = listener.getsockname()[1]
        yield Door(listener.fileno(), taken, addresses.local_url(bind, taken))


def _open(bind: str, port: int, next_free: bool) -> socket.socket:
    last = min(port + TRIED, 65536) if next_free else port + 1
    for candidate in range(port, last):
        try:
            family, _, _, _, address = socket.getaddrinfo(bind or None, candidate, type=socket.SOCK_STREAM)[0]
            return _bound(family, address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise PortTaken(
                    f"HTTP_BIND={bind} HTTP_PORT={candidate} can't be listened on: {error.strerror or error}. "
                    "Set them to an address of this machine and a port that this user may open."
                ) from error
    ports = f"{port}" if not next_free else f"{port} to {last - 1}"
    raise PortTaken(
        f"HTTP_PORT={ports} on {bind} is taken by another process. End it, or set HTTP_PORT to a free port."
    )


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections of a portal that ended a moment ago may still linger on the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def accepts(path: Path) -> bool:
    """Whether somebody listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


def answers(url: str) -> bool:
    """Whether a GET is answered without a server error."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=1)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
