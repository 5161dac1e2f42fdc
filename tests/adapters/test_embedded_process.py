"""The controller as the process that it is, with the project's own function, offerings and fleet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from portal.adapters.embedded import EmbeddedControlPlane
from portal.domain import strict_yaml
from portal.models.embedded import EmbeddedObject
from portal.ports import ClaimRef
from tests.adapters.conftest import wait_until
from tests.adapters.suite_observe import condition
from tests.adapters.widgets import INSTANCE

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ROOT = Path(settings.BASE_DIR)
EXAMPLES = sorted((ROOT / "crossplane" / "apis").glob("*/examples/*.yaml"))
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Iterator[Start]:
    """Starts programs of the project, and ends them with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*command: str, folder: Path = ROOT, **environment: str) -> subprocess.Popen[bytes]:
        given = {**os.environ, "DATABASE_URL": database_url, "PORTAL_STATE_DIR": str(tmp_path), **environment}
        started.append(subprocess.Popen([sys.executable, *command], cwd=folder, env=given))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def examples() -> list[tuple[ClaimRef, dict[str, Any]]]:
    """The claims that lie beside the offerings, with an instance label as the portal writes it."""
    found = []
    for path in EXAMPLES:
        claim = strict_yaml.parse(path.read_bytes(), str(path))
        metadata = claim["metadata"]
        if "namespace" not in metadata:
            continue  # fleet objects have none
        metadata["labels"] = {**metadata.get("labels", {}), INSTANCE: f"i-{metadata['name']}"}
        plural = path.parents[1].name
        found.append(
            (ClaimRef(claim["apiVersion"], claim["kind"], plural, metadata["namespace"], metadata["name"]), claim)
        )
    return found


def is_ready(plane: EmbeddedControlPlane, ref: ClaimRef) -> bool:
    claim = plane.get(ref)
    return claim is not None and condition(claim.status, "Ready") == "True"


def test_every_example_becomes_ready_across_a_kill_of_the_controller(start: Start, tmp_path: Path) -> None:
    socket = f"unix:{tmp_path}/function.sock"
    endpoints = {"FUNCTION_ENDPOINTS": f"composition-function={socket}", "SIMULATOR_DELAY": "0.3"}
    function_folder = ROOT / "crossplane" / "composition-function"
    # What a portal signs is another test's matter: these claims come without.
    start("-m", "composition_function", "--insecure", "--address", socket, "--approvals=warn", folder=function_folder)
    controller = start("manage.py", "embedded_control_plane", **endpoints)
    wait_until((tmp_path / "run" / "embedded_control_plane.ready").exists, "it announces itself", timeout=40)
    plane = EmbeddedControlPlane("embedded")
    claims = examples()
    assert len({ref.kind for ref, _ in claims}) > 1
    uids = {}
    for number, (ref, claim) in enumerate(claims):
        plane.ensure_namespace(ref.namespace, create=True, labels={})
        uids[ref] = plane.apply(claim).uid
        if number == len(claims) // 2:
            controller.kill()
            controller.wait()
    controller = start("manage.py", "embedded_control_plane", **endpoints)
    wait_until(lambda: all(is_ready(plane, ref) for ref, _ in claims), "all Ready", timeout=60)
    for ref, _ in claims:
        claim = plane.get(ref)
        assert claim is not None
        assert claim.uid == uids[ref]
        assert claim.status["placement"]["cluster"]
        assert claim.status["endpoint"]
        assert all(one.ready for one in claim.composed)
    for ref, _ in claims:
        plane.delete(ref, uids[ref])
    wait_until(lambda: all(plane.get(ref) is None for ref, _ in claims), "all gone", timeout=60)
    assert not EmbeddedObject.objects.filter(kind="Object", namespace="search-dev").exists()
    controller.send_signal(signal.SIGTERM)
    assert controller.wait(timeout=20) == 0
