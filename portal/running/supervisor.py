"""In charge of: keeping a set of programs running: started in stages, started again when they end, ended in order.

All of it happens in one thread, because the kernel ties a program's life to the thread that started it. The thread of
the caller is free: a demo acts, a command waits for a signal.

Not in charge of: which programs there are (plan.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from portal.running.errors import GaveUp, NotReady
from portal.running.journal import Journal
from portal.running.program import Program, Running, describe_end

LOOK_EVERY = 0.1  # seconds
FAST = 10.0  # seconds; who ends sooner after a start has failed fast
FAST_FAILURES = 5  # so many one after the other, and nothing is tried any more
FIRST_WAIT = 0.5  # seconds before a second start; it doubles with each fast failure
LONGEST_WAIT = 10.0


class Supervisor:
    """A context manager. Inside the block every program is up, or is being started again.

    Raises RunningError on entering when one does not come up. `wait()` returns when `stop()` is called and raises when
    the supervisor gave up.
    """

    def __init__(
        self,
        state: Path,
        programs: Sequence[Program],
        environment: Mapping[str, str],
        say: Callable[[str], None] = lambda line: None,
        *,
        verbose: bool = False,
        also: Callable[[], None] = lambda: None,
    ) -> None:
        """`say` gets one line per event, with `verbose` each line of each program too; `also` is called about once a
        second and may raise RunningError."""
        self._programs = sorted(programs, key=lambda program: program.stage)
        self._environment = environment
        self._say = say
        self._also = also
        echo = say if verbose else None
        self._journals = {program.name: Journal(state / "log", program.name, echo) for program in programs}
        self._running: dict[str, Running] = {}
        self._failures: dict[str, int] = {}
        self._again_at: dict[str, float] = {}
        self._stop = threading.Event()
        self._up = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="supervisor")

    def __enter__(self) -> Supervisor:
        self._thread.start()
        try:
            self._up.wait()
        except BaseException:  # Ctrl-C while things start
            self._end()
            raise
        if self._error is not None:
            self._end()
            raise self._error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def stop(self) -> None:
        """Asks for the end; may be called from a signal handler. `wait()` returns soon after."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Until somebody calls `stop()`, or `seconds` have passed. Raises RunningError when it gave up."""
        deadline = None if seconds is None else time.monotonic() + seconds
        # Short waits: a signal's handler runs between them.
        while self._thread.is_alive() and not self._stop.is_set() and (deadline is None or time.monotonic() < deadline):
            self._thread.join(LOOK_EVERY)
        if self._error is not None:
            raise self._error

    def pids(self) -> dict[str, int]:
        """The process id of each program that runs now."""
        return {name: running.pid for name, running in list(self._running.items()) if running.ended is None}

    def _end(self) -> None:
        self._stop.set()
        self._thread.join()

    # --- everything below happens in the supervisor's own thread ---
    def _live(self) -> None:
        try:
            self._start_all()
            self._up.set()
            self._watch()
        except BaseException as error:  # whatever it is, the caller's thread must learn it
            self._error = error
        finally:
            self._stop_all()
            self._up.set()

    def _start_all(self) -> None:
        for stage in sorted({program.stage for program in self._programs}):
            together = [program for program in self._programs if program.stage == stage]
            for program in together:
                self._start(program)
            for program in together:
                self._wait_for(self._running[program.name])
            if self._stop.is_set():
                return

    def _wait_for(self, running: Running) -> None:
        name = running.program.name
        deadline = running.since + running.program.start_seconds
        while not running.check_ready() and not self._stop.is_set():
            status = running.ended
            if status is not None or time.monotonic() > deadline:
                late = f"was not ready after {running.program.start_seconds:g} s"
                why = late if status is None else describe_end(status)
                time.sleep(LOOK_EVERY)  # its last lines are on their way
                raise NotReady(f"{name} {why}. The end of {running.journal.path}:\n{running.journal.last}")
            time.sleep(LOOK_EVERY / 2)
        if running.ready:
            self._say(f"{name} is up ({time.monotonic() - running.since:.1f} s)")

    def _start(self, program: Program) -> None:
        self._running[program.name] = Running(program, self._environment, self._journals[program.name])

    def _watch(self) -> None:
        rounds = 0
        while not self._stop.wait(LOOK_EVERY):
            for program in self._programs:
                self._look_at(program)
            rounds += 1
            if rounds % round(1 / LOOK_EVERY) == 0:
                self._also()

    def _look_at(self, program: Program) -> None:
        running = self._running[program.name]
        due = self._again_at.get(program.name)
        if due is not None:
            if time.monotonic() >= due:
                del self._again_at[program.name]
                self._start(program)
        elif running.ended is not None:
            self._plan_again(running, describe_end(running.ended))
        elif not running.ready:
            if running.check_ready():
                self._say(f"{program.name} is up again ({time.monotonic() - running.since:.1f} s)")
            elif time.monotonic() > running.since + program.start_seconds:
                self._plan_again(running, f"was not ready after {program.start_seconds:g} s")
        elif time.monotonic() > running.since + FAST:
            self._failures.pop(program.name, None)

    def _plan_again(self, running: Running, why: str) -> None:
        name = running.program.name
        running.end(0)  # children that outlived it would stand in the way of the next one
        failures = self._failures.get(name, 0) + 1
        self._failures[name] = failures
        if failures >= FAST_FAILURES:
            raise GaveUp(
                f"{name} {why}, {failures} times one after the other; giving up. "
                f"The end of {running.journal.path}:\n{running.journal.last}"
            )
        wait = min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT)
        self._again_at[name] = time.monotonic() + wait
        self._say(f"{name} {why}; started again in {wait:g} s (log: {running.journal.path})")

    def _stop_all(self) -> None:
        for stage in sorted({program.stage for program in self._programs}, reverse=True):
            together = [r for r in self._running.values() if r.program.stage == stage]
            for running in together:
                running.ask_to_end()
            for running in together:
                if not running.end(running.program.stop_seconds):
                    self._say(f"{running.program.name} did not end within {running.program.stop_seconds:g} s; killed")
