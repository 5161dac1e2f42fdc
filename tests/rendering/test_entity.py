"""An Instance's catalog entity: what Backstage shows, whatever people wrote. Backstage's own verdict is asked for in
tests/contract."""

import dataclasses
import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.rendering.entity import EntityFacts, entity_ref, render_entity

FACTS = EntityFacts(
    instance_id="5a4f2f0e-7f6d-4c0e-9a53-0d8a4a3d2b11",
    name="chat",
    title="Chat",
    offering="modeldeployments",
    offering_title="Model deployment",
    catalog_kind="Component",
    catalog_type="model-endpoint",
    lifecycle="production",
    team="search",
    environment="dev",
    phase="Ready",
    since=dt.datetime(2026, 12, 1, 13, 5, 7, 123456, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    message="",
    endpoint={"url": "https://chat.eu-central.example.org/v1"},
    monthly="584.00",
    currency="EUR",
    claim_kind="ModelDeployment",
    claim_namespace="search-dev",
    claim_name="chat",
    control_plane="embedded",
    request_id="1c9b7f6e-33a1-4be7-8a54-1f8ad0b6a0d3",
    base_url="https://portal.example.org/",
    tags=("LLM", "OpenAI API", "llm"),
)
PREFIX = "portal.aiplatform.example.org/"


def rendered(**changes: Any) -> dict[str, Any]:
    return render_entity(dataclasses.replace(FACTS, **changes))


def test_a_ready_component_says_what_runs_where_and_at_what_cost() -> None:
    assert rendered() == {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {
            "name": "chat.search.dev.modeldeployments",
            "namespace": "default",
            "title": "Chat",
            "description": "Model deployment of search in dev: Ready, up to 584.00 EUR a month.",
            "labels": {
                PREFIX + "instance": FACTS.instance_id,
                PREFIX + "team": "search",
                PREFIX + "environment": "dev",
                PREFIX + "offering": "modeldeployments",
                PREFIX + "phase": "Ready",
            },
            "annotations": {
                "backstage.io/managed-by-location": f"url:https://portal.example.org/instances/{FACTS.instance_id}/",
                "backstage.io/managed-by-origin-location": f"url:https://portal.example.org/instances/{FACTS.instance_id}/",
                "backstage.io/view-url": f"https://portal.example.org/instances/{FACTS.instance_id}/",
                PREFIX + "state": "Ready",
                PREFIX + "since": "2026-12-01T12:05:07Z",
                PREFIX + "claim": "ModelDeployment/search-dev/chat",
                PREFIX + "control-plane": "embedded",
                PREFIX + "request": FACTS.request_id,
                PREFIX + "cost-per-month": "584.00 EUR",
                PREFIX + "endpoint-url": "https://chat.eu-central.example.org/v1",
            },
            "links": [
                {"url": "https://chat.eu-central.example.org/v1", "title": "Endpoint (url)", "icon": "web"},
                {
                    "url": f"https://portal.example.org/requests/{FACTS.request_id}/",
                    "title": "Request in the portal",
                    "icon": "dashboard",
                },
            ],
            "tags": ["dev", "llm", "openai-api"],
        },
        "spec": {"type": "model-endpoint", "lifecycle": "production", "owner": "group:default/search"},
    }


def test_a_resource_has_no_lifecycle_and_its_host_is_no_link() -> None:
    entity = rendered(
        catalog_kind="Resource",
        catalog_type="vector-database",
        endpoint={"host": "docs-rw.search-dev.svc", "port": 5432, "scheme": "postgresql"},
        system="retrieval",
    )
    assert entity["kind"] == "Resource"
    assert entity["spec"] == {"type": "vector-database", "owner": "group:default/search", "system": "retrieval"}
    assert entity["metadata"]["annotations"][PREFIX + "endpoint-port"] == "5432"
    assert [link["title"] for link in entity["metadata"]["links"]] == ["Request in the portal"]


def test_what_is_not_known_is_left_out_and_not_made_up() -> None:
    entity = rendered(phase="Pending", endpoint={}, monthly=None, currency="", tags=())
    annotations = entity["metadata"]["annotations"]
    assert not [key for key in annotations if "cost" in key or "endpoint" in key or "message" in key]
    assert entity["metadata"]["description"] == "Model deployment of search in dev: Pending."


def test_what_was_not_requested_has_no_link_to_a_request() -> None:
    metadata = rendered(request_id="", endpoint={})["metadata"]
    assert metadata["links"] == []
    assert PREFIX + "request" not in metadata["annotations"]


def test_a_degraded_one_says_why() -> None:
    fields = ("/spec/replicas/max", "/spec/regions")
    entity = rendered(phase="Degraded", message="1 of 2 replicas answer.", advice="Wait for the other.", drift=fields)
    assert entity["metadata"]["annotations"][PREFIX + "message"] == "1 of 2 replicas answer."
    assert entity["metadata"]["annotations"][PREFIX + "advice"] == "Wait for the other."
    assert entity["metadata"]["annotations"][PREFIX + "drift"] == "/spec/replicas/max, /spec/regions"
    assert entity["metadata"]["description"].endswith("Degraded, up to 584.00 EUR a month. 1 of 2 replicas answer.")


@pytest.mark.parametrize(
    ("url", "is_link", "reason"),
    [
        ("https://chat.example.org/v1", True, "a web address"),
        ("http://chat.example.org:8080", True, "with a port"),
        ("http://10.0.0.7/v1", True, "an IPv4 address"),
        ("http://10.0.0.700/v1", False, "no IPv4 address, and Backstage refuses the whole entity for it"),
        ("http://a.0x7f/v1", False, "browsers read its last label as a number"),
        ("javascript:alert(1)", False, "would run in the reader's browser"),
        ("data:text/html,x", False, "likewise"),
        ("https://user:secret@chat.example.org", False, "a password isn't published as a link"),
        ("https://chat.example.org\\@evil.example", False, "read in two ways"),
        ("https://chat.example.org:99999", False, "no such port"),
        ("https://", False, "no host"),
        ("https://xn--a/", False, "punycode that can't be read is refused by Backstage"),
        ("https://chat example.org", False, "a space"),
        ("https://[::1", False, "half an address"),
        ("https://chat.example.org/\n", False, "a line end"),
        ("https://chat.example.org/" + "x" * 2000, False, "too long for a browser"),
        ("", False, "nothing"),
    ],
)
def test_only_web_addresses_become_links(url: str, is_link: bool, reason: str) -> None:
    links = rendered(endpoint={"url": url})["metadata"]["links"]
    assert (len(links) == 2) == is_link, reason


@pytest.mark.parametrize(
    "text", ["{{7*7}}", "${{ secrets.X }}", "<script>alert(1)</script>", "'; drop table x", "データ"]
)
def test_text_is_literal(text: str) -> None:
    entity = rendered(title=text, message=text, endpoint={"url": text})
    assert entity["metadata"]["title"] == text
    assert entity["metadata"]["annotations"][PREFIX + "message"] == text
    assert entity["metadata"]["annotations"][PREFIX + "endpoint-url"] == text
    assert entity["metadata"]["description"].endswith(text)


def test_without_a_title_the_name_stands_there() -> None:
    metadata = rendered(title=" ")["metadata"]
    assert metadata["title"] == metadata["name"]


def test_long_text_is_cut_visibly() -> None:
    metadata = rendered(title="t" * 10_000, message="m" * 10_000)["metadata"]
    assert metadata["title"] == "t" * 99 + "…"
    assert metadata["annotations"][PREFIX + "message"] == "m" * 999 + "…"
    assert len(metadata["description"]) == 1000


def test_an_endpoint_key_that_no_annotation_can_have_is_left_out() -> None:
    annotations = rendered(endpoint={"a/b": "x", "$text": "x", "k" * 60: "x", "ok": "x"})["metadata"]["annotations"]
    assert [key for key in annotations if "endpoint" in key] == [PREFIX + "endpoint-ok"]


def test_the_name_stays_when_the_team_changes() -> None:
    first = rendered()
    moved = rendered(team="ads", entity_name=first["metadata"]["name"])
    assert entity_ref(moved) == entity_ref(first) == "component:default/chat.search.dev.modeldeployments"
    assert moved["spec"]["owner"] == "group:default/ads"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"catalog_kind": "Template"}, "'Template' of 'modeldeployments' is not Component or Resource"),
        ({"since": dt.datetime(2026, 12, 1)}, "has no time zone"),
    ],
)
def test_mistakes_of_the_caller_are_errors(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        rendered(**changes)


odd = st.text(max_size=80)


@given(
    changes=st.fixed_dictionaries(
        {key: odd for key in ("name", "title", "team", "environment", "phase", "message", "instance_id", "request_id")}
    ),
    endpoint=st.dictionaries(odd, odd, max_size=3),
    tags=st.lists(odd, max_size=3).map(tuple),
)
def test_odd_text_never_fails_and_never_becomes_a_key(
    changes: dict[str, str], endpoint: dict[str, str], tags: tuple[str, ...]
) -> None:
    entity = rendered(**changes, endpoint=endpoint, tags=tags)
    json.dumps(entity, ensure_ascii=False).encode()  # raises for what can't be sent
    assert set(entity) == {"apiVersion", "kind", "metadata", "spec"}
    assert all(isinstance(value, str) for value in entity["metadata"]["annotations"].values())
    assert all("/" in key for key in entity["metadata"]["annotations"])
    assert entity == rendered(**changes, endpoint=endpoint, tags=tags)
