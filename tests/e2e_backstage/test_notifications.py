"""What people are told in Backstage: that something waits for them, and how their own requests go on."""

from __future__ import annotations

from tests.backstage import Object, Town, until
from tests.front import database


def about(town: Town, who: str, name: str) -> list[str]:
    """The titles of what somebody was told about an instance of that name, the newest last."""
    found = [it for it in town.backend.notifications(who) if name in str(it["payload"])]
    return [str(it["payload"]["title"]) for it in sorted(found, key=lambda it: str(it["created"]))]


def told(town: Town, who: str, name: str, word: str) -> None:
    until(lambda: any(word in title.lower() for title in about(town, who, name)), f"{who} is told: {word}")


def large(name: str) -> Object:
    """More than is approved at once: somebody is asked."""
    body = database(name)
    return {**body, "spec": {**body["spec"], "vectors": 20_000_000, "dimensions": 768}}


def test_who_is_asked_and_who_asked_are_told(town: Town) -> None:
    request = town.submit("ben", large("told"))
    assert request["state"] == "Waiting", request["decision"]
    for approver in ("erin", "frank", "heidi"):
        told(town, approver, "told", "wait")
    assert about(town, "carol", "told") == [], "it is nobody else's business"
    assert not any("wait" in title.lower() for title in about(town, "ben", "told"))
    vote = town.call("erin", "POST", f"requests/{request['id']}/approve/", json={"comment": "fine"})
    assert vote.status_code in (200, 201), vote.text
    told(town, "ben", "told", "approved")
    town.done(town.request(request["id"]))
    told(town, "ben", "told", "ready")


def test_the_portal_sends_them_once(town: Town) -> None:
    town.made("once", "ben")
    told(town, "ben", "once", "ready")
    titles = about(town, "ben", "once")
    assert len(titles) == len(set(titles)), titles
