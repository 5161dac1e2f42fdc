"""Offerings read from files: what is refused at load, and what a spec takes, costs and may be called."""

from __future__ import annotations

import copy
import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.domain.cel import CelError
from portal.domain.offerings import MAX_AMOUNT, MAX_LABEL, Offering, OfferingError, PriceKey, parse_offering
from portal.domain.strict_yaml import dump, parse

APIS = Path(__file__).parents[2] / "crossplane" / "apis"
SHIPPED = sorted(file.parent for file in APIS.glob("*/offering.yaml"))

DEFINITION = """
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: notebooks.test.example.org}
spec:
  scope: Namespaced
  group: test.example.org
  names: {kind: Notebook, plural: notebooks}
  versions:
    - name: v1alpha1
      served: true
      referenceable: false
      schema: {openAPIV3Schema: {type: object, properties: {spec: {}}}}
    - name: v1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [class, gpus]
              properties:
                class: {type: string, default: l4}
                gpus: {type: integer, minimum: -9, maximum: 9007199254740993}
                replicas: {type: integer, default: 1}
                disk: {type: object, required: [gib], properties: {gib: {type: integer}}}
                regions: {type: array, items: {type: string}}
                extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status:
              type: object
              properties:
                endpoint: {type: object, properties: {url: {type: string}}}
                hosts: {type: array, items: {type: string}}
                ports: {type: object, additionalProperties: {type: integer}}
"""
GOVERNANCE = """
apiVersion: portal.aiplatform.example.org/v1
kind: Offering
metadata: {name: notebooks}
spec:
  title: Notebook
  description: A notebook with a GPU.
  owner: platform-team
  composition: notebooks-standard
  catalog: {kind: Component, type: notebook}
  naming: {maxLength: 30, derived: ["{name}-cluster-{namespace}"]}
  endpoint: {url: /status/endpoint/url}
  metering:
    - {dimension: '"gpu." + spec.class', amount: spec.gpus * spec.replicas}
    - {dimension: '"disk.gib"', amount: 'has(spec.disk) ? spec.disk.gib : 0'}
  prices:
    - {sku: '"gpu." + spec.class', quantity: spec.gpus * spec.replicas}
  regions: spec.regions
  deprecation: {message: Ask for a workspace instead., after: 2027-01-31}
"""


def load(definition: str = DEFINITION, governance: str = GOVERNANCE, folder: str = "notebooks") -> Offering:
    return parse_offering(folder, definition, governance)


NOTEBOOK = load()


def changed(text: str, path: str, value: Any) -> str:
    """The document with the value at a JSON pointer replaced, or removed when `value` is `...`."""
    document = parse(text)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")[1:]]
    holder = document
    for step in steps:
        holder = holder[step]
    if value is ...:
        del holder[last]
    elif isinstance(holder, list) and last == len(holder):
        holder.append(value)
    else:
        holder[last] = value
    return dump(document)


def test_what_the_files_say() -> None:
    assert (NOTEBOOK.name, NOTEBOOK.plural, NOTEBOOK.kind) == ("notebooks", "notebooks", "Notebook")
    assert NOTEBOOK.api_version == "test.example.org/v1"
    assert NOTEBOOK.composition == "notebooks-standard"
    assert (NOTEBOOK.catalog.kind, NOTEBOOK.catalog.type, NOTEBOOK.catalog.lifecycle) == (
        "Component",
        "notebook",
        "production",
    )
    assert NOTEBOOK.endpoint == {"url": "/status/endpoint/url"}
    assert NOTEBOOK.deprecation is not None
    assert NOTEBOOK.deprecation.after == dt.date(2027, 1, 31)
    assert set(NOTEBOOK.spec_schema["properties"]) >= {"class", "gpus"}


def test_the_digest_covers_both_files_byte_by_byte() -> None:
    digests = {load().digest, load(DEFINITION + "\n").digest, load(governance=GOVERNANCE + "\n").digest}
    assert len(digests) == 3
    assert load().digest == NOTEBOOK.digest
    assert len(NOTEBOOK.digest) == 64


def test_a_v1_definition_with_claim_names_is_claimed_by_those() -> None:
    definition = parse(DEFINITION)
    definition["apiVersion"] = "apiextensions.crossplane.io/v1"
    definition["spec"] |= {"names": {"kind": "XNotebook", "plural": "xnotebooks"}}
    definition["spec"] |= {"claimNames": {"kind": "Notebook", "plural": "notebooks"}}
    definition["metadata"]["name"] = "xnotebooks.test.example.org"
    del definition["spec"]["scope"]
    offering = load(dump(definition))
    assert (offering.kind, offering.plural) == ("Notebook", "notebooks")


SPEC = "/spec/versions/1/schema/openAPIV3Schema/properties/spec"
BAD_DEFINITIONS = [
    ("/apiVersion", "apiextensions.crossplane.io/v3", "/apiVersion", "not one of", "an API version that is not served"),
    ("/kind", "CustomResourceDefinition", "/kind", "not one of", "a CRD is no XRD"),
    ("/metadata/name", "x.test.example.org", "/metadata/name", "must be notebooks.test.example.org", "its own name"),
    ("/spec/scope", "Cluster", "/spec/scope", "use Namespaced", "a team owns namespaced things only"),
    ("/spec/names/plural", "books", "/spec/names/plural", "not the folder's name, notebooks", "plural is the folder"),
    ("/spec/names/kind", "notebook", "/spec/names/kind", "does not match", "a kind's form"),
    ("/spec/names", ..., "/spec/names", "required", "no names"),
    ("/spec/versions", [], "/spec/versions", "at least 1", "no version"),
    ("/spec/versions/1/served", False, "/spec/versions", "both served and referenceable", "none that is both"),
    ("/spec/versions/1/served", "true", "/spec/versions/1/served", "true or false", "a text for a bool"),
    ("/spec/versions/1/schema", ..., "/spec/versions/1/schema", "required", "no schema"),
    (f"{SPEC}/type", "string", f"{SPEC}/type", "must be object", "spec is an object"),
    (f"{SPEC}/properties/class/type", ..., f"{SPEC}/properties/class", "type is missing", "not structural"),
    (f"{SPEC}/properties/class/default", 1, f"{SPEC}/properties/class/default", "does not fit", "a default"),
    (
        f"{SPEC}/properties/crossplane",
        {"type": "object"},
        f"{SPEC}/properties/crossplane",
        "itself",
        "a field of the core",
    ),
    (
        f"{SPEC}/x-kubernetes-validations",
        [{"rule": "self.typo > 1"}],
        f"{SPEC}/x-kubernetes-validations/0",
        "self has no field 'typo'",
        "a CEL rule of the schema",
    ),
    (
        "/spec/versions/1/schema/openAPIV3Schema/x-kubernetes-validations",
        [{"rule": "true"}],
        "/spec/versions/1/schema/openAPIV3Schema/x-kubernetes-validations",
        "put them at spec",
        "a rule at the root would go unchecked",
    ),
    (
        "/spec/versions/1/schema/openAPIV3Schema/properties/status/properties/hosts/items",
        ...,
        "/spec/versions/1/schema/openAPIV3Schema/properties/status/properties/hosts",
        "needs items",
        "status is structural too",
    ),
]


@pytest.mark.parametrize(("path", "value", "where", "part", "reason"), BAD_DEFINITIONS)
def test_a_wrong_definition_names_file_path_and_reason(
    path: str, value: Any, where: str, part: str, reason: str
) -> None:
    with pytest.raises(OfferingError) as caught:
        load(changed(DEFINITION, path, value))
    reasons = [problem.reason for problem in caught.value.problems if problem[:2] == ("definition.yaml", where)]
    assert any(part in told for told in reasons), reason
    assert f"definition.yaml {where}: " in str(caught.value)


BAD_GOVERNANCE = [
    ("/apiVersion", "v1", "/apiVersion", "not one of", "another API"),
    ("/metadata/name", "books", "/metadata/name", "not the folder's name", "its name is the folder"),
    ("/spec/titel", "x", "/spec/titel", "did you mean 'title'?", "an unknown field"),
    ("/spec/title", ..., "/spec/title", "required", "a required field"),
    ("/spec/metering", ..., "/spec/metering", "required", "metering is said, even if it is nothing"),
    ("/spec/prices", ..., "/spec/prices", "required", "prices too: an unknown price is never free"),
    ("/spec/catalog/kind", "User", "/spec/catalog/kind", "not one of", "a catalog kind"),
    ("/spec/catalog/api", "soap", "/spec/catalog/api", "not one of", "an API that nobody can describe"),
    ("/spec/naming/maxLength", 64, "/spec/naming/maxLength", "from 1 to 63", "longer than a label"),
    ("/spec/naming/derived/0", "{namespace}-x", "/spec/naming/derived/0", "no {name} in it", "derives nothing"),
    ("/spec/naming/derived/0", "{name}.{team}", "/spec/naming/derived/0", "{name} and {namespace} only", "placeholder"),
    ("/spec/naming/derived/0", "{name}" + "x" * 62, "/spec/naming/derived/0", "no room", "can never fit"),
    ("/spec/endpoint/url", "/status/endpoint/uri", "/spec/endpoint/url", "not in the status schema", "leads nowhere"),
    ("/spec/endpoint/url", "/spec/class", "/spec/endpoint/url", "does not match", "not in status"),
    ("/spec/regions", "spec.region", "/spec/regions", "spec has no field 'region'", "CEL: a wrong path"),
    ("/spec/regions", "spec.class", "/spec/regions", "must be list(string)", "CEL: the wrong type"),
    (
        "/spec/metering/0/amount",
        "spec.gpus * spec.replica",
        "/spec/metering/0/amount",
        "no field 'replica'",
        "CEL path",
    ),
    ("/spec/metering/0/amount", "1.5", "/spec/metering/0/amount", "must be int", "CEL: a double"),
    (
        "/spec/metering/0/amount",
        "has(spec.typo) ? 1 : 0",
        "/spec/metering/0/amount",
        "no field 'typo'",
        "CEL: in has()",
    ),
    ("/spec/metering/0/dimension", "1", "/spec/metering/0/dimension", "must be string", "CEL: no text"),
    ("/spec/metering/1/amount", "spec.extra.gib", "/spec/metering/1/amount", "free form", "CEL: free form"),
    ("/spec/prices/0/sku", "gpu", "/spec/prices/0/sku", "unknown name 'gpu'", "CEL: a text without quotes"),
    ("/spec/prices/0/quantity", "request.x", "/spec/prices/0/quantity", "unknown name", "CEL: only spec is there"),
    ("/spec/deprecation/after", "soon", "/spec/deprecation/after", "no valid date", "a date"),
]


@pytest.mark.parametrize(("path", "value", "where", "part", "reason"), BAD_GOVERNANCE)
def test_a_wrong_governance_file_names_file_path_and_reason(
    path: str, value: Any, where: str, part: str, reason: str
) -> None:
    with pytest.raises(OfferingError) as caught:
        load(governance=changed(GOVERNANCE, path, value))
    problem = caught.value.problems[0]
    assert (problem.file, problem.path) == ("offering.yaml", where), reason
    assert part in problem.reason, reason


@pytest.mark.parametrize(
    ("path", "value", "part", "reason"),
    [
        ("/spec/catalog/kind", "Resource", "can't be provided by a Resource", "Backstage's Resources provide no APIs"),
        ("/spec/endpoint", {"host": "/status/endpoint/url"}, "name it as `url`", "its definition has to say where"),
        ("/spec/endpoint", ..., "name it as `url`", "no endpoint at all"),
    ],
)
def test_an_api_needs_a_component_and_an_address(path: str, value: Any, part: str, reason: str) -> None:
    speaking = changed(GOVERNANCE, "/spec/catalog/api", "openai")
    assert load(governance=speaking).catalog.api == "openai"
    with pytest.raises(OfferingError) as caught:
        load(governance=changed(speaking, path, value))
    [problem] = caught.value.problems
    assert (problem.file, problem.path) == ("offering.yaml", "/spec/catalog/api"), reason
    assert part in problem.reason, reason


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("/status/hosts/0", True),
        ("/status/ports/http", True),
        ("/status/endpoint", True),
        ("/status/hosts/first", False),
        ("/status/endpoint/url/x", False),
        ("/status/", False),
    ],
)
def test_endpoint_pointers_lead_into_the_status_schema(where: str, found: bool) -> None:
    governance = changed(GOVERNANCE, "/spec/endpoint/url", where)
    if found:
        assert load(governance=governance).endpoint == {"url": where}
    else:
        with pytest.raises(OfferingError, match="not in the status schema"):
            load(governance=governance)


def test_problems_of_both_files_are_told_at_once() -> None:
    definition = changed(DEFINITION, "/metadata/name", "x")
    governance = changed(changed(GOVERNANCE, "/spec/regions", "spec.nope"), "/spec/metering/0/amount", "spec.nope")
    with pytest.raises(OfferingError) as caught:
        load(definition, governance, "notebooks")
    assert [(problem.file, problem.path) for problem in caught.value.problems] == [
        ("definition.yaml", "/metadata/name"),
        ("offering.yaml", "/spec/metering/0/amount"),
        ("offering.yaml", "/spec/regions"),
    ]


@pytest.mark.parametrize(
    ("definition", "governance", "part", "reason"),
    [
        ("a: 1\na: 2", GOVERNANCE, "definition.yaml 2:1: the key 'a' is there twice", "duplicate key"),
        (
            DEFINITION.replace("default: l4", "default: no"),
            GOVERNANCE,
            "write it in quotes",
            "readers disagree (case 9)",
        ),
        (DEFINITION, "spec: {", "offering.yaml 1:8", "no YAML"),
        (DEFINITION, "- x", "offering.yaml /: must be an object", "a list"),
        ("", "", "definition.yaml /: must be an object", "empty files"),
        (DEFINITION, "[" * 300, "levels deep", "nesting"),
    ],
)
def test_files_that_are_no_such_thing(definition: str, governance: str, part: str, reason: str) -> None:
    with pytest.raises(OfferingError) as caught:
        load(definition, governance)
    assert part in str(caught.value), reason


@pytest.mark.parametrize(
    ("spec", "measured", "keys", "reason"),
    [
        ({"gpus": 2}, {"gpu.l4": 2}, [("gpu.l4", 2)], "defaults count"),
        ({"gpus": 2, "class": "h100", "replicas": 3}, {"gpu.h100": 6}, [("gpu.h100", 6)], "the maximum"),
        ({"gpus": 0}, {}, [], "nothing is no line"),
        ({"gpus": 0, "disk": {"gib": 5}}, {"disk.gib": 5}, [], "metered and free of charge"),
        ({"gpus": MAX_AMOUNT}, {"gpu.l4": MAX_AMOUNT}, [("gpu.l4", MAX_AMOUNT)], "the most, exact"),
    ],
)
def test_what_a_spec_takes(spec: dict[str, Any], measured: dict[str, int], keys: list[Any], reason: str) -> None:
    assert NOTEBOOK.validate(spec) == [], reason
    assert NOTEBOOK.measure(spec) == measured, reason
    assert NOTEBOOK.price_keys(spec) == [PriceKey(*key) for key in keys], reason


@pytest.mark.parametrize(
    ("spec", "part", "reason"),
    [
        ({"gpus": -1}, "gpu.l4: -1 is not between 0 and", "a negative amount would free somebody's quota"),
        ({"gpus": MAX_AMOUNT + 1}, "is not between 0 and", "more than can be counted exactly"),
        ({"gpus": 2**40, "replicas": 2**40}, "overflow", "an overflow is no small number"),
    ],
)
def test_what_can_not_be_measured_is_refused(spec: dict[str, Any], part: str, reason: str) -> None:
    (problem,) = NOTEBOOK.validate(spec)
    assert problem.code == "unmeasurable"
    assert part in problem.message, reason
    with pytest.raises(CelError):
        NOTEBOOK.measure(spec)


def test_an_empty_dimension_is_refused() -> None:
    offering = load(governance=changed(GOVERNANCE, "/spec/metering/0/dimension", "spec.class"))
    with pytest.raises(CelError, match="the dimension is empty"):
        offering.measure({"gpus": 1, "class": ""})


def test_lines_of_one_dimension_add_up_and_do_not_pass_the_most() -> None:
    line = {"dimension": '"gpu." + spec.class', "amount": "spec.gpus"}
    offering = load(governance=changed(GOVERNANCE, "/spec/metering/2", line))
    assert offering.measure({"gpus": 2, "replicas": 3}) == {"gpu.l4": 8}
    with pytest.raises(CelError, match="in all is above"):
        offering.measure({"gpus": MAX_AMOUNT})


def test_regions() -> None:
    assert NOTEBOOK.regions({"gpus": 1}) == []
    assert NOTEBOOK.regions({"gpus": 1, "regions": ["eu-west", "us-east"]}) == ["eu-west", "us-east"]
    assert load(governance=changed(GOVERNANCE, "/spec/regions", None)).regions({"gpus": 1, "regions": ["a"]}) == []


def test_an_invalid_spec_is_told_and_not_measured() -> None:
    assert [problem.pointer for problem in NOTEBOOK.validate({"gpus": "1", "x": 1})] == ["/gpus", "/x"]
    with pytest.raises(CelError, match=r"spec\.gpus"):
        NOTEBOOK.measure({"gpus": "1"})


@pytest.mark.parametrize(
    ("name", "namespace", "codes", "part", "reason"),
    [
        ("a", "ns", [], "", "the least"),
        ("chat-2", "search-dev", [], "", "usual"),
        ("a" * 30, "n" * 24, [], "", "derived name of exactly 63 (case 1)"),
        ("a" * 30, "n" * 25, ["too-long"], "Shorten the name by 1", "one more (case 1)"),
        ("a" * 31, "ns", ["too-long"], "has 31 characters, at most 30", "its own limit (case 1)"),
        ("a" * 60, "n" * 60, ["too-long", "too-long"], "at most 30", "both limits are named"),
        (
            "ibm/granite-3.1-8b-instruct",
            "ns",
            ["bad-name"],
            "for example granite-3-1-8b-instruct",
            "a model id (case 3)",
        ),
        ("2fast", "ns", ["bad-name"], "beginning with a letter", "a Service's name begins with a letter"),
        ("Chat", "ns", ["bad-name"], "for example chat", "capitals"),
        ("-a", "ns", ["bad-name"], "", "leading hyphen"),
        ("a-", "ns", ["bad-name"], "", "trailing hyphen"),
        ("a_b", "ns", ["bad-name"], "for example a-b", "underscore"),
        ("a\n", "ns", ["bad-name"], "", "a line break at the end"),
        ("", "ns", ["bad-name"], "", "empty"),
        ("データ", "ns", ["bad-name"], "", "another script (case 2)"),
        ("{{7*7}}", "ns", ["bad-name"], "'{{7*7}}'", "shown as it is (case 18)"),
        ("٣a", "ns", ["bad-name"], "", "digits of another script"),
    ],
)
def test_names(name: str, namespace: str, codes: list[str], part: str, reason: str) -> None:
    problems = NOTEBOOK.check_name(name, namespace)
    assert [problem.code for problem in problems] == codes, reason
    assert all(problem.pointer == "" for problem in problems)
    assert part in " ".join(problem.message for problem in problems), reason


@given(st.text("abc-", max_size=70), st.text("abc-", min_size=1, max_size=63))
def test_an_accepted_name_fits_everywhere(name: str, namespace: str) -> None:
    if not NOTEBOOK.check_name(name, namespace):
        assert 0 < len(name) <= NOTEBOOK.naming.max_length
        assert len(f"{name}-cluster-{namespace}") <= MAX_LABEL


@given(st.integers(0, 2**20), st.integers(0, 2**20), st.integers(0, 2**20))
def test_metering_grows_with_replicas_and_price_follows(gpus: int, fewer: int, more: int) -> None:
    low, high = ({"gpus": gpus, "replicas": count} for count in sorted((fewer, more)))
    below, above = NOTEBOOK.measure(low).get("gpu.l4", 0), NOTEBOOK.measure(high).get("gpu.l4", 0)
    assert below <= above == gpus * max(fewer, more)
    assert dict(NOTEBOOK.price_keys(high)).get("gpu.l4", 0) == above


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_a_measured_amount_is_exact_or_refused(gpus: int, replicas: int) -> None:
    try:
        measured = NOTEBOOK.measure({"gpus": gpus, "replicas": replicas}).get("gpu.l4", 0)
    except CelError:
        assert not 0 <= gpus * replicas <= MAX_AMOUNT
    else:
        assert measured == gpus * replicas


@settings(max_examples=30)
@given(st.text(max_size=200), st.sampled_from([DEFINITION, GOVERNANCE]), st.integers(0, 1500), st.integers(0, 40))
def test_any_file_is_read_or_refused(noise: str, text: str, start: int, length: int) -> None:
    broken = text[:start] + noise[:20] + text[start + length :]
    for definition, governance in ((broken, GOVERNANCE), (DEFINITION, broken), (noise, noise)):
        try:
            load(definition, governance)
        except OfferingError as error:
            assert error.problems


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_shipped_offerings_load_and_take_their_examples(folder: Path) -> None:
    texts = [(folder / name).read_text(encoding="utf-8") for name in ("definition.yaml", "offering.yaml")]
    offering = parse_offering(folder.name, *texts)
    examples = sorted(folder.glob("examples/*.yaml"))
    assert examples, "an offering shows how it is asked for"
    for example in examples:
        claim = parse(example.read_text(encoding="utf-8"), example.name)
        before = copy.deepcopy(claim)
        assert (claim["apiVersion"], claim["kind"]) == (offering.api_version, offering.kind)
        assert offering.validate(claim["spec"]) == []
        assert offering.check_name(claim["metadata"]["name"], claim["metadata"]["namespace"]) == []
        assert offering.measure(claim["spec"])
        assert offering.price_keys(claim["spec"])
        assert claim == before


def test_no_offering_is_named_in_the_portals_code() -> None:
    """A third offering needs files, not Python."""
    portal = Path(__file__).parents[2] / "portal"
    words = {folder.name for folder in SHIPPED}
    words |= {
        parse((folder / "definition.yaml").read_text(encoding="utf-8"))["spec"]["names"]["kind"] for folder in SHIPPED
    }
    assert len(words) >= 4
    found = [
        f"{file}: {word}" for file in portal.rglob("*.py") for word in words if word in file.read_text(encoding="utf-8")
    ]
    assert found == []
