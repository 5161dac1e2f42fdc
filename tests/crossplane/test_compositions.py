"""What is composed for each example on the sample fleet, against goldens.

After an intended change: UPDATE_GOLDENS=1 pytest tests/crossplane/test_compositions.py, and read the difference.
"""

import base64
import os
import re
from pathlib import Path

import pytest
import yaml
from composition_function import naming, qdrant

from tests.crossplane.samples import EXAMPLES, MODEL, QDRANT, Run, example, load, name_of, schema
from tests.crossplane.structural import errors, strict

GOLDENS = Path(__file__).parent / "goldens"


@pytest.fixture(autouse=True)
def _same_key_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one random thing, so that goldens can be compared."""
    monkeypatch.setattr(qdrant.secrets, "token_urlsafe", lambda _: "a-key-for-goldens")


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_composed_equals_golden(path: Path) -> None:
    run = Run(example(path.stem))
    outcome = run.until_composed()
    result = {
        "status": outcome.status,
        "resources": {key: composed.manifest for key, composed in sorted(outcome.resources.items())},
    }
    golden = GOLDENS / f"{path.stem}.yaml"
    if os.environ.get("UPDATE_GOLDENS") and os.environ.get("CI") != "true":
        golden.write_text(yaml.safe_dump(result, sort_keys=False, width=120), encoding="utf-8")
    assert result == load(golden)


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_a_status_is_valid_at_every_step(path: Path) -> None:
    run = Run(example(path.stem))
    declared = strict(schema(run.claim["kind"]))
    for _ in range(3):
        run.step()
        assert errors(declared, run.claim) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_calling_again_changes_nothing(path: Path) -> None:
    run = Run(example(path.stem))
    first = run.until_composed()
    for _ in range(3):
        again = run.step()
        assert {k: c.manifest for k, c in again.resources.items()} == {
            k: c.manifest for k, c in first.resources.items()
        }
        assert again.status == first.status


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_names_fit_however_long_the_claim_is_called(path: Path) -> None:
    run = Run(example(path.stem))
    run.claim["metadata"]["name"] = "n" * 80
    names = set()
    for composed in run.until_composed().resources.values():
        manifest = composed.manifest
        names.add((manifest["kind"], manifest["metadata"]["name"]))
        assert len(manifest["metadata"]["name"]) <= 63
        if manifest["kind"] == "Object":
            assert len(manifest["spec"]["forProvider"]["manifest"]["metadata"]["name"]) <= 63
    assert len(names) == len(run.observed), "two resources under one name"


@pytest.mark.parametrize(
    ("name", "limit", "expected", "reason"),
    [
        ("chat", 63, "chat", "fits: stays as it is"),
        ("n" * 63, 63, "n" * 63, "just fits"),
        ("n" * 64, 63, "n" * 54 + "-" + "ce068a19", "shortened, with a hash of all of it"),
        ("a.b", 63, "a-b-2e7336dc", "a dot is no part of a label"),
    ],
)
def test_short_names_are_stable(name: str, limit: int, expected: str, reason: str) -> None:
    short = naming.short(name, limit)
    assert len(short) <= limit
    assert short == expected, reason


def test_long_names_that_differ_at_the_end_stay_apart() -> None:
    assert naming.short("n" * 80 + "a") != naming.short("n" * 80 + "b")


def test_the_api_key_stays_and_is_the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(example(QDRANT))
    run.until_composed()
    monkeypatch.setattr(qdrant.secrets, "token_urlsafe", lambda _: "another")
    resources = run.step().resources
    here = resources["connection"].manifest["data"]["api-key"]
    there = resources["api-key"].manifest["spec"]["forProvider"]["manifest"]["data"]["api-key"]
    assert base64.b64decode(here) == base64.b64decode(there) == b"a-key-for-goldens"


def test_two_databases_have_two_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    keys = set()
    for _ in range(2):
        keys.add(Run(example(QDRANT)).until_composed().resources["connection"].manifest["data"]["api-key"])
    assert len(keys) == 2


def test_labels_of_a_claim_go_with_its_workload() -> None:
    run = Run(example(MODEL))
    run.claim["metadata"]["labels"] = {"portal.example.org/team": "search", "crossplane.io/composite": "chat"}
    service = run.until_composed().resources["llminferenceservice"].manifest["spec"]["forProvider"]["manifest"]
    assert service["metadata"]["labels"] == {"portal.example.org/team": "search"}


def test_a_highly_available_qdrant_is_three_nodes_with_two_copies() -> None:
    run = Run(example(QDRANT))
    run.claim["spec"] |= {"highAvailability": True, "precision": "int8"}
    resources = run.until_composed().resources
    spec = resources["qdrant"].manifest["spec"]["forProvider"]["manifest"]["spec"]
    container = spec["template"]["spec"]["containers"][0]
    settings = {item["name"]: item.get("value") for item in container["env"]}
    assert (spec["replicas"], settings["QDRANT__STORAGE__COLLECTION__REPLICATION_FACTOR"]) == (3, "2")
    assert settings["QDRANT__CLUSTER__ENABLED"] == "true"
    assert settings["QDRANT__STORAGE__COLLECTION__QUANTIZATION__SCALAR__TYPE"] == "int8"
    # 11 GiB twice, over three pods.
    assert container["resources"]["limits"] == {"memory": f"{22 * 1024 // 3}Mi"}
    assert container["command"][4:] == ["http://documents-0.documents-peers:6335", "documents-peers"]
    peers = resources["peers"].manifest["spec"]["forProvider"]["manifest"]
    assert (peers["metadata"]["name"], peers["spec"]["clusterIP"]) == (spec["serviceName"], "None")
    assert peers["spec"]["publishNotReadyAddresses"] is True, "peers look for each other before they are ready"


def test_no_two_databases_share_a_name_on_their_cluster() -> None:
    """One called like another's Service would take it over."""
    names: list[tuple[str, str]] = []
    for name in ("a", "a-peers", "a-qdrant", "a-key", "a-qdrant-peers"):
        run = Run(example(QDRANT))
        run.claim["metadata"]["name"] = name
        for composed in run.until_composed().resources.values():
            inner = composed.manifest.get("spec", {}).get("forProvider", {}).get("manifest")
            if inner and inner["kind"] != "Namespace":
                names.append((inner["kind"], inner["metadata"]["name"]))
            names.append((f"here: {composed.manifest['kind']}", composed.manifest["metadata"]["name"]))
    assert len(names) == len(set(names))


def test_arguments_hold_nothing_that_a_shell_would_read() -> None:
    """KServe's image gives them to `eval`. The schema lets no such character through to here."""
    run = Run(example(MODEL))
    run.claim["spec"]["model"]["quantization"] = "awq"
    service = run.until_composed().resources["llminferenceservice"].manifest["spec"]["forProvider"]["manifest"]
    args = service["spec"]["template"]["containers"][0]["args"]
    assert args == ["--max-model-len=4096", "--max-num-seqs=8", "--quantization=awq"]
    harmless = re.compile(r"[A-Za-z0-9=.:/_-]+")
    assert all(harmless.fullmatch(text) for text in [*args, *service["spec"]["model"].values()])
