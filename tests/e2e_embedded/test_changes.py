"""A model that lives: changed, suspended, resumed, taken back to an earlier revision, deleted; on real processes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e_embedded.house import House
from tests.sample import model_body


def ask(house: House, kind: str, instance: str, **more: Any) -> dict[str, Any]:
    return house.done(house.submit("ada", {"kind": kind, "instance": instance, **more}))


def used(house: House) -> int:
    """L4 that team search has in use."""
    rows = house.get("ada", "quotas/", team="search")["items"]
    return int(next(row["used"] for row in rows if row["dimension"] == "gpu.l4"))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_it_is_changed_suspended_resumed_and_reverted(house: House) -> None:
    before = used(house)
    created = house.done(house.submit("ada", model_body("living")))
    instance = created["instance"]
    assert used(house) == before + 1

    larger = {**created["spec"], "replicas": {"min": 1, "max": 2}}
    body = {"kind": "Change", "instance": instance, "spec": larger}
    said = house.call("ada", "POST", "requests/preview/", json=body).json()["controlPlane"]
    assert (said["accepted"], {"pointer": "/spec/replicas/max", "old": 1, "new": 2} in said["difference"]) == (
        True,
        True,
    )
    changed = ask(house, "Change", instance, spec=larger)
    assert (changed["cost"]["delta"], used(house)) == ("584.00", before + 2)
    shown = house.instance(instance)
    assert (shown["phase"], shown["claim"]["spec"]["replicas"]["max"]) == ("Ready", 2)
    assert len(house.claims("living")) == 1

    suspended = ask(house, "Suspend", instance)
    assert (suspended["cost"]["after"], house.instance(instance)["phase"], used(house)) == ("0.00", "Suspended", before)
    ask(house, "Resume", instance)
    assert (house.instance(instance)["phase"], used(house)) == ("Ready", before + 2)

    revisions = house.get("ada", f"instances/{instance}/revisions/")["items"]
    assert [(each["number"], each["kind"]) for each in revisions] == [
        (4, "Resume"),
        (3, "Suspend"),
        (2, "Change"),
        (1, "Create"),
    ]
    ask(house, "Change", instance, spec=revisions[-1]["spec"])
    assert used(house) == before + 1
    house.delete("ada", instance)
    assert (house.holds(instance), used(house), house.claims("living")) == ((0, 0), before, [])
