"""The portal's adapter on the real core: the shared suite's part that needs something that reconciles."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from portal.adapters.kubernetes import KubernetesControlPlane
from portal.ports import ClaimEvent, RetryableError
from portal.running import valkey
from portal.running.crossplane import install, probes
from portal.running.crossplane.kube import Api, eventually, is_true
from portal.running.crossplane.layout import CONTROL_PLANE
from portal.running.crossplane.plan import CLUSTERS, LocalControlPlane
from portal.running.errors import ApiError
from tests.adapters import tiny_function, widgets
from tests.adapters.suite_observe import ReconciledSuite, condition, ready
from tests.adapters.widgets import KINDS, ref, widget
from tests.e2e.remains import Clusters

pytestmark = pytest.mark.timeout(600)
# provider-kubernetes does not believe that what it made less than 30 s ago is gone, and asks again after up to 60 s.
PATIENCE = 150.0
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {
        "name": "aiplatform-portal-widgets",
        "labels": {"aiplatform.example.org/aggregate-to-portal": "true"},
    },
    "rules": [
        {
            "apiGroups": ["test.example.org"],
            "resources": ["widgets"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        }
    ],
}


@pytest.fixture(scope="module")
def widgets_kind(plane: LocalControlPlane, clusters: Clusters) -> Iterator[None]:
    """Widgets are served, and the tiny function composes them onto a workload cluster."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(Path(tiny_function.__file__)), "--address", f"localhost:{port}"]
    command += ["--tls-certs-dir", str(plane.layout.function_tls), "--provider-config", CLUSTERS[0]]
    process = subprocess.Popen(valkey.launch_command(command), stdin=subprocess.DEVNULL)
    try:
        eventually("the tiny function listens", lambda: probes.accepts(port), 30)
        _install(clusters.apis[CONTROL_PLANE], f"dns:///localhost:{port}")
        yield
    finally:
        process.kill()
        process.wait()


def _install(admin: Api, endpoint: str) -> None:
    install.function(admin, endpoint, "tiny")
    for manifest in (ROLE, widgets.WIDGET_XRD, widgets.composition("widgets", "Widget")):
        admin.apply(manifest)
    name = widgets.WIDGET_XRD["metadata"]["name"]

    def established() -> bool:
        return is_true(admin.get(install.XRD, "CompositeResourceDefinition", name), "Established")

    eventually("Widgets are served", established, 60)


@pytest.fixture
def controlled(widgets_kind: None, plane: LocalControlPlane, clusters: Clusters) -> Iterator[KubernetesControlPlane]:
    """The adapter with the portal's rights; each test's claims are gone when the next begins.

    Claims of one name that come and go quickly open the core's circuit breaker for that name: tests use their own.
    """
    made = KubernetesControlPlane("crossplane", plane.kubeconfig)
    made.ensure_namespace(widgets.NAMESPACE, create=True, labels={})
    eventually("the role is summed up", partial(_allowed, made), 30)
    yield made
    _force_away(clusters.apis[CONTROL_PLANE])


def _allowed(made: KubernetesControlPlane) -> bool:
    try:
        made.dry_run(widget())
    except RetryableError:
        return False
    return True


def _force_away(admin: Api) -> None:
    """Without waiting for provider-kubernetes; what it made on the workload cluster is left there."""

    def gone() -> bool:
        kinds = ((widgets.API_VERSION, "Widget"), ("kubernetes.m.crossplane.io/v1alpha1", "Object"))
        found = [item for kind in kinds for item in admin.items(*kind, widgets.NAMESPACE)]
        for item in found:
            admin.delete(item)
            with contextlib.suppress(ApiError):  # it may be gone by now
                content = '{"metadata":{"finalizers":null}}'
                admin.call("PATCH", admin.path(item), content, "application/merge-patch+json")
        return not found

    eventually("the test's claims are gone", gone, 60)


class TestKubernetesReconciled(ReconciledSuite):
    window = 3.0
    patience = PATIENCE


def test_an_applied_claim_keeps_its_pinned_revision(controlled: KubernetesControlPlane) -> None:
    """With Manual nobody but the portal sets it, so that the next apply does not conflict with the core."""
    revision = controlled.composition_revision("widgets")
    machinery = {
        "compositionRef": {"name": "widgets"},
        "compositionRevisionRef": {"name": revision},
        "compositionUpdatePolicy": "Manual",
    }
    first = controlled.apply(widget("pinned", size=1, crossplane=machinery))
    eventually("Ready", partial(ready, controlled, "pinned"), PATIENCE)
    second = controlled.apply(widget("pinned", size=2, crossplane=machinery))
    assert (second.uid, second.generation > first.generation) == (first.uid, True)
    claim = controlled.get(ref("pinned"))
    assert claim is not None
    assert claim.spec["crossplane"]["compositionRevisionRef"]["name"] == revision
    owners = {each.manager for each in claim.managers if "/spec/size" in each.fields}
    assert owners == {"portal"}


def test_a_watch_from_before_sees_each_step_to_ready(controlled: KubernetesControlPlane) -> None:
    """Events come in the order of the claim's versions, with what was composed, until the claim is Ready."""
    _, cursor = controlled.list(KINDS)
    controlled.apply(widget("stepwise", size=2))
    events: list[ClaimEvent] = []
    for event in controlled.watch(KINDS, cursor, PATIENCE):
        events.append(event)
        all_ready = [(one.kind, one.ready) for one in event.claim.composed] == [("Object", True)] * 2
        if all_ready and condition(event.claim.status, "Ready") == "True":
            break
    else:
        pytest.fail(f"never Ready: {events[-1:]}")
    versions = [int(event.claim.resource_version) for event in events]
    assert versions == sorted(versions)
    assert events[0].claim.status == {}


def test_a_failing_function_is_explained(controlled: KubernetesControlPlane) -> None:
    controlled.apply(widget("refused", mode="fatal"))

    def explained() -> bool:
        claim = controlled.get(ref("refused"))
        return claim is not None and any("refuses" in each.message for each in controlled.explanations(claim))

    eventually("an Event says why", explained, 60)
