"""One template of each offering, run by a person in a real Backstage, to Ready on the real control plane."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.running import doors
from portal.running.backstage import plan
from portal.running.plan import ROOT, Options, web_program
from portal.running.supervisor import Supervisor
from tests.backstage import VALUES, Backend, backend_for, until
from tests.front import Front

pytestmark = [pytest.mark.backstage, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def backend(front: Front, control_plane_folder: Path) -> Iterator[Backend]:
    """A Backstage, and a further web process of the portal that knows of it: all others go without one here."""
    folder = control_plane_folder / "backstage"
    at = plan.address(folder)
    environment = {**front.portal.environment, **at.settings}
    with doors.listen("127.0.0.1", 18_600, next_free=True) as door:
        web = web_program(Options(control_plane_folder / "portal", web_workers=1), door)
        with (
            Supervisor(folder / "web", [web], {**environment, "PUBLIC_URL": door.url}, print),
            backend_for(front.portal, folder, at, door.url, front.tokens["catalog-service"], "plane") as backend,
        ):
            yield backend


@pytest.mark.parametrize("offering", sorted(VALUES))
def test_a_template_makes_it_ready(front: Front, backend: Backend, offering: str) -> None:
    values: dict[str, Any] = VALUES[offering]("backstage")
    task = backend.run("ada", f"portal-{offering}-request", values, 240)
    assert task.status == "completed", task.log
    (request,) = front.rows(
        "SELECT id::text FROM portal_request WHERE name = %s AND offering = %s", "backstage", offering
    )
    done = front.done(front.request(request[0]), 120)
    instance = done["instance"]
    until(lambda: backend.state(instance) == "Ready", "its entity is Ready", 60)
    assert (ROOT / "crossplane" / "apis" / offering).is_dir()
    front.delete("ada", instance)
    until(lambda: backend.of_instance(instance) == [], "its entities are gone", 60)
