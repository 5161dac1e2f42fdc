"""One API server: a request, or a stream of lines, with time limits; a no comes back as one of the port's errors.

In charge of: connections that break, credentials that are rotated (read again once after a 401), how many writes are
under way at once. Not in charge of: what is asked for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from portal.adapters.kubernetes import access, meanings
from portal.adapters.kubernetes.refusals import Action, refusal
from portal.ports import PortError, RetryableError, TerminalError

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0  # without a byte
WRITES = 8
APPLY, JSON = "application/apply-patch+yaml", "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was expected; `body` is {} when there is none."""

    status: int
    body: dict[str, Any]


def without_nul(data: bytes) -> bytes:
    """JSON in which U+0000, that no database takes in a text, is U+FFFD."""
    return data.replace(b"\\u0000", b"\\ufffd") if b"\\u0000" in data else data


class Client:
    """May be used by several threads. Nothing is loaded or connected before the first request."""

    def __init__(self, plane: str, kubeconfig: Path | None, context: str | None = None, writes: int = WRITES) -> None:
        self.plane = plane
        self._kubeconfig, self._context = kubeconfig, context
        self._access: access.Access | None = None
        self._loading = threading.Lock()
        self._writes = threading.BoundedSemaphore(writes)

    def get(self, action: Action, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A GET. Raises PortError."""
        return self._answer(action, "GET", path, query, None, JSON, ()).body

    def find(self, action: Action, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any] | None:
        """A GET of what may be absent: None. That its kind is not served, or its namespace not there, raises."""
        answer = self._answer(action, "GET", path, query, None, JSON, (404,))
        if answer.status != 404:
            return answer.body
        refused = refusal(404, orjson.dumps(answer.body), {})
        if not refused.kind:  # it names the object that is absent; a path that nobody serves names nothing
            raise meanings.not_installed(action)
        return None

    def write(
        self,
        action: Action,
        method: str,
        path: str,
        body: dict[str, Any],
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        accept: Collection[int] = (),
    ) -> Answer:
        """A change, one of so many at once. Raises PortError, unless the answer's status is in `accept`."""
        content = _encoded(body)
        if not self._writes.acquire(timeout=READ_SECONDS):
            raise RetryableError("control-plane-busy", f"too many writes to {self.plane} are under way; this one waits")
        try:
            return self._answer(action, method, path, query, content, content_type, accept)
        finally:
            self._writes.release()

    @contextlib.contextmanager
    def stream(self, action: Action, path: str, query: Mapping[str, str], idle: float) -> Iterator[Stream]:
        """A GET that is read line by line; `idle` seconds without a byte end it with RetryableError."""
        with self._transport(action):
            response = self._send(action, "GET", path, query, None, JSON, idle, stream=True)
        try:
            if response.status != 200:
                with self._transport(action):
                    raise meanings.meaning(refusal(response.status, response.read(), response.headers), action)
            yield Stream(response, lambda: self._transport(action))
        finally:
            response.close()  # what was not read is not worth reading

    def _answer(
        self,
        action: Action,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        content: bytes | None,
        content_type: str,
        accept: Collection[int],
    ) -> Answer:
        with self._transport(action):
            response = self._send(action, method, path, query, content, content_type, READ_SECONDS)
            data = response.data
        if response.status >= 400 and response.status not in accept:
            raise meanings.meaning(refusal(response.status, data, response.headers), action)
        try:
            found = orjson.loads(without_nul(data))
        except orjson.JSONDecodeError:
            found = None
        if isinstance(found, dict):
            return Answer(response.status, found)
        if response.status >= 400:
            return Answer(response.status, {})
        raise RetryableError(
            "control-plane-down",
            f"{self.plane} answers with something that is no JSON object; is its address that of an API server?",
        )

    def _send(
        self,
        action: Action,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        content: bytes | None,
        content_type: str,
        idle: float,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        used = self._loaded(None)
        arguments = (method, path, query, content, content_type, idle, stream)
        response = self._once(used, *arguments)
        if response.status != 401:
            return response
        response.drain_conn()
        response = self._once(self._loaded(used), *arguments)
        return response

    def _once(
        self,
        used: access.Access,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        content: bytes | None,
        content_type: str,
        idle: float,
        stream: bool,
    ) -> urllib3.BaseHTTPResponse:
        headers = {**used.headers(), "accept": JSON, "user-agent": "ai-platform-portal"}
        if content is not None:
            headers["content-type"] = content_type
        url = used.host + path + (f"?{urlencode(query)}" if query else "")
        for last in (False, True):
            try:
                return used.pool.request(
                    method,
                    url,
                    body=content,
                    headers=headers,
                    timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=idle),
                    retries=False,
                    preload_content=not stream,
                )
            except ProtocolError:
                # A connection that was kept open and that the server has closed meanwhile says so only now. Everything
                # sent here may be sent twice: applies, deletions by uid, creations that may find it there.
                if last:
                    raise
        raise AssertionError("unreachable")

    def _loaded(self, refused: access.Access | None) -> access.Access:
        """The access; another one than that which was refused."""
        with self._loading:
            if self._access is None or self._access is refused:
                self._access = access.load(self.plane, self._kubeconfig, self._context)
            return self._access

    @contextlib.contextmanager
    def _transport(self, action: Action) -> Iterator[None]:
        try:
            yield
        except (HTTPError, OSError) as error:
            raise _broken(error, self.plane, action) from error


class Stream:
    """An answer that comes in lines. `end` may be called by another thread: reading stops then."""

    def __init__(self, response: urllib3.BaseHTTPResponse, transport: Any) -> None:
        self._response, self._transport = response, transport

    def lines(self) -> Iterator[bytes]:
        """The lines. RetryableError when the connection breaks, or when the last line has no end."""
        rest = b""
        with self._transport():
            for chunk in self._response.stream(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line)
        if rest:
            raise RetryableError("control-plane-down", "a watch was cut in the middle of a line; list again")

    def end(self) -> None:
        """Stop reading."""
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
            self._response.shutdown()


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise TerminalError("claim-invalid", f"/: can't be written as JSON of 64-bit numbers: {error}") from error


def _broken(error: Exception, plane: str, action: Action) -> PortError:
    """A connection's failure, and whose it is."""
    doing = f"to {action.verb} {action.what}"
    if isinstance(error, SSLError) or (isinstance(error, ProtocolError) and "SSL" in str(error)):
        return RetryableError(
            "control-plane-untrusted",
            f"the connection to {plane} can't be trusted ({error}). Either its certificate is wrong, which whoever "
            "runs it mends, or the authority in the portal's kubeconfig is not (any more) the one that signs it",
        )
    if isinstance(error, NewConnectionError | NameResolutionError):
        return RetryableError("control-plane-down", f"{plane} can't be reached {doing}: {error}")
    if isinstance(error, ConnectTimeoutError | ReadTimeoutError | TimeoutError):
        return RetryableError("control-plane-timeout", f"{plane} did not answer in time {doing}: {error}")
    return RetryableError("control-plane-down", f"the connection to {plane} broke {doing}: {error}")
