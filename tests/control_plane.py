"""In charge of: one portal on one real control plane for all tests that ask for it; what it needs is built if missing.

Fixtures, taken in by tests/conftest.py: tests/e2e and tests/benchmarks share them.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from portal.running import supervisor
from portal.running.crossplane import plan
from portal.running.crossplane.access import server_from
from portal.running.crossplane.kube import Api
from portal.running.crossplane.plan import LocalControlPlane, running_control_plane
from portal.running.plan import ROOT, Options, running_portal
from tests.e2e.remains import Clusters
from tests.e2e.scratch import ScratchFunction, files, install_on
from tests.front import Front, database_for

ENVIRONMENT = {
    "PORTAL_DEMO": "true",  # for tokens of everybody
    "OUTBOX_SWEEP_SECONDS": "0.3",
    "OUTBOX_LEASE_SECONDS": "5",
    "OUTBOX_BACKOFF_LIMIT_SECONDS": "5",
}


@pytest.fixture(scope="session")
def control_plane_folder() -> Iterator[Path]:
    """Unix sockets need short paths."""
    folder = Path(tempfile.mkdtemp(prefix="px-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def control_plane_database(_database_server: str | None) -> Iterator[str]:
    """A database that nothing else uses, on the server of this test run."""
    with database_for(_database_server, "portal_crossplane") as url:
        yield url


@pytest.fixture(scope="session")
def plane(control_plane_folder: Path) -> Iterator[LocalControlPlane]:
    """A control plane with two workload clusters."""
    started = time.monotonic()
    say = lambda line: print(f"{time.monotonic() - started:6.1f} s  {line}")  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervisor, "FAST", 0.5)  # programs are killed here on purpose: that is no reason to give up
        with running_control_plane(plan.Options(control_plane_folder / "crossplane", settings.CACHE_DIR), say) as found:
            yield found


@pytest.fixture(scope="session")
def scratch(plane: LocalControlPlane) -> Iterator[ScratchFunction]:
    """The scratch spaces' function, with their kind installed."""
    function = ScratchFunction(plane)
    function.start()
    with Api(next(iter(plane.servers.values()))) as administrator:
        install_on(administrator, function.endpoint)
    yield function
    function.kill()


@pytest.fixture(scope="session")
def front(
    plane: LocalControlPlane, scratch: ScratchFunction, control_plane_folder: Path, control_plane_database: str
) -> Iterator[Front]:
    """The portal in front of it, up and with people in it."""
    offerings, sample = files(control_plane_folder)
    options = Options(
        state=control_plane_folder / "portal",
        database_url=control_plane_database,
        http_port=18_500,
        next_free_port=True,
        control_plane="kubernetes",
        control_planes={"crossplane": str(plane.kubeconfig)},
        environment={**ENVIRONMENT, "OFFERINGS_PATH": f"{ROOT / 'crossplane' / 'apis'}:{offerings}"},
    )
    with running_portal(options, print) as portal:
        found = Front(portal)
        found.begin(sample)
        yield found


@pytest.fixture(scope="session")
def portal(plane: LocalControlPlane) -> Iterator[Api]:
    """The control plane as the portal may use it."""
    with Api(server_from(plane.kubeconfig)) as api:
        yield api


@pytest.fixture(scope="session")
def clusters(plane: LocalControlPlane) -> Iterator[Clusters]:
    """Control plane and workload clusters, seen by an administrator."""
    with Clusters(plane) as found:
        yield found
