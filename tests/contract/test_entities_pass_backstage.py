"""Backstage takes every entity that is rendered here, whatever people wrote: its own policies say so.

Node.js runs them (see backstage_policies). Each test asks once, with a batch.
"""

import dataclasses
import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.rendering.entity import EntityFacts, entity_ref, render_entity
from portal.rendering.entity_api import render_api
from portal.rendering.entity_crossplane import ClaimAt
from portal.rendering.entity_system import SystemFacts, render_system
from tests.contract.backstage_policies import PACKAGE, refusals
from tests.contract.claims import offering_named
from tests.contract.goldens import FOLDER, assert_golden, golden_files

INSTALLING = 400  # seconds; only the first run takes long


def facts(offering: str, **more: Any) -> EntityFacts:
    """An instance of an offering as its files describe it."""
    files = offering_named(offering)
    plain = EntityFacts(
        instance_id="5a4f2f0e-7f6d-4c0e-9a53-0d8a4a3d2b11",
        name="support",
        title="support",
        offering=files.name,
        offering_title=files.title,
        catalog_kind=files.catalog.kind,
        catalog_type=files.catalog.type,
        lifecycle=files.catalog.lifecycle,
        team="search",
        environment="prod",
        phase="Unknown",
        since=dt.datetime(2026, 12, 1, 12, 0, tzinfo=dt.UTC),
        claim_kind=files.kind,
        claim_namespace="search-prod",
        claim_name="support",
        control_plane="embedded",
        request_id="1c9b7f6e-33a1-4be7-8a54-1f8ad0b6a0d3",
        base_url="https://portal.example.org",
        tags=(files.title,),
        api=files.catalog.api or "",
        system="system:default/search.prod",
        claim=ClaimAt(
            files.api_version, files.kind, files.plural, "search-prod", "support", files.composition, cluster="prod"
        ),
        links=(("Change it", "https://backstage.example.org/create/templates/default/portal-x-change"),),
    )
    return dataclasses.replace(plain, **more)


MODEL_URL = {"url": "https://support.search-prod.eu-central-1.example.org/v1"}
DATABASE = {"host": "support.search-prod.svc", "port": 6333, "scheme": "http"}
COST = {"monthly": "8614.00", "currency": "EUR"}
CASES: dict[str, dict[str, Any]] = {
    "modeldeployments/pending": {"phase": "Pending", **COST},
    "modeldeployments/ready": {"phase": "Ready", **COST, "endpoint": MODEL_URL, "title": "サポート 💬"},
    "modeldeployments/degraded": {
        "phase": "Degraded",
        "endpoint": MODEL_URL,
        "message": "Synced=False ReconcileError: cannot compose resources: {{7*7}} <script>",
    },
    "modeldeployments/stuck": {
        "phase": "Stuck",
        "message": "Deleting since 12:00; finalizer foregroundDeletion holds it.",
    },
    "vectordatabases/provisioning": {"phase": "Provisioning", **COST},
    "vectordatabases/ready": {"phase": "Ready", **COST, "endpoint": DATABASE},
    "vectordatabases/deleting": {"phase": "Deleting", "endpoint": DATABASE},
}


SYSTEM = SystemFacts(
    team="search",
    team_title="Search",
    environment="prod",
    environment_title="Production",
    base_url="https://portal.example.org",
)
APIS = ("modeldeployments/pending", "modeldeployments/ready")
MORE = {"system": lambda: render_system(SYSTEM)} | {
    f"{case}-api": lambda case=case: render_api(facts(case.split("/")[0], **CASES[case])) for case in APIS
}


ALL = [*CASES, *MORE]


def entity_of(case: str) -> dict[str, Any]:
    if case in MORE:
        made: dict[str, Any] = MORE[case]()
        return made
    return render_entity(facts(case.split("/")[0], **CASES[case]))


@pytest.mark.parametrize("case", ALL)
def test_an_entity_is_the_golden_one(case: str) -> None:
    assert_golden(f"entities/{case}.json", json.dumps(entity_of(case), indent=2, ensure_ascii=False) + "\n")


def test_every_golden_entity_is_made_by_a_case() -> None:
    assert golden_files("entities") == {f"entities/{case}.json" for case in ALL}


@pytest.mark.node
@pytest.mark.timeout(INSTALLING)
def test_backstage_takes_all_golden_entities() -> None:
    entities = [json.loads((FOLDER / "entities" / f"{case}.json").read_text()) for case in ALL]
    assert dict(zip(ALL, refusals(entities), strict=True)) == dict.fromkeys(ALL)


def broken(**changes: Any) -> dict[str, Any]:
    """A golden entity with one thing changed: `metadata_x=…` and `spec_x=…` inside those, others at the root."""
    entity = entity_of("modeldeployments/ready")
    for key, value in changes.items():
        inside, _, name = key.partition("_")
        (entity[inside] if name else entity)[name or inside] = value
    return entity


REFUSED = [
    ("FieldFormatEntityPolicy", broken(metadata_name="データ team"), "the kind's validator alone takes this name"),
    ("FieldFormatEntityPolicy", broken(metadata_name="x" * 64), "64 characters"),
    ("FieldFormatEntityPolicy", broken(metadata_labels={"a": "データ"}), "no label value"),
    ("FieldFormatEntityPolicy", broken(metadata_tags=["Open AI"]), "no tag"),
    ("FieldFormatEntityPolicy", broken(metadata_links=[{"url": "chat.example.org"}]), "no address"),
    ("SchemaValidEntityPolicy", broken(metadata_annotations={"a": 1}), "annotations are strings"),
    ("SchemaValidEntityPolicy", broken(metadata_title=""), "an empty title"),
    ("SchemaValidEntityPolicy", broken(portal={}), "a field of our own belongs into spec or annotations"),
    ("NoForeignRootFieldsEntityPolicy", broken(relations=[]), "relations are what the catalog makes"),
    ("NoForeignRootFieldsEntityPolicy", broken(status={}), "so is the status"),
    ("KindValidator", broken(spec_owner=""), "nobody owns it"),
    ("KindValidator", broken(spec={"type": "x", "owner": "y"}), "a Component without lifecycle"),
    ("References", broken(spec_owner="group:default/"), "an owner that is no reference"),
    ("References", broken(spec_owner="search"), "an owner that is read in another way elsewhere"),
    ("References", broken(spec_system="search.prod"), "so is a System"),
    ("References", broken(metadata_annotations={}), "dropped by the catalog with a warning"),
    ("KindValidator", {**entity_of("modeldeployments/ready-api"), "spec": {"type": "openapi"}}, "an API of nobody"),
    ("KindValidator", {**entity_of("system"), "spec": {}}, "a System of nobody"),
]


@pytest.mark.node
@pytest.mark.timeout(INSTALLING)
def test_the_policies_are_really_asked() -> None:
    said = refusals([entity for _, entity, _ in REFUSED])
    for (policy, _, reason), refusal in zip(REFUSED, said, strict=True):
        assert refusal is not None, reason
        assert refusal["policy"] == policy, reason


odd = st.one_of(
    st.text(max_size=90),
    st.sampled_from(
        ["データ team", "🚀", "data_engineering_dept.", "{{7*7}}", "${{ x }}", "a/b", "..", "-", "x" * 70, ""]
    ),
)
urls = st.one_of(
    odd,
    st.from_regex(r"https?://[-a-z0-9.:@\[\]%\\]{1,20}(/[!-~]{0,20})?", fullmatch=True),
    st.sampled_from(
        ["http://1.2.3.4.5", "http://256.1.1.1", "https://xn--a", "http://0x7f.1", "http://a..b", "http://a.:1"]
    ),
)
odd_facts = st.builds(
    EntityFacts,
    **dict.fromkeys(("instance_id", "name", "title", "offering", "offering_title", "team", "environment"), odd),
    **dict.fromkeys(("phase", "claim_kind", "claim_namespace", "claim_name", "control_plane", "request_id"), odd),
    catalog_kind=st.sampled_from(["Component", "Resource"]),
    catalog_type=st.just("model-endpoint"),
    since=st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2999, 1, 1), timezones=st.just(dt.UTC)),
    base_url=st.sampled_from(["https://portal.example.org", "http://127.0.0.1:8000/"]),
    message=odd,
    endpoint=st.dictionaries(odd, urls, max_size=3),
    monthly=st.none() | odd,
    currency=odd,
    tags=st.lists(odd, max_size=4).map(tuple),
    system=st.just("system:default/search.prod"),
    claim=st.none() | st.builds(ClaimAt, odd, odd, odd, odd, odd, odd, st.sampled_from(["v1", "v2"]), odd),
)
odd_systems = st.builds(SystemFacts, odd, odd, odd, odd, st.just("https://portal.example.org/"))


@pytest.mark.node
@pytest.mark.timeout(INSTALLING)
def test_backstage_takes_what_is_made_of_odd_texts() -> None:
    batch: list[dict[str, Any]] = []
    named: dict[str, set[tuple[str, ...]]] = {}

    @settings(max_examples=400, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(odd_facts)
    def collect(made_of: EntityFacts) -> None:
        entity = render_entity(made_of)
        batch.append(json.loads(json.dumps(entity)))
        identity = (made_of.catalog_kind, made_of.name, made_of.team, made_of.environment, made_of.offering)
        named.setdefault(entity_ref(entity), set()).add(identity)
        api = render_api(dataclasses.replace(made_of, api="openai"))
        assert api is not None
        batch.append(json.loads(json.dumps(api)))

    @settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(odd_systems)
    def collect_systems(made_of: SystemFacts) -> None:
        entity = render_system(made_of)
        batch.append(json.loads(json.dumps(entity)))
        named.setdefault(entity_ref(entity), set()).add((made_of.team, made_of.environment))

    collect()
    collect_systems()
    said = refusals(batch)
    assert [(entity, refusal) for entity, refusal in zip(batch, said, strict=True) if refusal] == []
    assert [same for same in named.values() if len(same) > 1] == []
    assert len(named) > 50, "hypothesis made hardly any"


def test_the_lock_pins_every_package_and_names_no_registry() -> None:
    lock = json.loads((PACKAGE / "package-lock.json").read_text())
    packages = {path: package for path, package in lock["packages"].items() if path}
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    assert not [path for path, package in packages.items() if "resolved" in package]
    assert (PACKAGE / ".npmrc").read_text() == "omit-lockfile-registry-resolved=true\n"
    manifest = json.loads((PACKAGE / "package.json").read_text())
    assert manifest["dependencies"] == {
        "@backstage/catalog-model": packages["node_modules/@backstage/catalog-model"]["version"]
    }
