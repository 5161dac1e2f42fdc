"""In charge of: a TCP wire between Backstage and the portal that can be cut, also in the middle of an answer."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

Mode = Literal["open", "cut", "half"]
FEED = b"/api/v1/catalog/"
_BEARER = re.compile(rb"\r\nauthorization: *bearer +([^\r\n]+)", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNK = 65536


class Wire:
    """Listens on 127.0.0.1 and passes everything on, unless told otherwise:

    open: as if it were not there; cut: whoever connects is hung up on; half: an answer of the catalog feed ends after
    half of its body, and everything else gets through.
    """

    def __init__(self, target: str) -> None:
        """`target` is a URL without a path."""
        parts = urlsplit(target)
        self._target = (str(parts.hostname), int(parts.port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.halved = 0  # answers that were cut so far
        self.refused = 0  # connections that were hung up on
        self.tokens: list[str] = []  # bearer tokens that came through, the newest last
        self._mode: Mode = "open"
        self._pairs: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="wire", daemon=True).start()

    def switch(self, mode: Mode) -> None:
        """From here on; what is connected is hung up on."""
        self._mode = mode
        for end in list(self._pairs):
            _close(end)

    def close(self) -> None:
        """For good."""
        self._listener.close()
        self.switch("cut")

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._mode == "cut":
                self.refused += 1
                _close(client)
                continue
            threading.Thread(target=self._serve, args=[client, self._mode], daemon=True).start()

    def _serve(self, client: socket.socket, mode: Mode) -> None:
        try:
            server = socket.create_connection(self._target, timeout=10)
        except OSError:
            _close(client)
            return
        server.settimeout(None)
        self._pairs |= {client, server}
        with contextlib.suppress(OSError):
            first = client.recv(CHUNK)
            self._note(first)
            server.sendall(first)
            threading.Thread(target=_copy, args=[client, server, self._note], daemon=True).start()
            if mode == "half" and FEED in first.split(b"\r\n", 1)[0]:
                self._half(server, client)
            else:
                _copy(server, client)
        for end in (client, server):
            self._pairs.discard(end)
            _close(end)

    def _note(self, sent: bytes) -> None:
        self.tokens += [found.decode() for found in _BEARER.findall(sent)]

    def _half(self, server: socket.socket, client: socket.socket) -> None:
        got = b""
        while b"\r\n\r\n" not in got and (more := server.recv(CHUNK)):
            got += more
        head, _, body = got.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        wanted = int(length[1]) // 2 if length else 1
        while len(body) < wanted and (more := server.recv(CHUNK)):
            body += more
        client.sendall(head + b"\r\n\r\n" + body[:wanted])
        self.halved += 1


def _copy(source: socket.socket, sink: socket.socket, note: Callable[[bytes], None] = lambda sent: None) -> None:
    with contextlib.suppress(OSError):
        while more := source.recv(CHUNK):
            note(more)
            sink.sendall(more)
    _close(sink)


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
