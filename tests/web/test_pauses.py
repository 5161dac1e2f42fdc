"""A paused control plane is told on every page, with the way out to those who have it."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.services import pausing
from tests.web.conftest import SignIn
from tests.world import SUPERUSER

REASON = "ModelDeployment search-dev/new carries an approval that the database does not know."


@pytest.mark.parametrize("path", ["/", "/inbox/", "/instances/"])
def test_everybody_is_told_and_admins_why(sign_in: SignIn, path: str) -> None:
    pausing.pause("embedded", REASON, system="tests")
    told = sign_in("ada").get(path).content.decode()
    assert "Control plane embedded is paused since" in told
    assert REASON not in told, "it may name what is not theirs to see"
    told = sign_in(SUPERUSER).get(path).content.decode()
    assert REASON in told
    assert "manage.py reconcile" in told


def test_nothing_is_told_of_what_is_not_so(sign_in: SignIn) -> None:
    assert "is paused" not in sign_in(SUPERUSER).get("/").content.decode()


def test_a_load_balancer_still_sends_people_here(db: None) -> None:
    pausing.pause("embedded", REASON, system="tests")
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "paused": ["embedded"]})
