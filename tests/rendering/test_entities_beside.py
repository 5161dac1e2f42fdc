"""The API and the System beside an instance's entity, and what TeraSky's plugins read of it."""

import dataclasses
import json
from typing import Any

import pytest

from portal.rendering.entity import EntityFacts, entity_ref, render_entity
from portal.rendering.entity_api import render_api
from portal.rendering.entity_crossplane import ClaimAt, crossplane_annotations
from portal.rendering.entity_system import SystemFacts, render_system
from tests.rendering.test_entity import FACTS, PREFIX

SPEAKING = dataclasses.replace(FACTS, api="openai", system="system:default/search.dev")
CLAIM = ClaimAt("test.example.org/v1alpha1", "Notebook", "notebooks", "search-dev", "chat", "notebooks-x", cluster="eu")
SYSTEM = SystemFacts("search", "Search", "dev", "Development", "https://portal.example.org/")


def api(**changes: Any) -> dict[str, Any]:
    made = render_api(dataclasses.replace(SPEAKING, **changes))
    assert made is not None
    return made


def definition(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(api(**changes)["spec"]["definition"])
    return found


def test_a_component_provides_its_api_and_both_are_in_the_system() -> None:
    component = render_entity(SPEAKING)
    assert component["spec"]["providesApis"] == [entity_ref(api())]
    assert component["spec"]["system"] == api()["spec"]["system"] == "system:default/search.dev"
    assert entity_ref(api()) == "api:default/chat.search.dev.modeldeployments"


def test_what_has_no_api_provides_none() -> None:
    assert render_api(FACTS) is None
    assert "providesApis" not in render_entity(FACTS)["spec"]


def test_an_api_that_nobody_knows_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="soap"):
        render_api(dataclasses.replace(FACTS, api="soap"))


@pytest.mark.parametrize(
    ("endpoint", "servers", "reason"),
    [
        ({"url": "https://chat.example.org"}, ["https://chat.example.org/v1"], "as KServe says it"),
        ({"url": "https://chat.example.org/"}, ["https://chat.example.org/v1"], "with a slash"),
        ({"url": "https://chat.example.org/v1"}, ["https://chat.example.org/v1"], "with the version"),
        ({"url": "http://gw.example.org/search/chat/v1/"}, ["http://gw.example.org/search/chat/v1"], "below a path"),
        ({"url": "javascript:alert(1)"}, None, "no address"),
        ({"url": 7}, None, "nor this"),
        ({"host": "chat.example.org"}, None, "another member"),
        ({}, None, "not known yet"),
    ],
)
def test_a_definition_names_its_server_once_there_is_one(
    endpoint: dict[str, str | int], servers: list[str] | None, reason: str
) -> None:
    found = definition(endpoint=endpoint)
    assert ([server["url"] for server in found["servers"]] if servers else found.get("servers")) == servers, reason


def test_a_definition_has_what_an_openai_client_calls() -> None:
    found = definition()
    assert found["openapi"].startswith("3.")
    assert {path: list(operations) for path, operations in found["paths"].items()} == {
        "/models": ["get"],
        "/chat/completions": ["post"],
        "/completions": ["post"],
    }
    names = [each["operationId"] for operations in found["paths"].values() for each in operations.values()]
    assert len(names) == len(set(names))


def test_texts_in_a_definition_stay_literal() -> None:
    title = '{{7*7}} ${{ x }} </script> "\\ データ \ud800'
    assert definition(title=title)["info"]["title"] == title.replace("\ud800", "?")


def test_an_api_is_found_by_the_same_labels_and_says_how_the_instance_is() -> None:
    metadata = api(phase="Degraded")["metadata"]
    assert metadata["labels"] == render_entity(dataclasses.replace(SPEAKING, phase="Degraded"))["metadata"]["labels"]
    assert metadata["annotations"][PREFIX + "state"] == "Degraded"
    assert PREFIX + "claim" not in metadata["annotations"]


def test_an_owner_that_the_rules_name_is_everybodys() -> None:
    owned = dataclasses.replace(SPEAKING, owner="group:acme/search-engineers")
    system = render_system(dataclasses.replace(SYSTEM, owner=owned.owner))
    api_entity = render_api(owned)
    assert api_entity is not None
    for entity in (render_entity(owned), api_entity, system):
        assert entity["spec"]["owner"] == "group:acme/search-engineers"


def test_a_system_is_a_teams_in_an_environment() -> None:
    assert entity_ref(render_system(SYSTEM)) == "system:default/search.dev"
    assert render_system(SYSTEM)["metadata"]["title"] == "Search: Development"
    kept = dataclasses.replace(SYSTEM, team="renamed", entity_name="search.dev")
    assert entity_ref(render_system(kept)) == "system:default/search.dev"
    assert render_system(kept)["spec"]["owner"] == "group:default/renamed"


def test_links_to_what_one_can_do_with_it() -> None:
    links = render_entity(dataclasses.replace(FACTS, links=(("Suspend", "https://b.example.org/x"),)))["metadata"][
        "links"
    ]
    assert links[-1] == {"url": "https://b.example.org/x", "title": "Suspend", "icon": "scaffolder"}


def test_terasky_finds_a_namespaced_xr_by_the_annotations_of_its_ingestor() -> None:
    own = "terasky.backstage.io/"
    assert crossplane_annotations(CLAIM) == {
        own + "crossplane-resource": "true",
        own + "crossplane-version": "v2",
        own + "crossplane-scope": "Namespaced",
        own + "component-type": "crossplane-xr",
        own + "composite-kind": "Notebook",
        own + "composite-name": "chat",
        own + "composite-namespace": "search-dev",
        own + "composite-group": "test.example.org",
        own + "composite-version": "v1alpha1",
        own + "composite-plural": "notebooks",
        own + "composition-name": "notebooks-x",
        "backstage.io/kubernetes-cluster": "eu",
        "backstage.io/kubernetes-namespace": "search-dev",
        "backstage.io/kubernetes-label-selector": "crossplane.io/composite=chat",
    }


def test_terasky_finds_a_claim_of_v1_by_its_own_annotations() -> None:
    found = crossplane_annotations(dataclasses.replace(CLAIM, style="v1"))
    assert {key for key in found if "/composite-" in key} == set(), "only Crossplane knows its XR"
    assert found["terasky.backstage.io/claim-name"] == "chat"
    assert found["terasky.backstage.io/claim-plural"] == "notebooks"


def test_where_no_cluster_is_kubernetes_plugins_find_none() -> None:
    found = crossplane_annotations(dataclasses.replace(CLAIM, cluster=""))
    assert not [key for key in found if "kubernetes" in key]


def test_before_a_claim_is_rendered_nothing_is_said_of_it() -> None:
    assert isinstance(FACTS, EntityFacts)
    assert FACTS.claim is None
    assert "terasky" not in str(render_entity(FACTS))
