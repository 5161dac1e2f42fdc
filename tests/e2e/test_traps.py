"""Each row of what Crossplane's conditions leave unsaid, on the real core: the phase, the message, the way out.

All claims are brought into their trouble first, side by side; then each row is looked at. The slowest is a function
that is down, of which the core says nothing for two minutes.
"""

from __future__ import annotations

import copy
import datetime as dt
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from portal.adapters.kubernetes import KubernetesControlPlane
from portal.domain.claim_status import Assessment, Past, assess
from portal.domain.lifecycle import InstancePhase
from portal.ports import ClaimRef
from portal.running.crossplane import install
from portal.running.crossplane.kube import Api, Object, eventually, is_true
from portal.running.crossplane.layout import CONTROL_PLANE
from portal.running.crossplane.plan import LocalControlPlane
from tests.e2e.remains import Clusters
from tests.e2e.scratch import FILES, ScratchFunction

pytestmark = pytest.mark.timeout(400)
GROUP = "aiplatform.example.org/v1alpha1"
NAMESPACE = "traps"
STUCK_AFTER = 600.0
WITHIN = 60.0
SILENT_FOR = 300.0  # the core says nothing of a function that is down for about two minutes
P = InstancePhase


def claim(name: str, composition: str = "scratchspaces-plain", kind: str = "ScratchSpace", **spec: Any) -> Object:
    machinery = {"compositionRef": {"name": composition}}
    label = {"portal.aiplatform.example.org/instance": f"trap-{name}"}
    return {
        "apiVersion": GROUP,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": label},
        "spec": {"size": 1, "crossplane": machinery, **spec},
    }


def definition(kind: str, plural: str) -> Object:
    """The scratch spaces' XRD under another name."""
    found: Object = yaml.safe_load((FILES / "definition.yaml").read_text())
    found["metadata"]["name"] = f"{plural}.aiplatform.example.org"
    found["spec"]["names"] = {"kind": kind, "plural": plural, "singular": kind.lower()}
    return found


def composition(name: str, function: str, kind: str = "ScratchSpace") -> Object:
    found: Object = yaml.safe_load((FILES / "composition-plain.yaml").read_text())
    found["metadata"]["name"] = name
    found["spec"]["compositeTypeRef"]["kind"] = kind
    found["spec"]["pipeline"][0]["functionRef"]["name"] = function
    return found


class Traps:
    """Claims in trouble, and what is made of what they say."""

    def __init__(self, plane: LocalControlPlane, admin: Api) -> None:
        self.plane = KubernetesControlPlane("crossplane", plane.kubeconfig, None)
        self.admin = admin
        self.past: dict[str, Past] = {}

    def ref(self, name: str, kind: str = "ScratchSpace", plural: str = "scratchspaces") -> ClaimRef:
        return ClaimRef(GROUP, kind, plural, NAMESPACE, name)

    def assessment(self, ref: ClaimRef) -> Assessment:
        found = self.plane.get(ref)
        return assess(found, dt.datetime.now(dt.UTC), STUCK_AFTER, self.past.get(ref.name))

    def until(self, ref: ClaimRef, wanted: Callable[[Assessment], bool], seconds: float = WITHIN) -> Assessment:
        deadline = time.monotonic() + seconds
        while not wanted(found := self.assessment(ref)):
            assert time.monotonic() < deadline, f"{ref.name}: {found}; {self.plane.get(ref)}"
            time.sleep(0.1)
        return found

    def healthy(self, name: str) -> Object:
        """A claim that is Ready, to be brought into trouble."""
        made = claim(name)
        self.plane.apply(made)
        return made

    def trouble(self, made: Object, **spec: Any) -> None:
        """A change of a claim that was Ready."""
        name = made["metadata"]["name"]
        self.until(self.ref(name), lambda a: a.phase == P.READY)
        before = self.plane.get(self.ref(name))
        assert before is not None
        changed = copy.deepcopy(made)
        changed["spec"] |= spec
        applied = self.plane.apply(changed)
        self.past[name] = Past(was_ready=True, served=before.generation, spec_generation=applied.generation)


@pytest.fixture(scope="module")
def traps(plane: LocalControlPlane, clusters: Clusters, scratch: ScratchFunction) -> Iterator[Traps]:
    admin = clusters.apis[CONTROL_PLANE]
    found = Traps(plane, admin)
    found.plane.ensure_namespace(NAMESPACE, create=True, labels={})
    _kinds_in_trouble(admin, scratch)
    late, broken, paused = (found.healthy(name) for name in ("turned-fatal", "turned-invalid", "paused"))
    unheard = found.healthy("unheard")
    found.plane.apply(claim("never", behave="fatal"))
    found.plane.apply(claim("custom", behave="custom"))
    found.plane.apply(claim("incapable", "scratchspaces-incapable"))
    found.plane.apply(claim("waiting", behave="waiting"))
    found.plane.apply(_kind(claim("orphan"), "OrphanSpace"))
    found.trouble(late, behave="fatal", size=2)
    found.trouble(broken, behave="invalid")
    found.until(found.ref("paused"), lambda a: a.phase == P.READY)
    head = {key: paused[key] for key in ("apiVersion", "kind")}
    meta = {"name": "paused", "namespace": NAMESPACE, "annotations": {"crossplane.io/paused": "true"}}
    admin.apply({**head, "metadata": meta}, manager="somebody")
    found.plane.apply({**paused, "spec": {**paused["spec"], "size": 2}})
    found.trouble(unheard, size=2, crossplane={"compositionRef": {"name": "scratchspaces-mute"}})
    yield found
    for item in admin.items(GROUP, "ScratchSpace", NAMESPACE):
        admin.delete(item)


def _kind(made: Object, kind: str) -> Object:
    return {**made, "kind": kind}


def _kinds_in_trouble(admin: Api, scratch: ScratchFunction) -> None:
    """A function that nobody listens for, one without the capability, and a kind without a Composition."""
    install.function(admin, "dns:///localhost:1", "mute-function")
    install.function(admin, scratch.endpoint, "incapable-function")
    revision = {"apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision"}
    status = {"endpoint": scratch.endpoint, "capabilities": ["operation"]}
    admin.apply({**revision, "metadata": {"name": "incapable-function"}, "status": status}, status=True)
    admin.apply(composition("scratchspaces-mute", "mute-function"))
    admin.apply(composition("scratchspaces-incapable", "incapable-function"))
    admin.apply(definition("OrphanSpace", "orphanspaces"))
    for plural in ("orphanspaces", "oldspaces"):
        admin.apply(_rights(plural))
    name = "orphanspaces.aiplatform.example.org"
    there = lambda: is_true(admin.get(install.XRD, "CompositeResourceDefinition", name), "Established")  # noqa: E731
    eventually("served", there, WITHIN)


def _rights(plural: str) -> Object:
    """What lets the portal see a further kind."""
    labels = {"aiplatform.example.org/aggregate-to-portal": "true"}
    rule: Object = {"apiGroups": ["aiplatform.example.org"], "resources": [plural]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"aiplatform-portal-{plural}", "labels": labels},
        "rules": [{**rule, "verbs": ["get", "list", "watch", "create", "patch", "delete"]}],
    }


ROWS: list[tuple[str, str, InstancePhase, tuple[str, ...], str]] = [
    ("never", "ScratchSpace", P.PROVISIONING, ("not ready yet", "refuses"), "a first failure leaves Ready absent"),
    (
        "turned-fatal",
        "ScratchSpace",
        P.DEGRADED,
        ("refuses",),
        # Of an older generation, as a rule. A core that is changed under its hands writes the new one: seen in 1 of 2.
        "Ready stays True",
    ),
    (
        "turned-invalid",
        "ScratchSpace",
        P.DEGRADED,
        ("Unsynced resources", "space"),
        "an invalid composed resource is named, and its cause is in an Event",
    ),
    ("paused", "ScratchSpace", P.DEGRADED, ("paused", "crossplane.io/paused"), "the same stale Ready when paused"),
    ("custom", "ScratchSpace", P.READY, ("Backed is False", "no backup store"), "a custom condition is told"),
    (
        "incapable",
        "ScratchSpace",
        P.PROVISIONING,
        ("missing required capabilities: composition",),
        "a function that misses the capability",
    ),
    ("waiting", "ScratchSpace", P.PROVISIONING, ("not ready yet",), "something composed is not ready"),
    ("orphan", "OrphanSpace", P.PROVISIONING, ("not ready yet", "failing"), "an XRD without a Composition"),
]


@pytest.mark.parametrize(("name", "kind", "phase", "texts", "reason"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row(traps: Traps, name: str, kind: str, phase: InstancePhase, texts: tuple[str, ...], reason: str) -> None:
    ref = traps.ref(name, kind, kind.lower() + "s")
    found = traps.until(ref, lambda a: a.phase == phase and all(text in a.message for text in texts))
    print(f"{name}: {found.phase}: {found.message}\n  -> {found.advice}")
    assert found.advice or found.phase == P.READY, reason
    assert found.condition, reason


def test_an_event_tells_the_cause_that_no_condition_has(traps: Traps) -> None:
    ref = traps.ref("turned-invalid")

    def told() -> list[str] | None:
        observed = traps.plane.get(ref)
        assert observed is not None
        return [e.message for e in traps.plane.explanations(observed) if e.type == "Warning"] or None

    messages = eventually("a warning Event", told, WITHIN)
    assert any("ConfigMap" in message for message in messages), messages


def test_a_new_claim_is_never_taken_for_one_that_changes(traps: Traps) -> None:
    """Its generation goes up while the core writes into it."""
    traps.plane.apply(claim("fresh"))
    seen: list[tuple[str, str]] = []
    generations: set[int] = set()
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline and (not seen or seen[-1][0] != P.READY):
        observed = traps.plane.get(traps.ref("fresh"))
        assert observed is not None
        generations.add(observed.generation)
        found = assess(observed, dt.datetime.now(dt.UTC), STUCK_AFTER)
        seen.append((found.phase, found.message))
    print(sorted(generations))
    assert seen[-1][0] == P.READY
    wrong = [each for each in seen if each[0] in (P.DEGRADED, P.STUCK, P.UNKNOWN, P.DELETING)]
    assert wrong == []


def test_the_claim_of_an_xrd_of_v1(traps: Traps) -> None:
    """The cause is only on the composite resource behind it."""
    xrd = definition("XOldSpace", "xoldspaces")
    xrd["apiVersion"] = "apiextensions.crossplane.io/v1"
    del xrd["spec"]["scope"]
    xrd["spec"]["claimNames"] = {"kind": "OldSpace", "plural": "oldspaces"}
    traps.admin.apply(xrd)
    traps.admin.apply(composition("xoldspaces-plain", "scratch-function", "XOldSpace"))
    name = "xoldspaces.aiplatform.example.org"
    offered = lambda: is_true(traps.admin.get(install.XRD, "CompositeResourceDefinition", name), "Offered")  # noqa: E731
    eventually("offered", offered, WITHIN)
    made = claim("old", kind="OldSpace", behave="fatal")
    made["spec"]["compositionRef"] = made["spec"].pop("crossplane")["compositionRef"]
    eventually("applied", lambda: traps.admin.apply(made, manager="portal"), WITHIN)
    ref = traps.ref("old", "OldSpace", "oldspaces")
    found = traps.until(ref, lambda a: "composite" in a.message or "XOldSpace" in a.message)
    print(f"old: {found.phase}: {found.message}\n  -> {found.advice}")
    assert found.phase == P.PROVISIONING
    assert found.advice


def test_a_function_that_is_down(traps: Traps) -> None:
    """Nothing is said for two minutes; then that nobody answered in time. What served goes on serving."""
    ref = traps.ref("unheard")
    first = traps.assessment(ref)
    assert first.phase in (P.UPDATING, P.DEGRADED), first
    found = traps.until(ref, lambda a: a.phase == P.DEGRADED and "update failing" in a.message, SILENT_FOR)
    print(found.message)
    assert "serving generation" in found.message


def test_a_deletion_that_hangs_names_who_holds_it(traps: Traps) -> None:
    traps.plane.apply(claim("held"))
    ref = traps.ref("held")
    traps.until(ref, lambda a: a.phase == P.READY)
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held-space", "namespace": NAMESPACE}}
    head["metadata"]["finalizers"] = ["example.org/backup"]  # type: ignore[index]
    traps.admin.apply(head, manager="somebody")
    observed = traps.plane.get(ref)
    assert observed is not None
    traps.plane.delete(ref, observed.uid)
    found = traps.until(ref, lambda a: a.phase == P.DELETING)
    assert "foregroundDeletion" in found.message or "finalizer" in found.message
    late = assess(traps.plane.get(ref), dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), STUCK_AFTER)
    assert late.phase == P.STUCK
    assert "held-space" in late.message, late.message
    head["metadata"]["finalizers"] = []  # type: ignore[index]
    traps.admin.apply(head, manager="somebody")
    eventually("gone", lambda: traps.plane.get(ref) is None, WITHIN)
