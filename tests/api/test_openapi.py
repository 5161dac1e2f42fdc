"""The OpenAPI document: valid, without warnings, and what the API really answers."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from portal.api.urls import V1
from portal.domain.draft import BODIES
from tests.api.calls import Answer
from tests.api.conftest import As
from tests.sample import model_body, quota_body
from tests.world import FEED, ready, submit

ERRORS = "application/problem+json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    GENERATOR_STATS.reset()
    made = SchemaGenerator().get_schema(request=None, public=True)
    found: dict[str, Any] = json.loads(json.dumps(made))
    return found


def test_it_is_openapi_3_1_without_warnings(document: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert document["openapi"] == "3.1.1"
    validate_schema(document)
    GENERATOR_STATS.emit_summary()
    assert not GENERATOR_STATS, capsys.readouterr().err


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, verb, said) for path, verbs in document["paths"].items() for verb, said in verbs.items()]


def test_every_address_is_described(document: dict[str, Any]) -> None:
    undescribed = {"schema", "docs"}
    assert len(document["paths"]) == len([each for each in V1 if each.name not in undescribed])
    assert all(said["security"] == [{"token": []}, {"session": []}] for _, _, said in operations(document))


def test_every_operation_has_words_and_examples(document: dict[str, Any]) -> None:
    for path, verb, said in operations(document):
        where = f"{verb} {path}"
        assert said["summary"], where
        assert said["operationId"], where
        bodies = [
            said["responses"][status]["content"]["application/json"]
            for status in ("200", "201")
            if status in said["responses"]
        ]
        assert bodies and all(body["examples"] for body in bodies), where
        if verb == "post":
            assert said["requestBody"]["content"]["application/json"]["examples"], where
            assert {"413", "415"} <= set(said["responses"]), where
        for status in ("400", "401", "403", "406"):
            assert set(said["responses"][status]["content"]) == {ERRORS, "application/json"}, where


def strict(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with objects that take no members but those described."""
    made = copy.deepcopy(document)
    for component in made["components"]["schemas"].values():
        if component.get("type") == "object" and "properties" in component:
            component.setdefault("additionalProperties", False)
    return made


def check(document: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    """Hold a value against a schema of the document. Raises jsonschema_rs.ValidationError."""
    whole = {**schema, "components": strict(document)["components"]}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(value)


def test_examples_fit(document: dict[str, Any]) -> None:
    count = 0
    for path, verb, said in operations(document):
        contents = [answer.get("content", {}) for answer in said["responses"].values()]
        contents.append(said.get("requestBody", {}).get("content", {}))
        for content in contents:
            for kind in content.values():
                for name, example in kind.get("examples", {}).items():
                    try:
                        check(document, kind["schema"], example["value"])
                    except jsonschema_rs.ValidationError as error:
                        pytest.fail(f"{verb} {path}, example {name}: {error}")
                    count += 1
    assert count > 40


def test_bodies_are_described_by_what_checks_them(document: dict[str, Any]) -> None:
    body = document["paths"]["/api/v1/requests/"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["oneOf"] == json.loads(json.dumps(list(BODIES.values())))


def fits(document: dict[str, Any], template: str, verb: str, answer: Answer) -> None:
    said = document["paths"][f"/api/v1/{template}"][verb]["responses"]
    assert str(answer.status) in said, f"{answer.status} is not described: {answer.text}"
    kind = answer.headers["Content-Type"]
    check(document, said[str(answer.status)]["content"][kind]["schema"], answer.json)


def test_answers_are_as_described(document: dict[str, Any], call_as: As) -> None:
    instance = ready("ada", model_body("one"), {"endpoint": {"url": "https://x.example.org"}})
    waiting = submit("ada", model_body("two", environment="prod", reason="x", labels={"a": "b"})).pk
    denied = submit("carol", model_body(team="ads", gpus=2)).pk
    quota = submit("carol", quota_body(2)).pk
    admin = call_as("grace")
    one = "requests/{request_id}/"
    fits(document, "requests/{request_id}/approve/", "post", call_as("frank").post(f"requests/{waiting}/approve/"))
    for request in (waiting, denied, quota):
        fits(document, one, "get", admin.get(f"requests/{request}/"))
        fits(document, f"{one}timeline/", "get", admin.get(f"requests/{request}/timeline/"))
    for path in ("", "requests/", "instances/", "offerings/", "teams/", "quotas/", "budgets/", "fleet/", "prices/"):
        fits(document, path, "get", admin.get(path))
    for path in ("environments/", "audit/"):
        fits(document, path, "get", admin.get(path, limit=200))
    fits(document, "instances/{instance_id}/", "get", admin.get(f"instances/{instance.pk}/"))
    fits(document, "offerings/{name}/", "get", admin.get("offerings/vectordatabases/"))
    for body in (model_body("three"), quota_body(3, team="search")):
        fits(document, "requests/preview/", "post", call_as("ada").post("requests/preview/", body))
    made = call_as("ada").post("requests/", model_body("three", idempotencyKey="k"))
    fits(document, "requests/", "post", made)
    fits(document, "requests/", "post", call_as("ada").post("requests/", model_body("three", idempotencyKey="k")))
    fits(document, f"{one}withdraw/", "post", call_as("ada").post(f"requests/{made.json['id']}/withdraw/"))
    fits(document, f"{one}reject/", "post", call_as("grace").post(f"requests/{quota}/reject/", {"comment": "no"}))
    fits(document, "requests/", "post", call_as("ada", ["request"]).post("requests/", model_body("four")))
    entities = call_as(FEED).get("catalog/entities/")
    fits(document, "catalog/entities/", "get", entities)
    fits(document, "catalog/changes/", "get", call_as(FEED).get("catalog/changes/", cursor=entities.json["cursor"]))


def test_errors_are_as_described(document: dict[str, Any], call_as: As) -> None:
    ada = call_as("ada")
    waiting = submit("ada", model_body("two", environment="prod")).pk
    submitting = "requests/"
    fits(document, submitting, "post", ada.post("requests/", model_body(team="moon")))
    fits(document, submitting, "post", ada.post("requests/", model_body(team=7)))
    fits(document, submitting, "post", ada.post("requests/", b"{"))
    fits(document, submitting, "post", ada.post("requests/", model_body(), kind="text/plain"))
    fits(document, submitting, "post", ada.post("requests/", b" " * 2_000_000))
    fits(document, submitting, "post", ada.post("requests/", model_body("two", environment="prod")))
    fits(document, submitting, "post", call_as("ada", ["read"]).post("requests/", model_body()))
    fits(document, submitting, "get", ada.get("requests/", surprise=1, headers={"Accept": "application/json"}))
    fits(document, submitting, "get", ada.get("requests/", headers={"Authorization": "Bearer x"}))
    fits(document, submitting, "get", ada.get("requests/", headers={"Accept": "image/png"}))
    approving = "requests/{request_id}/approve/"
    fits(document, approving, "post", ada.post(f"requests/{waiting}/approve/"))
    fits(document, approving, "post", call_as("dave").post(f"requests/{waiting}/approve/"))
    fits(document, "catalog/changes/", "get", call_as(FEED).get("catalog/changes/", cursor="x"))


def test_it_is_served_to_everybody(document: dict[str, Any], db: None) -> None:
    answer = Client().get("/api/v1/schema/")
    assert answer.status_code == 200
    assert json.loads(answer.content)["paths"].keys() == document["paths"].keys()
    assert (
        Client()
        .get("/api/v1/schema/", headers={"Accept": "application/vnd.oai.openapi"})
        .content.startswith(b"openapi")
    )


def test_the_page_about_it_loads_nothing_from_elsewhere(db: None) -> None:
    page = Client().get("/api/v1/docs/")
    text = page.content.decode()
    assert page.status_code == 200
    assert "swagger-ui" in text
    assert "//" not in text.replace("<!--", "").replace("://www.w3.org", "")
    assert "<script>" not in text, "an inline script would be refused by the content security policy"
    script = Client().get("/api/v1/docs/?script=")
    assert script.status_code == 200
    assert "/api/v1/schema/" in script.content.decode()
