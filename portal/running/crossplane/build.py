"""In charge of: programs of other projects, built once and kept in the cache as <name>-<version>-<system>-<machine>.

One builder at a time; what it has compiled when it is interrupted is in Go's own build cache, so that the next one goes
on from there. Go checks every module against its go.sum, and the module that holds the go.sum is checked against
parts.py. Not in charge of: what is built (parts.py).
"""

from __future__ import annotations

import contextlib
import platform
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from portal.running import locks
from portal.running.crossplane.golang import download, go_environment, require_go
from portal.running.crossplane.parts import PARTS, Part
from portal.running.errors import BuildFailed
from portal.running.valkey import launch_command

Say = Callable[[str], None]
PROGRESS_EVERY = 15.0  # seconds
# Top-level folders that no program needs: documents, tests, and libraries that are taken as published.
_LEFT_OUT = shutil.ignore_patterns("staging", "vendor", "test", "docs", "CHANGELOG", "go.work", "go.work.sum")


def binary_path(part: Part, cache: Path) -> Path:
    """Where the cache keeps the program."""
    system = f"{platform.system().lower()}-{platform.machine()}"
    return cache / f"{part.name}-{part.module.version}{part.edition}-{system}"


def built(cache: Path, say: Say, parts: Sequence[Part] = PARTS) -> Mapping[str, Path]:
    """Every part's program by name, those that are missing built now. Raises MissingPart, BuildFailed."""
    cache.mkdir(parents=True, exist_ok=True)
    missing = [part for part in parts if not binary_path(part, cache).exists()]
    if missing:
        require_go()
        names = ", ".join(part.name for part in missing)
        say(f"building {names}; a first time takes about 15 minutes on two cores, and can be interrupted")
    for part in missing:
        with _alone(part, cache, say):
            if not binary_path(part, cache).exists():
                _build(part, cache, say)
    return {part.name: binary_path(part, cache) for part in parts}


@contextlib.contextmanager
def _alone(part: Part, cache: Path, say: Say) -> Iterator[None]:
    path = cache / f"{part.module.name}.lock"
    lock = locks.try_exclusive(path)
    if lock is None:
        say(f"{part.name}: another process builds from {part.module.path}; waiting for it")
        with locks.exclusive(path):
            yield
        return
    with lock:
        yield


def _build(part: Part, cache: Path, say: Say) -> None:
    started = time.monotonic()
    say(f"{part.name}: fetching {part.module.path} {part.module.version}")
    source = _source(part, cache)
    output = source / "built-program"
    flags = " ".join(["-s", "-w", *(f"-X {variable}" for variable in part.variables)])
    command = ["go", "build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={flags}"]
    _run(part, [*command, "-o", str(output), part.package], source, cache, say)
    output.rename(binary_path(part, cache))
    shutil.rmtree(source)
    size = binary_path(part, cache).stat().st_size / 1e6
    say(f"{part.name} is built ({time.monotonic() - started:.0f} s, {size:.0f} MB)")


def _source(part: Part, cache: Path) -> Path:
    """A copy of the module that may be changed. What an interrupted builder left is replaced."""
    copy = cache / f"source-{part.name}-{part.module.version}"
    shutil.rmtree(copy, ignore_errors=True)
    original = download(part.module, cache)

    def left_out(folder: str, names: list[str]) -> set[str]:
        return _LEFT_OUT(folder, names) if Path(folder) == original else set()

    shutil.copytree(original, copy, copy_function=shutil.copyfile, ignore=left_out)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # the module cache may be read-only
    part.prepare(copy)
    return copy


def _run(part: Part, command: list[str], folder: Path, cache: Path, say: Say) -> None:
    """Runs the go command with a line of progress now and then. Raises BuildFailed with the end of what it printed."""
    process = subprocess.Popen(
        launch_command(["nice", "-n", "10", *command]),  # a laptop stays usable
        cwd=folder,
        env=go_environment(cache),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    last: deque[str] = deque(maxlen=30)
    try:
        _follow(part, process, last, say)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
    if status != 0:
        said = "\n".join(last)
        raise BuildFailed(f"{part.name} {part.module.version} could not be built; go said:\n{said}")


def _follow(part: Part, process: subprocess.Popen[str], last: deque[str], say: Say) -> None:
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    started = shown = time.monotonic()
    fetched = compiled = 0
    for line in process.stdout:
        last.append(line.rstrip())
        if line.startswith("go: downloading"):
            fetched += 1
        else:
            compiled += 1
        now = time.monotonic()
        if now - shown > PROGRESS_EVERY:
            shown = now
            say(f"{part.name}: {fetched} modules fetched, {compiled} packages compiled ({now - started:.0f} s)")
