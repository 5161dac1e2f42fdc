"""An API server that says what a test tells it to, over plain HTTP: for answers that a real one gives too seldom.

A script is a list of answers for the paths that begin with a prefix; each request takes the next, the last stays.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """A whole answer. `body` a dict is sent as JSON."""

    status: int = 200
    body: Object | str = ""
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0  # before anything is sent


@dataclass(frozen=True)
class Events:
    """A watch's answer: its lines, then `wait` seconds of silence, then how it ends."""

    lines: tuple[Object | str, ...] = ()
    wait: float = 0.0
    end: str = "properly"  # properly, cut (in the middle of a chunk), open (nothing, for ever)


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class FakeApiServer:
    """`script` maps path prefixes to answers; `asked` is what came."""

    def __init__(self) -> None:
        self.script: dict[str, list[Reply | Events]] = {}
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake._answer(self)

            do_PATCH = do_POST = do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass  # clients that hang up are what is tested

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answers(self, prefix: str, *replies: Reply | Events) -> None:
        self.script[prefix] = list(replies)

    def paths(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def kubeconfig(self, folder: Path, token: str) -> Path:
        path = folder / "kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
            "users": [{"name": "portal", "user": {"token": token}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "portal"}}],
            "current-context": "fake",
        }
        path.write_text(json.dumps(content))  # JSON is YAML
        return path

    @contextlib.contextmanager
    def running(self) -> Iterator[FakeApiServer]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        with self._lock:
            self.asked.append(Asked(request.command, parts.path, query, dict(request.headers), body))
            # A list and a watch of one kind have one path: `?watch` at its end means the watch.
            name = parts.path + ("?watch" if "watch" in query else "")
            fitting = [prefix for prefix in self.script if name.startswith(prefix)]
            prefix = max(fitting, key=len, default="")
            replies = self.script.get(prefix) or [Reply(404, "404 page not found")]
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Reply):
            self._whole(request, reply)
        else:
            self._stream(request, reply)

    def _whole(self, request: BaseHTTPRequestHandler, reply: Reply) -> None:
        self.closing.wait(reply.wait)
        content = (json.dumps(reply.body) if isinstance(reply.body, dict) else reply.body).encode()
        request.send_response(reply.status)
        for key, value in {"content-length": str(len(content)), **reply.headers}.items():
            request.send_header(key, value)
        request.end_headers()
        request.wfile.write(content)

    def _stream(self, request: BaseHTTPRequestHandler, events: Events) -> None:
        request.send_response(200)
        request.send_header("transfer-encoding", "chunked")
        request.end_headers()
        for line in events.lines:
            text = (json.dumps(line) + "\n" if isinstance(line, dict) else line).encode()
            request.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
        request.wfile.flush()
        self.closing.wait(events.wait)
        if events.end == "properly":
            request.wfile.write(b"0\r\n\r\n")
        elif events.end == "cut":
            request.wfile.write(b"ff\r\n{")
            request.wfile.flush()
            request.close_connection = True
        else:
            self.closing.wait(60)


def status(code: int, reason: str, message: str, causes: list[Object] | None = None, **details: Any) -> Object:
    """A metav1.Status."""
    found: Object = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return {**found, "message": message, "details": {**details, "causes": causes or []}}
