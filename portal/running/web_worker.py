"""In charge of: how long one client may hold a thread of a web process; gunicorn has no setting for it.

Not in charge of: gunicorn's configuration (web.py), or what is answered.
"""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from portal.running import ending

HEAD = 10.0  # seconds until a request's line and headers have to be there
BODY = 60.0  # seconds from then on, until the body has to be
LINGER = 2.0  # seconds for a client to take the end of an answer, as in gunicorn
DRAINED = 65536  # bytes that it may still send meanwhile, as in gunicorn


class BoundedThreads(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Ends what a client is too slow to say, and waits for nobody in the one thread that accepts connections."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reading: dict[Any, float] = {}  # connection in a thread -> until when it is listened to

    def handle_exit(self, sig: int, frame: Any) -> None:
        """A signal to end: whoever waits for something is answered now."""
        ending.begin()
        super().handle_exit(sig, frame)

    def handle(self, conn: Any) -> Any:
        """In a thread: one request."""
        self.reading[conn] = time.monotonic() + HEAD
        try:
            result = super().handle(conn)
        finally:
            self.reading.pop(conn, None)
        if result is False:
            _linger(conn.sock)  # here: gunicorn would do so where it accepts connections, one client after the other
        return result

    def handle_request(self, req: Any, conn: Any) -> Any:
        self.reading[conn] = time.monotonic() + BODY
        return super().handle_request(req, conn)

    def murder_pending(self) -> None:
        """In the accepting thread, once a second at least."""
        super().murder_pending()
        now = time.monotonic()
        for conn, until in list(self.reading.items()):
            if until < now:
                with contextlib.suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RD)  # its thread reads the end; an answer could still be sent


def _linger(sock: socket.socket) -> None:
    """Say goodbye and wait a little for the other side's, so that the answer isn't cut off (RFC 9112, 9.6)."""
    until, drained = time.monotonic() + LINGER, 0
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
        while drained < DRAINED and (left := until - time.monotonic()) > 0:
            sock.settimeout(left)
            received = len(sock.recv(4096))
            if not received:
                break
            drained += received
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RD)
