"""Tokens of a real Backstage at the portal's door: who somebody is there, they are here; none opens another's door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pytest

from tests.backstage import Town
from tests.front import database

AT_THE_PORTAL = "portal-preview-by-hand"  # of by_hand.yaml: sends through the proxy
ELSEWHERE = "portal-preview-elsewhere"  # the same through a plugin that the portal knows nothing of


def me(town: Town, token: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{town.portal.url}/api/v1/me/", headers=headers, timeout=30)


def sent_by(town: Town, who: str, template: str) -> str:
    """The token that the scaffolder sent to the portal for a person, as it went over the wire."""
    before = len(town.wire.tokens)
    task = town.backend.run(who, template, {"name": "by-hand"})
    sent = [token for token in town.wire.tokens[before:] if jwt.get_unverified_header(token).get("typ") == PLUGIN]
    assert sent, task.log
    return sent[-1]


PLUGIN = "vnd.backstage.plugin"


def claims(token: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return found


@pytest.mark.parametrize(
    ("who", "teams", "groups"),
    [
        pytest.param("ada", {"search"}, set(), id="in a team"),
        pytest.param("erin", {"search"}, {"platform-approvers"}, id="in a team, and an approver"),
        pytest.param("ivan", set(), {"finance-approvers", "platform-admins"}, id="an approver alone"),
    ],
)
def test_a_users_token(town: Town, who: str, teams: set[str], groups: set[str]) -> None:
    answer = me(town, town.backend.token(who))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["username"], found["ref"]) == (who, f"user:default/{who}")
    assert {team["slug"] if isinstance(team, dict) else team for team in found["teams"]} >= teams
    assert set(found["groups"]) >= groups


def test_through_the_proxy_a_person_is_the_same(town: Town) -> None:
    found = town.backend.get("ben", "proxy/portal/me/")
    assert found["username"] == "ben"


def test_the_scaffolder_acts_for_the_person_who_runs_the_template(town: Town) -> None:
    token = sent_by(town, "ben", AT_THE_PORTAL)
    assert claims(token)["sub"] == "scaffolder"
    assert claims(token)["aud"] == "proxy"
    assert claims(claims(token)["obo"])["sub"] == "user:default/ben"
    assert me(town, token).json()["username"] == "ben"


def test_the_same_token_opens_no_other_plugin_of_backstage(town: Town) -> None:
    token = sent_by(town, "ben", AT_THE_PORTAL)
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{town.backend.url}/api/catalog/entities/by-query?limit=1", headers=headers, timeout=30)
    assert answer.status_code == 401


def test_a_real_token_for_another_plugin_is_refused(town: Town) -> None:
    token = sent_by(town, "ben", ELSEWHERE)
    assert claims(token)["aud"] == "elsewhere"
    answer = me(town, token)
    assert answer.status_code == 401, answer.text


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda ben, erin: ben[:-8] + "AAAAAAAA", id="another signature"),
        pytest.param(lambda ben, erin: ".".join([*ben.split(".")[:2], erin.split(".")[2]]), id="another's signature"),
        pytest.param(
            lambda ben, erin: ".".join([ben.split(".")[0], erin.split(".")[1], ben.split(".")[2]]), id="claims"
        ),
        pytest.param(lambda ben, erin: claims(erin)["obo"], id="only the inner one"),
    ],
)
def test_a_real_token_that_was_tampered_with_is_refused(town: Town, forge: Callable[[str, str], str]) -> None:
    ben, erin = sent_by(town, "ben", AT_THE_PORTAL), sent_by(town, "erin", AT_THE_PORTAL)
    before = town.rows("SELECT count(*) FROM portal_request")
    forged = forge(ben, erin)
    headers = {"Authorization": f"Bearer {forged}"}
    answer = httpx.post(f"{town.portal.url}/api/v1/requests/", json=database("forged"), headers=headers, timeout=30)
    assert answer.status_code == 401, answer.text
    assert town.rows("SELECT count(*) FROM portal_request") == before
