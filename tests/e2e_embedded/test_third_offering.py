"""A third offering, of files and a function of its own: from the form to Ready, into the catalog, and out again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from portal.domain import strict_yaml
from portal.rendering.names import ANNOTATION_PREFIX
from portal.running.plan import ROOT
from tests.e2e_embedded.house import House
from tests.e2e_embedded.parts import until


def notebook(name: str, cpus: int) -> dict[str, Any]:
    return {
        "kind": "Create",
        "offering": "notebookservers",
        "team": "search",
        "environment": "dev",
        "name": name,
        "spec": {"image": "scipy", "cpus": cpus},
    }


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_it_goes_the_whole_path_from_files_alone(house: House) -> None:
    offering = house.get("ada", "offerings/notebookservers/")
    assert offering["kind"] == "NotebookServer"
    assert offering["schema"]["properties"]["cpus"]["maximum"] == 32

    preview = house.call("ada", "POST", "requests/preview/", json=notebook("lab", 2)).json()
    assert (preview["outcome"], preview["quote"]["monthly"]) == ("Allowed", "15.00")
    wrong = house.call("ada", "POST", "requests/", json=notebook("lab", 33))
    assert wrong.status_code == 400
    assert [error["pointer"] for error in wrong.json()["errors"]] == ["/spec/cpus"]
    too_many = house.submit("ada", notebook("too-many", 9))
    assert too_many["state"] == "Denied"
    assert "quota-exceeded" in {reason["code"] for reason in too_many["decision"]["reasons"]}
    large = house.submit("ada", notebook("large", 6))
    assert [stage["code"] for stage in large["stages"]] == ["big-notebook"]
    assert house.call("ada", "POST", f"requests/{large['id']}/withdraw/", json={}).status_code == 200

    done = house.done(house.submit("ada", notebook("lab", 2)))
    instance = house.instance(done["instance"])
    assert instance["phase"] == "Ready"
    assert instance["endpoint"] == {"url": "https://lab.search-dev.notebooks.example.org"}
    assert instance["claim"]["spec"]["image"] == "scipy"
    assert [each["kind"] for each in instance["composed"]] == ["Object"]
    assert house.holds(instance["id"]) == (1, 1)

    until(lambda: _note(_entity(house, "lab"), "state") == "Ready", "it is in the catalog feed, Ready")
    entity = _entity(house, "lab")
    assert entity is not None
    spec = entity["spec"]
    assert (entity["kind"], spec["type"], spec["lifecycle"]) == ("Component", "notebook", "experimental")
    assert _note(entity, "endpoint-url") == instance["endpoint"]["url"]
    cursor = house.get("catalog-service", "catalog/entities/")["cursor"]

    house.delete("ada", instance["id"])
    assert house.claims("lab") == []
    assert house.rows("SELECT 1 FROM embedded_object WHERE owner_id IS NOT NULL AND name LIKE 'lab-%%'") == []
    assert house.holds(instance["id"]) == (0, 0)
    ref = f"component:{entity['metadata']['namespace']}/{entity['metadata']['name']}"
    until(lambda: _removed(house, cursor, ref), "the feed says that it was removed")
    assert _entity(house, "lab") is None


def _entity(house: House, title: str) -> dict[str, Any] | None:
    return next((entity for entity in house.entities().values() if entity["metadata"]["title"] == title), None)


def _note(entity: dict[str, Any] | None, name: str) -> str | None:
    """One of the portal's annotations."""
    annotations = entity["metadata"]["annotations"] if entity else {}
    return annotations.get(f"{ANNOTATION_PREFIX}{name}")


def _removed(house: House, cursor: str, ref: str) -> bool:
    return ref in house.get("catalog-service", "catalog/changes/", cursor=cursor)["removed"]


def names(folder: Path) -> set[str]:
    """What an offering is called in its definition."""
    file = folder / "definition.yaml"
    called = strict_yaml.parse(file.read_text(encoding="utf-8"), str(file))["spec"]["names"]
    return {called["kind"], called["plural"], called["singular"], *called.get("shortNames", [])}


def test_no_offering_is_named_in_the_portals_code() -> None:
    """Only files know which offerings there are: a name in code would be a special case."""
    folders = [path.parent for path in (ROOT / "crossplane" / "apis").glob("*/offering.yaml")]
    assert len(folders) == 2
    known = set().union(*map(names, folders))
    pattern = re.compile(rf"(?<![A-Za-z])({'|'.join(sorted(known))})(?![A-Za-z])", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "portal").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []
