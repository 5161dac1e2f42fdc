"""One watch of one kind in a thread of its own, its events put into a queue that several share.

In charge of: what the wire may bring (events, bookmarks, an ERROR event, garbage, an end too early, silence). Not in
charge of: what an event means for a claim (watching).
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from dataclasses import dataclass
from typing import Any

import orjson

from portal.adapters.kubernetes import meanings
from portal.adapters.kubernetes.client import Client, Stream, without_nul
from portal.adapters.kubernetes.refusals import Action, of_status
from portal.ports import PortError, RetryableError

BOOKMARK_SECONDS = 60.0  # between two bookmarks of a kube-apiserver (cacher.go, bookmarkFrequency, read 2026-12-01)
GRACE_SECONDS = 5.0  # a stream may end so much later than it was asked to, or come so late with a bookmark
EARLY_SECONDS = 1.0  # a stream may end so much earlier
_WAITING = 1000  # events that were read and not yet taken


@dataclass(frozen=True, slots=True)
class Kind:
    """What is watched. `key` names it in cursors and in the queue."""

    key: str
    path: str
    what: str  # for messages


@dataclass(frozen=True, slots=True)
class Read:
    """An event of the wire."""

    key: str
    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK
    manifest: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """A stream's end: in its time (None), or by an error."""

    key: str
    error: PortError | None


Queue = queue.Queue[Read | Ended]


def new_queue() -> Queue:
    """A queue for the streams of one watch; a slow reader slows them down."""
    return queue.Queue(_WAITING)


class Watcher:
    """A running watch. `stop` ends it soon; then nothing of it comes into the queue any more."""

    def __init__(self, client: Client, kind: Kind, version: str, seconds: float, out: Queue) -> None:
        self._client, self._kind, self._version, self._out = client, kind, version, out
        self._seconds = max(1, math.ceil(seconds))  # the API counts in whole seconds
        self._stopped = threading.Event()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"watch {kind.key}")
        self._thread.start()

    def stop(self) -> None:
        """Does not wait for the thread: it may be connecting."""
        self._stopped.set()
        if self._stream is not None:
            self._stream.end()

    def _run(self) -> None:
        error: PortError | None
        try:
            self._read()
            error = None
        except PortError as raised:
            error = raised
        except Exception as raised:  # ends the watch with an error instead of leaving it to hang
            error = RetryableError("watch-failed", f"{type(raised).__name__}: {raised}")
        self._put(Ended(self._kind.key, error))

    def _read(self) -> None:
        action = Action(self._client.plane, "watch", self._kind.what)
        query = {
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._seconds),
        }
        started = time.monotonic()
        # Without a byte for longer than this the connection is dead, although nobody said so: a bookmark was due, or
        # the end.
        idle = min(float(self._seconds), BOOKMARK_SECONDS) + GRACE_SECONDS
        with self._client.stream(action, self._kind.path, query, idle) as stream:
            self._stream = stream
            for line in stream.lines():
                if self._stopped.is_set():
                    return
                self._put(self._event(line, action))
        if not self._stopped.is_set() and time.monotonic() - started < self._seconds - EARLY_SECONDS:
            raise RetryableError(
                "stream-ended", f"{action.plane} ended a watch of {action.what} before its time; list again"
            )

    def _event(self, line: bytes, action: Action) -> Read:
        try:
            found = orjson.loads(without_nul(line))
            kind, manifest = str(found["type"]), found["object"]
            version = manifest["metadata"]["resourceVersion"] if kind != "ERROR" else ""
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise RetryableError("watch-failed", f"{action.plane} sent no event but {line[:100]!r}") from error
        if kind == "ERROR":
            raise meanings.meaning(of_status(manifest), action)
        if not str(version).isdigit():
            raise RetryableError("watch-failed", f"{action.plane} sent the resourceVersion {version!r}; list again")
        return Read(self._kind.key, kind, manifest)

    def _put(self, item: Read | Ended) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Full):
                self._out.put(item, timeout=0.5)
                return


def take(source: Queue, seconds: float) -> Read | Ended | None:
    """The next item, None when nothing came for so long."""
    try:
        return source.get(timeout=max(0.0, seconds)) if seconds > 0 else source.get_nowait()
    except queue.Empty:
        return None
