"""The generated admission policies on a real API server: who is refused what, and who goes on as before."""

from __future__ import annotations

import copy
import datetime as dt
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from portal.rendering.admission import Actors, admission_policy
from portal.rendering.approval_token import CEILINGS
from portal.rendering.claim import MANAGED_BY
from portal.rendering.names import ANNOTATION_PREFIX
from portal.running.crossplane.controllers import CORE
from portal.running.crossplane.kube import Api, Object, condition, eventually, is_true
from portal.running.crossplane.layout import CONTROL_PLANE
from portal.running.crossplane.plan import LocalControlPlane
from portal.running.crossplane.servers import CONTROLLER_MANAGER
from portal.running.errors import ApiError, NotReady
from tests.contract.approvals import approve
from tests.contract.claims import claim_of, offering_named
from tests.e2e.remains import Clusters

pytestmark = pytest.mark.usefixtures("approving_key")
URL = "https://portal.example.org"
NAMESPACE = "admission"
ACTORS = Actors(crossplane=(CORE,), controllers=(CONTROLLER_MANAGER,))
SOON, LATER = 30.0, 60.0  # seconds
MODEL, DATABASE = "modeldeployments/llama-3.1-8b-l4", "vectordatabases/qdrant-5m-1536"
MERGE = "application/merge-patch+json"


class Person:
    """Somebody at the API server, with the rights that RBAC gives them."""

    def __init__(self, server: Any, user: str, *groups: str) -> None:
        self.api = Api(server)
        names = [("Impersonate-User", user), *(("Impersonate-Group", g) for g in (*groups, "system:authenticated"))]
        self.api._http.headers = type(self.api._http.headers)([*self.api._http.headers.multi_items(), *names])

    def create(self, claim: Object, **parameters: str) -> Object:
        path = self.api.path(claim).rsplit("/", 1)[0]
        return self.api.call("POST", path, json.dumps(claim), parameters=parameters)

    def patch(self, claim: Object, change: Object) -> Object:
        return self.api.call("PATCH", self.api.path(claim), json.dumps(change), MERGE)

    def delete(self, claim: Object) -> None:
        self.api.call("DELETE", self.api.path(claim), parameters={"propagationPolicy": "Foreground"})


@pytest.fixture(scope="module")
def administrator(clusters: Clusters) -> Api:
    return clusters.apis[CONTROL_PLANE]


@pytest.fixture(scope="module")
def people(plane: LocalControlPlane, administrator: Api) -> dict[str, Person]:
    """A developer who may edit claims, and a platform admin; both by RBAC alone."""
    meta = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "test-admission"}}
    rule = {"apiGroups": ["aiplatform.example.org"], "resources": ["*"], "verbs": ["*"]}
    administrator.apply({**meta, "kind": "ClusterRole", "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test-admission"}
    groups = [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}
        for name in ("developers", "platform-admins")
    ]
    administrator.apply({**meta, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": groups})
    server = plane.servers[CONTROL_PLANE]
    return {
        "developer": Person(server, "dana", "developers"),
        "admin": Person(server, "grace", "platform-admins"),
    }


def policies(**options: Any) -> list[Object]:
    return [
        each
        for name in ("modeldeployments", "vectordatabases")
        for each in admission_policy(offering_named(name), ACTORS, URL, **options)
    ]


@pytest.fixture(scope="module", autouse=True)
def enforced(administrator: Api, people: dict[str, Person]) -> Iterator[None]:
    """The policies, in force; and taken away again: others use this control plane too."""
    for name in (NAMESPACE, f"{NAMESPACE}-ends"):
        administrator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for each in policies():
        administrator.apply(each)
    probes = [
        partial(refusal, partial(people["developer"].create, in_namespace(e, "probe"), dryRun="All"))
        for e in (MODEL, DATABASE)
    ]
    for probe in probes:
        eventually("the policies are in force", lambda probe=probe: probe() is not None, SOON)  # type: ignore[misc]  # bound now
    yield
    for each in policies():
        administrator.delete(each)
    eventually("they are not any more", lambda: all(probe() is None for probe in probes), SOON)


def in_namespace(example: str, name: str = "", namespace: str = NAMESPACE, **spec: Any) -> Object:
    """An example's claim there, with its approval."""
    claim = copy.deepcopy(claim_of(example))
    claim["metadata"]["namespace"] = namespace
    claim["metadata"]["name"] = name or claim["metadata"]["name"]
    claim["spec"] = {**claim["spec"], **spec}
    return approve(claim, dt.datetime.now(dt.UTC))


def refusal(action: Callable[[], Any]) -> str | None:
    """The message of a refusal by a policy; None when it went through."""
    try:
        action()
    except ApiError as error:
        assert error.status == 403, error
        assert "ValidatingAdmissionPolicy" in str(error), error
        return str(error)
    return None


def applied(portal: Api, administrator: Api, example: str, name: str) -> Object:
    """A claim as the portal delivers it, with the revision that there is."""
    claim = in_namespace(example, name)
    composition = claim["spec"]["crossplane"]["compositionRef"]["name"]
    (revision,) = (
        item["metadata"]["name"]
        for item in portal.items("apiextensions.crossplane.io/v1", "CompositionRevision")
        if item["metadata"]["labels"]["crossplane.io/composition-name"] == composition
    )
    claim["spec"]["crossplane"]["compositionRevisionRef"]["name"] = revision
    portal.apply(claim, manager="portal")
    return claim


def current(api: Api, claim: Object) -> Object | None:
    return api.get(claim["apiVersion"], claim["kind"], claim["metadata"]["name"], claim["metadata"]["namespace"])


def ready(api: Api, claim: Object) -> Object:
    """Once it is, at its newest generation."""

    def looked() -> Object | None:
        found = current(api, claim)
        newest = (found or {}).get("metadata", {}).get("generation")
        return found if is_true(found, "Ready") and condition(found, "Ready")["observedGeneration"] == newest else None

    try:
        return eventually("Ready", looked, LATER)
    except NotReady:
        print(json.dumps(current(api, claim), indent=1))
        raise


@pytest.fixture(scope="module")
def database(portal: Api, administrator: Api) -> Object:
    """A claim of the portal's, which the core has made Ready while the policies are in force."""
    return ready(portal, applied(portal, administrator, DATABASE, "documents"))


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", [MODEL, DATABASE])
def test_a_developer_creates_nothing_and_is_told_where_to_ask(
    people: dict[str, Person], portal: Api, example: str
) -> None:
    claim = in_namespace(example, "direct")
    said = refusal(partial(people["developer"].create, claim))
    assert said is not None
    assert f"{URL}/offerings/{example.split('/')[0]}/" in said
    assert "is requested in the portal" in said
    assert current(portal, claim) is None


def mark(kind: str, key: str, value: str | None) -> Object:
    return {"metadata": {kind: {key: value}}}


REFUSED: list[tuple[str, Object, str, str]] = [
    ("developer", {"spec": {"regions": ["eu-central"]}}, "changes by a request", "a spec is the portal's"),
    ("developer", {"spec": {"vectors": 50_000_000}}, "this takes 430 of vectordb.memory_gib; approved: ", "above"),
    ("admin", {"spec": {"vectors": 50_000_000}}, "approved: vectordb.memory_gib=43. Ask there", "nor may an admin"),
    ("admin", {"spec": {"vectors": 5_100_000}}, "this takes 44 of vectordb.memory_gib", "not by one GiB"),
    (
        "admin",
        {"spec": {"vectors": 50_000_000}, **mark("annotations", CEILINGS, "vectordb.memory_gib=900")},
        "approved: vectordb.memory_gib=43",
        "ceilings are those that were there before",
    ),
    ("developer", {"spec": {"crossplane": {"compositionUpdatePolicy": "Automatic"}}}, "changes by a request", "pinned"),
    ("developer", mark("labels", MANAGED_BY, None), "are the portal's", "whose it is"),
    ("developer", mark("annotations", CEILINGS, "vectordb.memory_gib=900"), "are the portal's", "its ceilings"),
    ("developer", mark("annotations", ANNOTATION_PREFIX + "new", "x"), "are the portal's", "nor another one"),
    ("developer", mark("annotations", "crossplane.io/paused", "true"), "are Crossplane's", "it would hide drift"),
    ("developer", {"metadata": {"finalizers": []}}, "leaves behind", "it would orphan what was composed"),
]


@pytest.mark.parametrize(("who", "change", "message", "reason"), REFUSED, ids=[case[3] for case in REFUSED])
def test_an_edit_is_refused(
    people: dict[str, Person], portal: Api, database: Object, who: str, change: Object, message: str, reason: str
) -> None:
    before = current(portal, database)
    said = refusal(partial(people[who].patch, database, change))
    assert said is not None, reason
    assert message in said
    assert URL in said
    after = current(portal, database)
    assert before is not None and after is not None
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])


def test_a_developer_does_not_delete_what_the_portal_delivered(
    people: dict[str, Person], portal: Api, database: Object
) -> None:
    said = refusal(partial(people["developer"].delete, database))
    assert said is not None and "which gives its quota back" in said
    found = current(portal, database)
    assert found is not None and "deletionTimestamp" not in found["metadata"]


# --- goes on ----------------------------------------------------------------------------------------------------------


def test_the_portal_applies_and_the_core_reconciles(administrator: Api, portal: Api, database: Object) -> None:
    """Another spec with another approval, as a change is delivered."""
    wanted = in_namespace(DATABASE, "documents", vectors=4_500_000)
    pinned = database["spec"]["crossplane"]["compositionRevisionRef"]["name"]
    wanted["spec"]["crossplane"]["compositionRevisionRef"]["name"] = pinned
    portal.apply(wanted, manager="portal")
    # The function may answer once more for the claim as it was, while the core's cache shows it that.
    eventually("it has its new size", lambda: ready(portal, wanted)["status"]["memoryGiB"] == 39, LATER)
    found = ready(portal, wanted)
    assert found["metadata"]["annotations"][CEILINGS] == "vectordb.memory_gib=39"


def test_people_mark_claims_with_what_is_theirs(people: dict[str, Person], database: Object) -> None:
    found = people["developer"].patch(database, mark("labels", "example.com/cost-centre", "42"))
    assert found["metadata"]["labels"]["example.com/cost-centre"] == "42"


def test_an_admin_edits_within_what_was_approved(people: dict[str, Person], portal: Api, database: Object) -> None:
    """The door lets it in; the function still composes what was approved, and says so."""
    for vectors, reason in ((4_000_000, "ApprovalExceeded"), (4_500_000, "Approved")):
        people["admin"].patch(database, {"spec": {"vectors": vectors}})
        told = lambda reason=reason: condition(current(portal, database), "Approved").get("reason") == reason  # noqa: E731
        eventually(reason, told, LATER)
    assert ready(portal, database)["status"]["memoryGiB"] == 39


def test_an_autoscaler_scales_what_was_composed(clusters: Clusters, portal: Api, database: Object) -> None:
    """It acts on the workload cluster, where no policy of the portal's is."""
    placed = ready(portal, database)["status"]["placement"]["cluster"]
    workloads = clusters.apis[placed]
    found = clusters.workload(placed, "apps/v1", "StatefulSet", NAMESPACE)
    scaled = workloads.call("PATCH", workloads.path(found) + "/scale", json.dumps({"spec": {"replicas": 2}}), MERGE)
    assert scaled["spec"]["replicas"] == 2
    assert is_true(current(portal, database), "Synced")


def test_what_a_dead_owner_leaves_is_collected(people: dict[str, Person], administrator: Api, portal: Api) -> None:
    owner = administrator.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": NAMESPACE}}
    )
    claim = in_namespace(MODEL, "owned", regions=["nowhere"])
    meta = owner["metadata"]
    claim["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
    ]
    claim["spec"].pop("crossplane")
    people["admin"].create(claim)
    administrator.delete(owner)
    eventually("it is collected", lambda: current(portal, claim) is None, LATER)


def test_a_namespace_is_deleted_with_what_is_in_it(people: dict[str, Person], administrator: Api, portal: Api) -> None:
    claim = in_namespace(MODEL, "inside", f"{NAMESPACE}-ends", regions=["nowhere"])
    claim["spec"].pop("crossplane")
    people["admin"].create(claim)
    administrator.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{NAMESPACE}-ends"}})
    gone = lambda: administrator.get("v1", "Namespace", f"{NAMESPACE}-ends") is None  # noqa: E731
    eventually("the namespace is gone", gone, LATER)


def test_the_portal_deletes(portal: Api, database: Object) -> None:
    portal.delete(database, "Foreground")
    eventually("gone", lambda: current(portal, database) is None, LATER)


# --- warn -------------------------------------------------------------------------------------------------------------


def test_a_platform_that_is_just_starting_is_warned(people: dict[str, Person], administrator: Api) -> None:
    for each in policies(warn=True):
        administrator.apply(each)
    developer = people["developer"]
    claim = in_namespace(MODEL, "warned")
    eventually("it is let through", lambda: developer.create(claim, dryRun="All"), SOON)
    path = developer.api.path(claim).rsplit("/", 1)[0]
    answer = developer.api._http.post(path, content=json.dumps(claim), params={"dryRun": "All"})
    assert answer.status_code == 201
    assert f"{URL}/offerings/modeldeployments/" in answer.headers["Warning"]
