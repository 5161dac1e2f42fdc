"""Bodies that are wrong: a clear error that names the place, and nothing written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portal.models import Instance, Request
from tests.api.conftest import As, Unwritten
from tests.sample import MODEL_SPEC, model_body, quota_body
from tests.world import submit

DEEP = 200


def spec(**changes: Any) -> dict[str, Any]:
    """A body whose spec has these members."""
    return model_body(spec={**MODEL_SPEC, **changes})


def raw(text: str) -> bytes:
    """A body whose reason is this JSON text, however wrong."""
    return json.dumps(model_body(reason="@")).replace('"@"', text).encode("utf-8", "surrogatepass")


MALFORMED = [
    (b"", "an empty body has no kind", "invalid-input"),
    (b"{", "cut off", "malformed-json"),
    (b"null", "null", "invalid-input"),
    (b"[]", "a list", "invalid-input"),
    (b'"Create"', "a string", "invalid-input"),
    (b"{} {}", "two values", "malformed-json"),
    (b"{'kind': 'Create'}", "single quotes", "malformed-json"),
    (b"\xff\xfe{\x00}\x00", "UTF-16", "malformed-json"),
    (b'\xef\xbb\xbf{"kind": "Create"}', "a byte order mark", "malformed-json"),
    (raw("NaN"), "NaN", "malformed-json"),
    (raw("Infinity"), "Infinity", "malformed-json"),
    (raw("-Infinity"), "-Infinity", "malformed-json"),
    (raw("1e999"), "a number past every float", "invalid-input"),
    (raw("9" * 5000), "an integer of 5,000 digits", "malformed-json"),
    (raw("9" * 500), "an integer of 500 digits", "invalid-input"),
    (raw('"\\u0000"'), "U+0000", "invalid-input"),
    (raw('"\\ud800"'), "half a surrogate pair", "invalid-input"),
    (raw('"\ud800"'), "half a surrogate pair, as bytes", "malformed-json"),
    (raw('"\x1f"'), "a control character that is not escaped", "malformed-json"),
    (raw("[" * DEEP + "]" * DEEP), "200 lists deep", "malformed-json"),
    (raw('{"a":' * DEEP + "1" + "}" * DEEP), "200 objects deep", "malformed-json"),
    (raw("[" * 100_000), "100,000 lists deep", "malformed-json"),
    (raw("[" + "1," * 30_000 + "1]"), "30,000 values", "invalid-input"),
    (b'{"kind": "Create", "kind": "Quota"}', "a key twice", "malformed-json"),
    (raw('{"a": {"b": 1, "b": 2}}'), "a key twice, deep inside", "malformed-json"),
    (raw('"x", "reason": "y"'), "a key twice, at the end", "malformed-json"),
]


@pytest.mark.parametrize("body, reason, code", MALFORMED, ids=[reason for _, reason, _ in MALFORMED])
@pytest.mark.parametrize("path", ["requests/", "requests/preview/"])
def test_what_is_no_body(
    call_as: As, nothing_written: Unwritten, path: str, body: bytes, reason: str, code: str
) -> None:
    with nothing_written():
        answer = call_as("ada").post(path, body)
    assert (answer.status, answer.code) == (400, code), reason
    assert len(answer.json["detail"]) < 1000
    assert "Traceback" not in answer.text


def test_a_body_of_one_hundred_thousand_keys_is_read_at_once(call_as: As) -> None:
    """The search for a key that is there twice must not be quadratic."""
    keys = ",".join(f'"k{number}":0' for number in range(60_000))
    answer = call_as("ada").post("requests/", ("{" + keys + ',"k59999":1}').encode())
    assert answer.code == "malformed-json"
    assert '"k59999"' in answer.json["detail"]


WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("an unknown kind", model_body(kind="Destroy"), "/kind", "unknown-kind"),
    ("a kind that is a list", model_body(kind=["Create"]), "/kind", "unknown-kind"),
    ("an unknown member", model_body(priority=1), "/priority", "unknown-field"),
    ("no team", {k: v for k, v in model_body().items() if k != "team"}, "/team", "missing-field"),
    ("a team that is a number", model_body(team=7), "/team", "wrong-type"),
    ("a team of the wrong form", model_body(team="Search Team"), "/team", "bad-format"),
    ("a name that is empty", model_body(""), "/name", "too-short"),
    ("a name with capitals", model_body("Chat"), "/name", "bad-name"),
    ("a model id as name", model_body("ibm-granite/granite-3.1-8b"), "/name", "bad-name"),
    ("a name whose derived name passes 63", model_body("a" * 45), "/name", "too-long"),
    ("a spec that is a list", model_body(spec=[]), "/spec", "wrong-type"),
    ("an unknown member of spec", spec(gpu=1), "/spec/gpu", "unknown-field"),
    ("a number as a string", spec(concurrency="8"), "/spec/concurrency", "wrong-type"),
    ("a number above its range", spec(concurrency=5000), "/spec/concurrency", "out-of-range"),
    ("a number below its range", spec(replicas={"min": 0, "max": 1}), "/spec/replicas/min", "out-of-range"),
    ("a number past 2**53", spec(contextLength=2**53 + 1), "/spec/contextLength", "out-of-range"),
    ("a fraction", spec(concurrency=1.5), "/spec/concurrency", "wrong-type"),
    ("a boolean for a number", spec(concurrency=True), "/spec/concurrency", "wrong-type"),
    ("null for a number", spec(concurrency=None), "/spec/concurrency", "wrong-type"),
    ("a word that is none of its words", spec(dataClassification="secret"), "/spec/dataClassification", "not-one-of"),
    ("more than the maximum", spec(replicas={"min": 3, "max": 2}), "/spec/replicas/min", "rule-broken"),
    ("a reason of 10,001 characters", model_body(reason="x" * 10_001), "/reason", "too-long"),
    ("a reason that is a number", model_body(reason=1), "/reason", "wrong-type"),
    ("a label that is a number", model_body(labels={"a": 1}), "/labels/a", "wrong-type"),
    ("a label's name with spaces", model_body(labels={"a b": "c"}), "/labels", "bad-format"),
    ("a template in a label", model_body(labels={"a": "{{7*7}}"}), "/labels/a", "bad-format"),
    ("nobody of that name", model_body(madeFor="nobody"), "/madeFor", "unknown-person"),
    ("an unknown environment", model_body(environment="moon"), "/environment", "unknown-environment"),
    ("a key of 201 characters", model_body(idempotencyKey="k" * 201), "/idempotencyKey", "too-long"),
    ("a negative quota", quota_body(-1, team="search"), "/spec/limit", "out-of-range"),
    ("a quota as a string", quota_body("8", team="search"), "/spec/limit", "wrong-type"),  # type: ignore[arg-type]
    ("a quota past all bounds", quota_body(10**12, team="search"), "/spec/limit", "out-of-range"),
    ("an instance that is no UUID", {"kind": "Delete", "instance": "chat"}, "/instance", "bad-format"),
]


@pytest.mark.parametrize("reason, body, pointer, code", WRONG, ids=[reason for reason, *_ in WRONG])
def test_what_is_wrong_is_named(
    call_as: As, nothing_written: Unwritten, reason: str, body: dict[str, Any], pointer: str, code: str
) -> None:
    with nothing_written():
        answer = call_as("ada").post("requests/", body)
    assert (answer.status, answer.code) == (400, "invalid-input"), reason
    assert (pointer, code) in [(e["pointer"], e["code"]) for e in answer.json["errors"]], answer.json["errors"]


def test_every_problem_is_named_at_once(call_as: As) -> None:
    answer = call_as("ada").post("requests/", spec(concurrency="8", contextLength=1, surprise=1))
    assert len(answer.json["errors"]) == 3


NOT_THERE = [
    ("an unknown offering", "ada", model_body(offering="mainframes")),
    ("an unknown team", "ada", model_body(team="moon")),
    ("another's team", "ada", model_body(team="research")),
    ("a quota of another's team", "ada", quota_body(3, team="ads")),
    ("an unknown instance", "ada", {"kind": "Delete", "instance": "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"}),
]


@pytest.mark.parametrize("reason, who, body", NOT_THERE, ids=[reason for reason, *_ in NOT_THERE])
def test_what_is_not_there_for_one(
    call_as: As, nothing_written: Unwritten, reason: str, who: str, body: dict[str, Any]
) -> None:
    with nothing_written():
        answer = call_as(who).post("requests/", body)
    assert (answer.status, answer.code) == (404, "not-found"), reason


VOTES: list[tuple[str, Any, str]] = [
    ("a list", [], ""),
    ("an unknown member", {"comment": "x", "force": True}, "/force"),
    ("a comment that is a number", {"comment": 1}, "/comment"),
    ("a comment of 10,001 characters", {"comment": "x" * 10_001}, "/comment"),
    ("a comment with U+0000", {"comment": "\x00"}, "/comment"),
    ("a decision that is a string", {"decision": "42"}, "/decision"),
    ("a decision that is true", {"decision": True}, "/decision"),
    ("a decision that is a fraction", {"decision": 1.0}, "/decision"),
]


@pytest.mark.parametrize("reason, body, pointer", VOTES, ids=[reason for reason, *_ in VOTES])
def test_what_is_no_vote(call_as: As, nothing_written: Unwritten, reason: str, body: Any, pointer: str) -> None:
    waiting = submit("ada", model_body(environment="prod")).pk
    with nothing_written():
        answer = call_as("frank").post(f"requests/{waiting}/approve/", json.dumps(body).encode())
    assert answer.status == 400, reason
    assert answer.json["errors"][0]["pointer"] == pointer


def test_a_withdrawal_takes_no_members(call_as: As, nothing_written: Unwritten) -> None:
    waiting = submit("ada", model_body(environment="prod")).pk
    with nothing_written():
        answer = call_as("ada").post(f"requests/{waiting}/withdraw/", {"why": "x"})
    assert answer.json["errors"] == [{"pointer": "/why", "code": "unknown-field", "message": "known members: none"}]


LITERAL = [
    "{{7*7}}",
    "${{ secrets.X }}",
    "<script>alert(1)</script>",
    "'; drop table portal_request; --",
    "no",
    "0123",
    "12:30:45",
    "1_000",
    "データ team 🚀",
    "line\nbreak\ttab",
    "x" * 10_000,
]


@pytest.mark.parametrize("text", LITERAL, ids=[text[:20] for text in LITERAL])
def test_text_is_kept_as_it_is(call_as: As, text: str) -> None:
    """Cases 9 and 18: nothing in a text is evaluated, cut or read as something else."""
    ada = call_as("ada")
    made = ada.post("requests/", model_body(environment="prod", reason=text)).json
    assert made["reason"] == text
    assert ada.get(f"requests/{made['id']}/").json["reason"] == text
    assert Request.objects.get().reason == text
    voted = call_as("frank").post(f"requests/{made['id']}/approve/", {"comment": text}).json
    assert voted["stages"][0]["votes"][0]["comment"] == text


@pytest.mark.parametrize("revision", ["no", "0123", "1E6", "1_000", "null"])
def test_texts_of_a_spec_stay_texts(call_as: As, revision: str) -> None:
    """Case 9, through the claim that a preview shows."""
    model = {**MODEL_SPEC["model"], "revision": revision}
    preview = call_as("ada").post("requests/preview/", spec(model=model)).json
    assert preview["spec"]["model"]["revision"] == revision
    assert f"revision: '{revision}'" in preview["claim"] or f'revision: "{revision}"' in preview["claim"]


def test_integers_stay_integers(call_as: As) -> None:
    """Case 11: as they were sent, and never 1.0."""
    made = call_as("ada").post("requests/", spec(contextLength=4096))
    assert '"contextLength":4096,' in made.text
    assert Instance.objects.get().spec["contextLength"] == 4096
    refused = call_as("ada").post("requests/", json.dumps(spec()).replace("4096", "4096.0").encode())
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (400, "/spec/contextLength")
