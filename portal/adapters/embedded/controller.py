"""The controller process: workers that reconcile, one that simulates, and one that listens and keeps the log short.

In charge of: threads, waking them, and waiting longer after each failure. Not in charge of: what the work is
(reconcile, simulator), and who has which object (queue).
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Mapping
from types import TracebackType

from django.db import connection, connections
from django.utils import timezone

from portal.adapters.embedded import events, observe, queue, store
from portal.adapters.embedded.errors import ReconcileError
from portal.adapters.embedded.functions import Functions
from portal.adapters.embedded.reconcile import Reconciler
from portal.adapters.embedded.simulator import Simulator
from portal.models.embedded import EmbeddedObject
from portal.ports import PortError

log = logging.getLogger(__name__)

IDLE_SECONDS = 1.0  # news and due work end a wait at once; this is for a notification that got lost
FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 10.0
KEPT_CHANGES = 20_000  # a watcher may be that many changes behind
_PRUNE_EVERY = 300  # turns of the listener, each a notification or a wait

Handle = Callable[[int], float | None]


class Controller:
    """Runs until `stop`. Several of them, in one process or many, share the work. Use it as a context manager."""

    def __init__(self, functions: Functions, faults: Mapping[str, str], workers: int = 3) -> None:
        self._stopping = threading.Event()
        self._news = threading.Condition()
        self._turn = 0
        jobs: list[tuple[str, Handle]] = [(store.RECONCILE, Reconciler(functions))] * workers
        jobs.append((store.SIMULATE, Simulator(faults)))
        self._threads = [
            threading.Thread(target=self._work, args=job, name=f"{job[0]}-{number}") for number, job in enumerate(jobs)
        ]
        self._threads.append(threading.Thread(target=self._listen, name="listen"))

    def __enter__(self) -> Controller:
        simulate_again()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Finish what is under way, and end."""
        self._stopping.set()
        self._wake()
        for thread in self._threads:
            thread.join()

    def failed(self) -> bool:
        """Whether a thread has ended that should not."""
        return not self._stopping.is_set() and not all(thread.is_alive() for thread in self._threads)

    def _work(self, role: str, handle: Handle) -> None:
        try:
            while not self._stopping.is_set():
                turn, since = self._turn, timezone.now()
                if not self._guarded(lambda: _one(role, handle)):
                    self._sleep(role, turn, since)
        finally:
            connections.close_all()

    def _listen(self) -> None:
        """Wake the workers when something is written; now and then shorten the log."""
        try:
            while not self._stopping.is_set():
                self._guarded(self._listen_once)
                self._guarded(_prune)
        finally:
            connections.close_all()

    def _listen_once(self) -> bool:
        with observe.listening():
            self._wake()  # what was written before this listened
            for _ in range(_PRUNE_EVERY):
                if observe.wait_for_change(IDLE_SECONDS):
                    self._wake()
                if self._stopping.is_set():
                    break
        return True

    def _guarded(self, step: Callable[[], bool]) -> bool:
        """One step; the store being away is waited out."""
        try:
            return step()
        except PortError as error:
            log.warning("embedded control plane: %s", error)
            connection.close()
            self._stopping.wait(1.0)
            return True

    def _wake(self) -> None:
        with self._news:
            self._turn += 1
            self._news.notify_all()

    def _sleep(self, role: str, turn: int, since: dt.datetime) -> None:
        """Until there is news since `turn`, work is due, or a moment has passed."""
        seconds = IDLE_SECONDS
        try:
            seconds = queue.seconds_to_next(role, since, IDLE_SECONDS)
        except PortError:
            connection.close()
        with self._news:
            self._news.wait_for(lambda: self._turn != turn or self._stopping.is_set(), timeout=seconds)


def _one(role: str, handle: Handle) -> bool:
    """Do one piece of work, if any is due."""
    taken = queue.take(role)
    if taken is None:
        return False
    due_in: float | None = backoff(taken.attempts)
    attempts = taken.attempts + 1
    try:
        due_in = handle(taken.object_id)
        attempts = 0
    except ReconcileError as error:
        log.info("reconcile failed: %s", error)
    except PortError:
        raise
    except Exception:
        # A defect in one object's handling must not stop all the others; it is tried again like any failure.
        log.exception("work failed: %s of object %s", role, taken.object_id)
    finally:
        queue.finish(taken, due_in, attempts)
    return True


def backoff(attempts: int) -> float:
    """Seconds to wait after so many failures before this one."""
    return float(min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(attempts, 10)))


def _prune() -> bool:
    with store.writing() as writer:
        writer.forget_before(KEPT_CHANGES)
        events.forget_old(writer)
    return True


def simulate_again() -> None:
    """Give every composed object a turn: faults may have been changed since the last start."""
    with store.writing() as writer:
        for row in EmbeddedObject.objects.filter(owner__isnull=False):
            writer.enqueue(row, store.SIMULATE)
