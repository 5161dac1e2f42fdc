"""What keeps a claim from becoming Ready is shown, the request stays open, and it goes on or goes away when it can."""

from __future__ import annotations

import time

import pytest

from tests.e2e_embedded.house import House
from tests.e2e_embedded.parts import until
from tests.front import database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_with_the_function_dead_nothing_becomes_ready_and_then_it_goes_on(house: House) -> None:
    house.function.kill()
    try:
        requests = [house.submit("ben", database(name)) for name in ("no-function-1", "no-function-2")]
        for request in requests:
            until(lambda it=request: "failing" in house.instance(it["instance"])["message"], "it says what fails")
        time.sleep(3)  # several more attempts
        for request in requests:
            instance = house.instance(request["instance"])
            assert instance["phase"] == "Provisioning", instance
            assert "composition-function" in instance["message"]
            assert instance["composed"] == []
            assert house.request(request["id"])["state"] == "Delivering"
            assert house.steps(request["id"]) == ["request.allow", "request.deliver", "claim.apply"]
    finally:
        house.function.start()
    for request in requests:
        house.done(request)
        assert house.instance(request["instance"])["phase"] == "Ready"
        assert house.steps(request["id"])[3:] == ["request.finish"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("unlucky", "ImagePullBackOff", id="its workload fails"),
        pytest.param("sleepy", "nothing was reported yet", id="its workload hangs"),
    ],
)
def test_a_workload_that_does_not_come_up_says_why_and_can_be_deleted(house: House, name: str, reason: str) -> None:
    request = house.submit("ben", database(name))
    until(lambda: reason in house.instance(request["instance"])["message"], f"the instance says: {reason}")
    instance = house.instance(request["instance"])
    assert instance["phase"] == "Provisioning"
    assert reason in str([each["message"] for each in instance["composed"] if not each["ready"]])
    assert house.request(request["id"])["state"] == "Delivering"
    assert house.holds(instance["id"]) == (1, 1)

    house.delete("ada", instance["id"])
    assert house.holds(instance["id"]) == (0, 0)
    ended = house.request(request["id"])
    assert (ended["state"], ended["failure"]["code"]) == ("Failed", "deleted-before-ready")
    assert house.claims(name) == []
    assert house.rows("SELECT name FROM embedded_object WHERE owner_id IS NOT NULL AND name LIKE %s", f"{name}%") == []
    preview = house.call("ben", "POST", "requests/preview/", json=database(name))
    assert preview.json()["outcome"] == "Allowed", "the name is free again"
