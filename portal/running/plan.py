"""In charge of: which processes make up a portal on one machine, and bringing them up around each other.

    Crossplane (if asked for) -> PostgreSQL (unless DATABASE_URL) -> migrations
        -> Valkey (unless BROKER_URL), composition function -> embedded control plane, worker, beat, mirror, web

Not in charge of: starting again and ending (supervisor.py); reading settings (the `serve` command hands them in).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from portal.running import addresses, doors, folders, leftovers, postgres, reach, valkey
from portal.running.crossplane import plan as local_plan
from portal.running.crossplane.plan import LocalControlPlane
from portal.running.errors import GaveUp, MissingPart, NotReady
from portal.running.program import Program
from portal.running.ready import announced
from portal.running.supervisor import FAST_FAILURES, Supervisor

ROOT = Path(__file__).resolve().parents[2]
FUNCTION = "composition-function"
LOCAL = "crossplane"  # as a kind of control plane, and the name of the one that is started here
FUNCTION_FOLDER = ROOT / "crossplane" / FUNCTION


@dataclass(frozen=True)
class Options:
    """What a portal on one machine is made of. An address that is None means: an embedded server in `state`."""

    state: Path
    database_url: str | None = None
    broker_url: str | None = None
    http_bind: str = "127.0.0.1"
    http_port: int = 8000
    next_free_port: bool = False  # when http_port is taken
    web_workers: int = 2
    worker_concurrency: int = 2
    control_plane: str = "embedded"
    control_planes: Mapping[str, str] = field(default_factory=dict)  # name -> kubeconfig, see CONTROL_PLANES
    cache: Path | None = None  # for control_plane="crossplane": where built programs are kept
    function_endpoints: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)  # for every process, on top of the caller's own
    verbose: bool = False


@dataclass(frozen=True)
class Portal:
    """A portal that runs."""

    url: str
    database_url: str
    broker_url: str
    function_endpoints: Mapping[str, str]
    environment: Mapping[str, str]  # what a further process needs to be part of it
    supervisor: Supervisor
    crossplane: LocalControlPlane | None = None  # one that was started with it


@contextlib.contextmanager
def running_portal(options: Options, say: Callable[[str], None] = lambda line: None) -> Iterator[Portal]:
    """A whole portal for the time of the block. `say` gets one line per event. Raises RunningError."""
    state = options.state.resolve()
    with contextlib.ExitStack() as stack:
        stack.enter_context(leftovers.own_folder(state, "a portal", say))
        door = stack.enter_context(doors.listen(options.http_bind, options.http_port, options.next_free_port))
        if options.broker_url is not None:
            reach.broker(options.broker_url)
        local = _crossplane(options, state, stack, say)
        database_url, keep_database = _database(options, state, stack, say)
        endpoints = _endpoints(options, state)
        environment = {
            "PUBLIC_URL": door.url,  # unless the caller's environment has another one
            **os.environ,
            **options.environment,
            **leftovers.mark(state),
            "PORTAL_STATE_DIR": str(state),
            "DATABASE_URL": database_url,
            "BROKER_URL": options.broker_url or addresses.valkey_url(addresses.valkey_folder(state)),
            "FUNCTION_ENDPOINTS": ",".join(f"{name}={address}" for name, address in endpoints.items()),
            "HTTP_BIND": options.http_bind,
            "HTTP_PORT": str(door.port),
            "CONTROL_PLANE": options.control_plane,
            "CONTROL_PLANES": ",".join(f"{name}={where}" for name, where in _reached(options, local).items()),
            "PYTHONUNBUFFERED": "1",
        }
        _once("migrate", ["--no-input"], state, environment)
        _once("load", [], state, environment)  # offerings are checked at each start
        programs = _programs(options, state, door)
        supervisor = Supervisor(state, programs, environment, say, verbose=options.verbose, also=keep_database)
        stack.enter_context(supervisor)
        yield Portal(door.url, database_url, environment["BROKER_URL"], endpoints, environment, supervisor, local)


def _crossplane(
    options: Options, state: Path, stack: contextlib.ExitStack, say: Callable[[str], None]
) -> LocalControlPlane | None:
    """A real control plane on this machine, if that is asked for."""
    if options.control_plane != LOCAL:
        return None
    if options.cache is None:
        raise MissingPart("A local Crossplane needs a folder for what is built: set PORTAL_CACHE.")
    wanted = local_plan.Options(state / "crossplane", options.cache, verbose=options.verbose)
    return stack.enter_context(local_plan.running_control_plane(wanted, say))


def _reached(options: Options, local: LocalControlPlane | None) -> dict[str, str]:
    """The control planes by name; the local one as the portal may use it."""
    return {**options.control_planes, **({LOCAL: str(local.kubeconfig)} if local else {})}


def _database(
    options: Options, state: Path, stack: contextlib.ExitStack, say: Callable[[str], None]
) -> tuple[str, Callable[[], None]]:
    """The database's address, and what to call now and then to keep it up."""
    if options.database_url is not None:
        reach.database(options.database_url)
        return options.database_url, lambda: None
    folder = addresses.postgres_folder(state)
    joined = postgres.has_data(folder) and postgres.is_running(folder)
    started = time.monotonic()
    url = stack.enter_context(postgres.embedded_postgres(folder))
    say("PostgreSQL runs already; joined it" if joined else f"PostgreSQL is up ({time.monotonic() - started:.1f} s)")

    return url, _Keeper(folder, say)


class _Keeper:
    """Called now and then: starts an embedded PostgreSQL that has ended again. Raises GaveUp when that fails often."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say
        self._failures = 0

    def __call__(self) -> None:
        if postgres.listens(self._folder):
            self._failures = 0
            return
        self._say("PostgreSQL has ended; starting it again")
        started = time.monotonic()
        try:
            postgres.start_again(self._folder)
        except NotReady as error:
            self._failures += 1
            if self._failures >= FAST_FAILURES:
                raise GaveUp(f"PostgreSQL did not start again, {self._failures} times; giving up. {error}") from None
            self._say(f"PostgreSQL did not start again; tried once more soon. {error}")
        else:
            self._say(f"PostgreSQL is up again ({time.monotonic() - started:.1f} s)")


def _once(name: str, arguments: Sequence[str], state: Path, environment: Mapping[str, str]) -> None:
    log = state / "log" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    command = valkey.launch_command([sys.executable, str(ROOT / "manage.py"), name, *arguments])
    with open(log, "wb") as file:
        done = subprocess.run(
            command, check=False, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    if done.returncode != 0:
        last = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise NotReady(f"manage.py {name} failed. The end of {log}:\n{last}")


def _own_function(options: Options) -> bool:
    return options.control_plane == "embedded" and FUNCTION not in options.function_endpoints


def _function_socket(state: Path) -> Path:
    return addresses.socket_folder(state / "run") / "function.sock"


def _endpoints(options: Options, state: Path) -> dict[str, str]:
    if not _own_function(options):
        return dict(options.function_endpoints)
    folders.make_private(_function_socket(state).parent)
    return {**options.function_endpoints, FUNCTION: f"unix:{quote(str(_function_socket(state)))}"}


def _programs(options: Options, state: Path, door: doors.Door) -> list[Program]:
    programs = [*_celery(options, state), _command("mirror", state), web_program(options, door)]
    if options.broker_url is None:
        folder = addresses.valkey_folder(state)
        ready: Callable[[int], bool] = lambda pid: valkey.answers(folder)  # noqa: E731
        programs.append(Program("valkey", valkey.valkey_command(folder), ready, stage=1))
    if options.control_plane == "embedded":
        programs.append(_command("embedded_control_plane", state))
    if _own_function(options):
        programs.append(_function(state))
    return programs


def _function(state: Path) -> Program:
    if not (FUNCTION_FOLDER / "composition_function" / "__main__.py").exists():
        raise MissingPart(
            f"The composition function is not at {FUNCTION_FOLDER}. Give its address in FUNCTION_ENDPOINTS."
        )
    path = _function_socket(state)
    address = f"unix:{quote(str(path))}"
    command = [sys.executable, "-m", "composition_function", "--insecure", "--address", address]
    return Program(FUNCTION, command, lambda pid: doors.accepts(path), stage=1, folder=FUNCTION_FOLDER, stop_seconds=5)


def _command(name: str, state: Path) -> Program:
    command = [sys.executable, str(ROOT / "manage.py"), name]
    return Program(name, command, partial(announced, state, name), stage=2, folder=ROOT)


def _celery(options: Options, state: Path) -> list[Program]:
    celery = [sys.executable, "-m", "celery", "--app", "portal.celery"]
    worker = [*celery, "worker", "--concurrency", str(options.worker_concurrency), "--loglevel", "INFO"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]  # one worker has nobody to talk to
    beat = [*celery, "beat", "--loglevel", "INFO", "--pidfile="]
    return [
        Program("worker", worker, partial(announced, state, "worker"), stage=2, folder=ROOT, stop_seconds=20),
        Program("beat", beat, partial(announced, state, "beat"), stage=2, folder=ROOT),
    ]


def web_program(options: Options, door: doors.Door) -> Program:
    """The web processes behind an open door."""
    command = [sys.executable, "-m", "gunicorn", "--config", "python:portal.running.web"]
    command += ["--bind", f"fd://{door.descriptor}", "--workers", str(options.web_workers), "portal.wsgi:application"]
    ready: Callable[[int], bool] = lambda pid: doors.answers(door.url + "/healthz")  # noqa: E731
    return Program("web", command, ready, stage=2, folder=ROOT, descriptors=(door.descriptor,), stop_seconds=15)
