"""A real kube-apiserver under the suites that every control plane runs.

What has to be reconciled is run on the real core (tests/e2e/test_kubernetes_adapter.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.adapters.kubernetes import KubernetesControlPlane
from tests.adapters.apiserver import ApiServer, running_api_server
from tests.adapters.suite_deliver import DeliverSuite
from tests.adapters.suite_observe import ReadSuite
from tests.adapters.widgets import NAMESPACE

pytestmark = [pytest.mark.crossplane, pytest.mark.go, pytest.mark.slow]


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_api_server(tmp_path_factory.mktemp("api-server")) as server:
        yield server


@pytest.fixture
def plane(api_server: ApiServer) -> Iterator[KubernetesControlPlane]:
    """The tests' kinds and namespace, with the portal's rights."""
    made = api_server.plane()
    made.ensure_namespace(NAMESPACE, create=True, labels={"team": "search"})
    yield made
    api_server.clean()


class TestKubernetesDeliver(DeliverSuite):
    pass


class TestKubernetesRead(ReadSuite):
    window = 1.5
