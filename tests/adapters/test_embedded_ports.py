"""The embedded control plane under the suites that every control plane runs."""

from __future__ import annotations

import pytest

from tests.adapters.suite_deliver import DeliverSuite
from tests.adapters.suite_observe import ObserveSuite

pytestmark = pytest.mark.slow


class TestEmbeddedDeliver(DeliverSuite):
    """Fixtures: conftest."""


class TestEmbeddedObserve(ObserveSuite):
    """Fixtures: conftest."""
