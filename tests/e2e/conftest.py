"""In charge of: one real control plane for all tests of this folder; what it needs is built if it is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from portal.running.crossplane.access import server_from
from portal.running.crossplane.kube import Api
from portal.running.crossplane.plan import LocalControlPlane, Options, running_control_plane
from tests.e2e.remains import Clusters


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the same."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for marker in (pytest.mark.crossplane, pytest.mark.go, pytest.mark.slow):
                item.add_marker(marker)


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalControlPlane]:
    """A control plane with two workload clusters."""
    started = time.monotonic()
    options = Options(tmp_path_factory.mktemp("control-plane"), settings.CACHE_DIR)
    with running_control_plane(options, lambda line: print(f"{time.monotonic() - started:6.1f} s  {line}")) as found:
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
