"""In charge of: asking a program through its port whether it is up.

Not in charge of: sockets of the portal's own programs (doors.py).
"""

from __future__ import annotations

import http.client
import socket
import ssl
from pathlib import Path

TIMEOUT = 1.0  # seconds


def accepts(port: int) -> bool:
    """Whether somebody listens on the port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT).close()
    except OSError:
        return False
    return True


def healthy(port: int, path: str) -> bool:
    """Whether a GET over plain HTTP is answered with 200."""
    return _answers_ok(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT), path)


def healthy_tls(port: int, path: str, pki: Path) -> bool:
    """The same over TLS, with the authority and the client certificate in `pki`."""
    if not accepts(port):
        return False
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "tls.crt", pki / "tls.key")
    return _answers_ok(http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT, context=context), path)


def _answers_ok(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
