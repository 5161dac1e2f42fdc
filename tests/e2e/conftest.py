"""In charge of: what all tests of this folder need (tests/control_plane.py has the control plane and the portal)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.running.crossplane.layout import CONTROL_PLANE
from portal.running.errors import ApiError
from tests.contract.approvals import KID, PUBLIC_PEM
from tests.crossplane.approved import key_map, pem
from tests.e2e.remains import Clusters

KEY_MANAGER = "tests-control-plane"
KEYS = {"k1": pem(), KID: PUBLIC_PEM}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them need the same; before tests/conftest.py puts together what has the same markers."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for marker in (pytest.mark.crossplane, pytest.mark.go, pytest.mark.slow):
                item.add_marker(marker)
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="module")
def approving_key(clusters: Clusters) -> Iterator[None]:
    """The keys of approvals that tests sign are published beside the portal's own, for as long as a module runs.

    A portal that runs removes keys that are not its own whenever it compares, so they are put there again.
    """
    wanted, admin, over = key_map(**KEYS), clusters.apis[CONTROL_PLANE], threading.Event()
    name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]

    def keep() -> None:
        while not over.is_set():
            with contextlib.suppress(ApiError):  # it may be killed meanwhile
                found = admin.get("v1", "ConfigMap", name, namespace) or {}
                if not wanted["data"].items() <= (found.get("data") or {}).items():
                    admin.apply(wanted, manager=KEY_MANAGER)
            over.wait(0.3)

    admin.apply(wanted, manager=KEY_MANAGER)
    thread = threading.Thread(target=keep, name="approving-key")
    thread.start()
    yield
    over.set()
    thread.join()
