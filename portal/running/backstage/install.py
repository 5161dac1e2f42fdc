"""In charge of: the backend's packages and this project's own module, kept in the cache and made once.

Packages lie in <cache>/backstage-<hash of the lock file>-<system>-<machine>, and below it one folder for each state of
host/ and of the module. A build that is interrupted starts again; what npm has fetched by then is in npm's own cache.

Not in charge of: starting anything (plan.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from portal.running import locks
from portal.running.backstage.node import node_in, require_npm
from portal.running.errors import BuildFailed
from portal.running.valkey import launch_command

Say = Callable[[str], None]
ROOT = Path(__file__).resolve().parents[3]
HOST = Path(__file__).with_name("host")
MODULE = ROOT / "scaffolder-templates" / "backend-module"
PACKAGES = ("package.json", "package-lock.json", ".npmrc")
RUN = ("index.mjs", "local-sign-in.mjs", "app-config.yaml")
# Of the module's folder: what a compiler reads. Its own tests and packages stay where they are.
SOURCES = ("package.json", "tsconfig.json", "config.d.ts", "src/**/*")
PROGRESS_EVERY = 10.0  # seconds
DONE = ".whole"


def installed(cache: Path, say: Say) -> Path:
    """The folder with the backend's node_modules; made if need be. Raises MissingPart, BuildFailed."""
    cache.mkdir(parents=True, exist_ok=True)
    key = _digest({name: HOST / name for name in PACKAGES})
    folder = cache / f"backstage-{key}-{platform.system().lower()}-{platform.machine()}"
    if not (folder / DONE).exists():
        npm = require_npm()
        with _alone(cache / "backstage.lock", say):
            if not (folder / DONE).exists():
                _install(folder, npm, say)
    node_in(folder)
    return folder


def built(cache: Path, say: Say) -> Path:
    """A folder to start `index.mjs` in: host/ with the compiled module beside it. Raises MissingPart, BuildFailed."""
    packages = installed(cache, say)
    sources = _sources()
    folder = packages / f"host-{_digest(sources)}"
    if not (folder / DONE).exists():
        with _alone(cache / "backstage.lock", say):
            if not (folder / DONE).exists():
                _build(folder, packages, sources, say)
    return folder


def _install(folder: Path, npm: str, say: Say) -> None:
    started = time.monotonic()
    say("installing Backstage's packages with npm; a first time takes two minutes and about 600 MB")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in PACKAGES:
        shutil.copyfile(HOST / name, folder / name)
    command = [npm, "ci", "--prefer-offline", "--no-progress", "--loglevel", "http"]
    _run("npm ci", command, folder, say, lambda lines: f"{lines} packages asked for")
    (folder / DONE).touch()
    say(f"Backstage's packages are installed ({time.monotonic() - started:.0f} s)")


def _build(folder: Path, packages: Path, sources: Mapping[str, Path], say: Say) -> None:
    started = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    for name, path in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    module = folder / MODULE.name
    compiler = packages / "node_modules" / "typescript" / "bin" / "tsc"
    command = [str(node_in(packages)), str(compiler), "--project", str(module), "--outDir", str(module / "dist")]
    _run("tsc", command, folder, say, lambda lines: f"{lines} lines")
    (folder / DONE).touch()
    say(f"the backend module is compiled ({time.monotonic() - started:.0f} s)")


def _sources() -> dict[str, Path]:
    """What the host is made of, by its place in the built folder."""
    found = {name: HOST / name for name in RUN}
    for pattern in SOURCES:
        for path in sorted(MODULE.glob(pattern)):
            if path.is_file() and ".test." not in path.name:
                found[f"{MODULE.name}/{path.relative_to(MODULE)}"] = path
    return found


def _digest(files: Mapping[str, Path]) -> str:
    found = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:16]


@contextlib.contextmanager
def _alone(path: Path, say: Say) -> Iterator[None]:
    lock = locks.try_exclusive(path)
    if lock is None:
        say("another process makes the Backstage backend; waiting for it")
        with locks.exclusive(path):
            yield
        return
    with lock:
        yield


def _run(name: str, command: list[str], folder: Path, say: Say, progress: Callable[[int], str]) -> None:
    """Runs it to its end, with a line now and then. Raises BuildFailed with the end of what it printed."""
    process = subprocess.Popen(
        launch_command(["nice", "-n", "10", *command]),  # a laptop stays usable
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    last: deque[str] = deque(maxlen=30)
    try:
        for line in _told(process.stdout, name, say, progress):
            last.append(line)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
    if status != 0:
        said = "\n".join(last)
        raise BuildFailed(f"{name} failed in {folder}; it said:\n{said}")


def _told(lines: Iterable[str], name: str, say: Say, progress: Callable[[int], str]) -> Iterator[str]:
    started = shown = time.monotonic()
    for number, line in enumerate(lines, 1):
        yield line.rstrip()
        now = time.monotonic()
        if now - shown > PROGRESS_EVERY:
            shown = now
            say(f"{name}: {progress(number)} ({now - started:.0f} s)")
