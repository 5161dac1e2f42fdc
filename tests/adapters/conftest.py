"""In charge of: an embedded control plane with the tests' kinds, its controller, and a real function process."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.embedded import EmbeddedControlPlane
from portal.adapters.embedded.controller import Controller
from portal.adapters.embedded.deliver import apply_object
from portal.adapters.embedded.functions import Functions
from portal.adapters.kubernetes import KubernetesControlPlane
from portal.ports import ControlPlane
from tests.adapters import widgets
from tests.adapters.apiserver import ApiServer, running_api_server

Wait = Callable[..., None]


class FunctionProcess:
    """The tiny function in a process of its own, that can be killed and started again on the same address."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = Path(__file__).with_name("tiny_function.py")
        self._process = subprocess.Popen([sys.executable, str(program), "--address", self.address])
        wait_until(self._answers, "the tiny function listens")

    def kill(self) -> None:
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        host, port = self.address.split(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return True
        return False


def wait_until(condition: Callable[[], object], what: str, timeout: float = 15.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def tiny_function() -> Iterator[FunctionProcess]:
    process = FunctionProcess()
    process.start()
    yield process
    process.kill()


@pytest.fixture
def plane(db: None, settings: Any) -> ControlPlane:
    """An embedded control plane that serves Widgets and Shelves, and has the namespace. Nothing is reconciled.

    It lives in the test's own transaction; a test with threads or a controller also asks for `transactional_db`.
    """
    settings.SIMULATOR_DELAY = 0.1
    for manifest in (
        widgets.WIDGET_XRD,
        widgets.SHELF_XRD,
        widgets.composition("widgets", "Widget"),
        widgets.composition("shelves", "Shelf", steps=0),
    ):
        apply_object(manifest, "tests")
    made = EmbeddedControlPlane("local")
    made.ensure_namespace(widgets.NAMESPACE, create=True, labels={"team": "search"})
    return made


@pytest.fixture
def controlled(transactional_db: None, plane: ControlPlane, tiny_function: FunctionProcess) -> Iterator[ControlPlane]:
    """The same, with its controller running."""
    with Controller(Functions({"tiny": tiny_function.address}, timeout=1.5), faults=FAULTS):
        yield plane


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A real kube-apiserver; for tests with the marker `crossplane`."""
    with running_api_server(tmp_path_factory.mktemp("api-server")) as server:
        yield server


@pytest.fixture
def kube_plane(api_server: ApiServer) -> Iterator[KubernetesControlPlane]:
    """It with the tests' kinds and namespace and the portal's rights; nothing is reconciled."""
    made = api_server.plane()
    made.ensure_namespace(widgets.NAMESPACE, create=True, labels={"team": "search"})
    yield made
    api_server.clean()


FAULTS = {"broken": "fail", "hanging": "hang", "kept": "keep"}
