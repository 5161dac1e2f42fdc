"""A real kube-apiserver under the suites that every control plane runs.

What has to be reconciled is run on the real core (tests/e2e/test_kubernetes_adapter.py).
"""

from __future__ import annotations

import pytest

from portal.adapters.kubernetes import KubernetesControlPlane
from tests.adapters.suite_deliver import DeliverSuite
from tests.adapters.suite_observe import ReadSuite

pytestmark = [pytest.mark.crossplane, pytest.mark.go, pytest.mark.slow]


@pytest.fixture
def plane(kube_plane: KubernetesControlPlane) -> KubernetesControlPlane:
    return kube_plane


class TestKubernetesDeliver(DeliverSuite):
    pass


class TestKubernetesRead(ReadSuite):
    window = 1.5
