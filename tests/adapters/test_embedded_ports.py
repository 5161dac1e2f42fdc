"""The embedded control plane under the suites that every control plane runs."""

from __future__ import annotations

import pytest

from tests.adapters.suite_deliver import DeliverSuite
from tests.adapters.suite_observe import ReadSuite, ReconciledSuite

pytestmark = pytest.mark.slow


class TestEmbeddedDeliver(DeliverSuite):
    """Fixtures: conftest."""


class TestEmbeddedRead(ReadSuite):
    """Fixtures: conftest."""


class TestEmbeddedReconciled(ReconciledSuite):
    """Fixtures: conftest."""
