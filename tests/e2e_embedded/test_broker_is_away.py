"""The broker is killed: submitting and approving work meanwhile, and delivery follows when it is back, empty."""

from __future__ import annotations

import pytest

from tests.e2e_embedded.house import House
from tests.e2e_embedded.parts import until
from tests.front import database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

# More memory than is approved at once.
LARGE = {"vectors": 8_000_000, "dimensions": 1536}


def test_people_go_on_and_delivery_follows(house: House) -> None:
    small, large = database("no-broker"), database("no-broker-large")
    large["spec"] = {**large["spec"], **LARGE}
    house.broker.kill()
    try:
        at_once = house.submit("ada", small)
        assert at_once["state"] == "Approved"
        asked = house.submit("ada", large)
        assert asked["state"] == "Waiting", asked["decision"]
        answer = house.call("frank", "POST", f"requests/{asked['id']}/approve/", json={"comment": "fine"})
        assert (answer.status_code, answer.json()["state"]) == (200, "Approved"), answer.text
        rows = house.rows(
            "SELECT topic, attempts, done_at FROM portal_outboxrow WHERE topic = 'apply' AND done_at IS NULL"
        )
        assert rows == [("apply", 0, None)] * 2, "nothing was delivered, and nothing failed"
        assert house.claims("no-broker") == house.claims("no-broker-large") == []
    finally:
        house.broker.start()
    for request in (at_once, asked):
        done = house.done(request, seconds=90)
        assert house.instance(done["instance"])["phase"] == "Ready"
        assert len(house.claims(request["name"])) == 1
        assert house.steps(request["id"]).count("claim.apply") == 1
    until(lambda: {"no-broker", "no-broker-large"} <= _shown(house), "both are in the catalog feed")


def _shown(house: House) -> set[str]:
    return {entity["metadata"]["title"] for entity in house.entities().values()}
