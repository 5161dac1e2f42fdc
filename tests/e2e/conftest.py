"""In charge of: what all tests of this folder need (tests/control_plane.py has their fixtures)."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the same."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for marker in (pytest.mark.crossplane, pytest.mark.go, pytest.mark.slow):
                item.add_marker(marker)
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(600))
