"""Backstage's tokens at the API's door: whose they are, and every way in which one is no good.

A bad token opens nothing, writes nothing, and stands in no log.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import jwt
import pytest
from django.test import Client

from portal.adapters import backstage
from tests.api.calls import Caller
from tests.api.conftest import As, Unwritten
from tests.backstage_keys import LIMITED, PLUGIN, USER, Key, Stand, standing
from tests.sample import model_body
from tests.world import World

ADA, BEN, NEW = "user:default/ada", "user:default/ben", "user:default/nora"


@pytest.fixture
def stand(world: World, settings: Any) -> Iterator[Stand]:
    """A Backstage that the portal knows, with people of the sample world in it."""
    with standing() as found:
        settings.BACKSTAGE_URL, settings.BACKSTAGE_TOKEN = found.url, "a-static-token-of-tests"
        found.group("group:default/search")
        found.group("group:default/platform-approvers")
        for ref in (ADA, BEN, NEW):
            found.user(ref, f"uid of {ref}", "group:default/search")
        yield found


def _b64(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _unsigned(stand: Stand) -> str:
    head = {"alg": "none", "typ": USER, "kid": stand.auth.kid}
    return f"{_b64(head)}.{_b64(stand.claims(ADA))}."


def _none_with_a_signature(stand: Stand) -> str:
    head = {"alg": "none", "typ": USER, "kid": stand.auth.kid}
    return f"{_b64(head)}.{_b64(stand.claims(ADA))}.AAAA"


def _hmac(stand: Stand) -> str:
    """HS256 with the public key as the secret; made by hand, since libraries refuse to."""
    signed = f"{_b64({'alg': 'HS256', 'typ': USER, 'kid': stand.auth.kid})}.{_b64(stand.claims(ADA))}"
    mac = hmac.new(stand.auth.pem(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def _swapped_claims(stand: Stand) -> str:
    ada, ben = stand.user_token(ADA).split("."), stand.user_token(BEN).split(".")
    return ".".join([ada[0], ben[1], ada[2]])


def _swapped_obo(stand: Stand) -> str:
    """A plugin's token for Ben, whose claims were changed to hold Ada's real limited token."""
    parts = stand.plugin_token(BEN).split(".")
    forged = stand.plugin_claims(stand.auth.sign(stand.limited(ADA), LIMITED))
    return ".".join([parts[0], _b64(forged), parts[2]])


def _obo(stand: Stand, token: Any, **changes: Any) -> str:
    return stand.scaffolder.sign(stand.plugin_claims(token, **changes), PLUGIN)


def _past(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"iat": now - 7200, "exp": now - 3600, **more}


Make = Callable[[Stand], str]
FORGED: list[tuple[Make, str]] = [
    (_unsigned, "alg none, no signature"),
    (_none_with_a_signature, "alg none, something as a signature"),
    (_hmac, "HS256 with the public key"),
    (lambda s: Key(s.auth.kid).sign(s.claims(ADA), USER), "another key under a known id"),
    (lambda s: Key("nobody-1").sign(s.claims(ADA), USER), "an id that no key has"),
    (lambda s: s.auth.sign(s.claims(ADA), USER, kid=None), "no id of a key"),
    (lambda s: s.scaffolder.sign(s.claims(ADA), USER), "a plugin's key under a user's token"),
    (lambda s: s.user_token(ADA, **_past()), "expired an hour ago"),
    (lambda s: s.user_token(ADA, exp=None), "never expires"),
    (lambda s: s.user_token(ADA, iat=int(time.time()) + 600), "from the future"),
    (lambda s: s.user_token(ADA, nbf=int(time.time()) + 600), "not valid yet"),
    (lambda s: s.user_token(ADA, aud="elsewhere"), "for somebody else"),
    (lambda s: s.user_token(ADA, aud=None), "for nobody"),
    (lambda s: s.user_token(ADA, iss="https://other.example.org/api/auth"), "of another Backstage"),
    (lambda s: s.user_token(ADA, iss=None), "of no Backstage"),
    (lambda s: s.auth.sign(s.claims(ADA), "JWT"), "another typ"),
    (lambda s: s.auth.sign(s.limited(ADA), LIMITED), "the inner one alone"),
    (lambda s: s.auth.sign(s.claims(ADA), PLUGIN), "a user's token called a plugin's"),
    (lambda s: s.user_token("group:default/search"), "sub is a group"),
    (lambda s: s.user_token("ada"), "sub is no full reference"),
    (lambda s: s.user_token("user:default/ada\n"), "sub with a line break"),
    (lambda s: s.user_token(7), "sub is a number"),  # type: ignore[arg-type]
    (_swapped_claims, "Ben's claims under Ada's signature"),
    (lambda s: s.user_token(ADA) + "A" * 20_000, "oversized"),
    (lambda s: s.other.sign(s.claims("other", iss=None, aud="proxy"), PLUGIN), "a plugin that is not allowed"),
    (lambda s: s.other.sign(s.plugin_claims(None), PLUGIN), "another plugin's key, and says scaffolder"),
    (lambda s: s.plugin_token(ADA, sub="auth"), "the scaffolder's key, and says auth"),
    (lambda s: s.plugin_token(ADA, sub="../auth"), "a plugin's id that is a path"),
    (lambda s: s.plugin_token(ADA, aud="catalog"), "a plugin's token for another plugin"),
    (lambda s: s.plugin_token(ADA, aud=None), "a plugin's token for nobody"),
    (lambda s: s.plugin_token(ADA, **_past()), "a plugin's token that expired"),
    (lambda s: _obo(s, Key(s.auth.kid).sign(s.limited(ADA), LIMITED)), "obo of another key"),
    (lambda s: _obo(s, s.scaffolder.sign(s.limited(ADA), LIMITED)), "obo signed by the plugin itself"),
    (lambda s: _obo(s, s.auth.sign(s.limited(ADA, **_past()), LIMITED)), "obo that expired"),
    (lambda s: _obo(s, s.auth.sign(s.limited(ADA), USER)), "obo with a user's typ"),
    (lambda s: _obo(s, s.user_token(ADA)), "obo is a whole user token"),
    (lambda s: _obo(s, s.auth.sign(s.limited("plugin:x"), LIMITED)), "obo of no person"),
    (lambda s: _obo(s, {"sub": ADA}), "obo is an object"),
    (lambda s: _obo(s, ""), "obo is empty"),
    (_swapped_obo, "obo swapped for another's"),
    (lambda s: "a.b.c", "no token at all, of the right form"),
    (lambda s: "eyJhbGciOiJFUzI1NiJ9..", "a head alone"),
]


@pytest.mark.parametrize(("make", "reason"), FORGED, ids=[reason for _, reason in FORGED])
def test_a_bad_token_opens_nothing_and_leaves_nothing(
    stand: Stand,
    nothing_written: Unwritten,
    make: Make,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    token = make(stand)
    caplog.set_level("DEBUG", logger="portal")
    with nothing_written():
        for answer in (Caller(token).get("me/"), Caller(token).post("requests/", model_body("forged"))):
            assert answer.status == 401, reason
            assert answer.json["code"] == "invalid-token"
            assert token not in json.dumps(answer.json)
    said = caplog.text + "".join(capsys.readouterr())
    assert token not in said
    longest = max(token.split("."), key=len)
    assert len(longest) < 16 or longest not in said, "nor a part of it"


def test_keys_that_cant_be_read_let_nobody_in(stand: Stand, nothing_written: Unwritten) -> None:
    token = stand.user_token(ADA)
    stand.down = True
    with nothing_written():
        answer = Caller(token).get("me/")
    assert (answer.status, answer.json["code"]) == (401, "invalid-token")
    assert "keys" in answer.json["detail"]


def test_tokens_of_a_backstage_that_the_portal_does_not_know_are_refused(stand: Stand, settings: Any) -> None:
    token = stand.user_token(ADA)
    settings.BACKSTAGE_URL = ""
    assert Caller(token).get("me/").status == 401


@pytest.mark.parametrize("make", [Stand.user_token, Stand.plugin_token], ids=["through the proxy", "a plugin for them"])
def test_a_person_is_who_they_were_said_to_be(stand: Stand, make: Callable[[Stand, str], str]) -> None:
    found = Caller(make(stand, ADA)).get("me/").json
    assert found == {
        "username": "ada",
        "ref": ADA,
        "teams": [{"slug": "search", "role": "owner"}],
        "groups": [],
        "scopes": None,
    }


def test_what_they_may_they_may_here(stand: Stand) -> None:
    answer = Caller(stand.plugin_token(BEN)).post("requests/", model_body("by-template"))
    assert answer.status == 201
    assert answer.json["requester"] == "ben"


def test_nobody_approves_their_own_wish_through_backstage(stand: Stand, call_as: As) -> None:
    """Case 12: an approver by the directory's groups, on each path of Backstage's."""
    stand.user(NEW, "n", "group:default/search", "group:default/platform-approvers")
    asked = Caller(stand.user_token(NEW)).post("requests/", model_body("big", gpus=3))
    assert asked.json["state"] == "Waiting", asked.json
    for token in (stand.user_token(NEW), stand.plugin_token(NEW)):
        answer = Caller(token).post(f"requests/{asked.json['id']}/approve/", {"comment": "fine"})
        assert answer.status == 403
        assert "you can't vote on this request, because you asked for it" in answer.json["detail"]


def test_a_plugin_that_acts_for_nobody_reads_the_feed_and_nothing_else(stand: Stand) -> None:
    caller = Caller(stand.plugin_token(None, aud="portal"))
    assert caller.get("catalog/entities/").status == 200
    assert caller.get("me/").json["scopes"] == ["feed"]
    assert caller.get("requests/").status == 403
    assert caller.post("requests/", model_body("mine")).status == 403


def test_keys_that_were_rotated_are_found(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Caller(stand.user_token(ADA)).get("me/").status == 200
    new = Key("auth-2")
    stand.keys["auth"].append(new)
    known = backstage.tokens()
    assert known is not None
    now = time.monotonic()
    monkeypatch.setattr(known._users, "_clock", lambda: now + 6)
    assert Caller(new.sign(stand.claims(ADA), USER)).get("me/").status == 200


def test_unknown_keys_do_not_make_the_portal_ask_for_each(stand: Stand) -> None:
    for number in range(50):
        assert Caller(Key(f"made-up-{number}").sign(stand.claims(ADA), USER)).get("me/").status == 401
    assert stand.asked <= 2


def test_a_header_of_another_scheme_is_refused(stand: Stand) -> None:
    answer = Client().get("/api/v1/me/", headers={"Authorization": f"Basic {stand.user_token(ADA)}"})
    assert answer.status_code == 401


def test_what_the_tests_sign_is_what_pyjwt_reads(stand: Stand) -> None:
    assert jwt.get_unverified_header(stand.user_token(ADA)) == {"alg": "ES256", "typ": USER, "kid": "auth-1"}
