"""What the simulator reports, whom it leaves alone, and how faults look."""

from __future__ import annotations

import time
from typing import Any

import pytest

from portal.adapters.embedded.controller import Controller
from portal.adapters.embedded.functions import Functions
from portal.adapters.embedded.names import LABEL
from portal.adapters.embedded.workloads import Workload, reported
from portal.models.embedded import EmbeddedObject
from portal.ports import ControlPlane
from tests.adapters.conftest import FAULTS, FunctionProcess, wait_until
from tests.adapters.suite_observe import condition, ready
from tests.adapters.widgets import ref, widget

pytestmark = pytest.mark.slow

SIMULATED = "portal.aiplatform.example.org/simulated"
SINCE = "2026-12-01T00:00:00Z"


def manifest(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "chat", "namespace": "search-dev", "generation": 3}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


LLM = manifest("serving.kserve.io/v1alpha2", "LLMInferenceService")
POSTGRES = manifest("postgresql.cnpg.io/v1", "Cluster", instances=3)
STATEFUL = manifest("apps/v1", "StatefulSet", replicas=2)
DEPLOYMENT = manifest("apps/v1", "Deployment", replicas=2)

HEALTHY: list[tuple[dict[str, Any], str, Any]] = [
    (LLM, "url", "http://eu-1.simulated.example.org/search-dev/chat"),
    (LLM, "observedGeneration", 3),
    (POSTGRES, "phase", "Cluster in healthy state"),
    (POSTGRES, "readyInstances", 3),
    (POSTGRES, "writeService", "chat-rw"),
    (STATEFUL, "readyReplicas", 2),
    (DEPLOYMENT, "availableReplicas", 2),
]


@pytest.mark.parametrize(("applied", "field", "value"), HEALTHY)
def test_a_healthy_workload(applied: dict[str, Any], field: str, value: Any) -> None:
    report = reported(Workload(applied, "eu-1", "ok", SINCE))
    assert report.ready
    assert report.status[field] == value


@pytest.mark.parametrize(
    ("applied", "reason"),
    [
        (LLM, "Insufficient nvidia.com/gpu"),
        (POSTGRES, "Insufficient memory"),
        (STATEFUL, "ImagePullBackOff"),
        (DEPLOYMENT, "ImagePullBackOff"),
    ],
)
def test_a_failing_workload_says_why(applied: dict[str, Any], reason: str) -> None:
    report = reported(Workload(applied, "eu-1", "fail", SINCE))
    assert not report.ready
    assert reason in report.message


@pytest.mark.parametrize("applied", [LLM, POSTGRES, STATEFUL, DEPLOYMENT])
@pytest.mark.parametrize("outcome", ["fail", "hang"])
def test_what_does_not_run_is_not_called_ready(applied: dict[str, Any], outcome: Any) -> None:
    status = reported(Workload(applied, "eu-1", outcome, SINCE)).status
    assert condition(status, "Ready") != "True"
    assert not status.get("readyReplicas")
    assert not status.get("readyInstances")
    assert "url" not in status


def test_what_has_no_status_has_none() -> None:
    assert reported(Workload(manifest("v1", "Secret"), "eu-1", "ok", SINCE)).status == {}


@pytest.mark.django_db(transaction=True)
class TestSimulator:
    """With the controller and the tiny function."""

    def test_everything_it_writes_is_marked(self, controlled: ControlPlane) -> None:
        controlled.apply(widget())
        wait_until(lambda: ready(controlled), "Ready")
        claim = controlled.get(ref())
        assert claim is not None
        one = claim.composed[0].manifest
        assert one["metadata"]["annotations"][SIMULATED] == "true"
        remote = one["status"]["atProvider"]["manifest"]
        assert remote["metadata"]["annotations"][SIMULATED] == "true"
        assert remote["spec"] == one["spec"]["forProvider"]["manifest"]["spec"]
        assert remote["status"]["readyReplicas"] == 2
        assert controlled.label == LABEL
        assert "simulated" in LABEL

    def test_it_never_touches_a_claim(self, plane: ControlPlane) -> None:
        """Without its function a claim gets nothing but an error, however long the simulator runs."""
        with Controller(Functions({}, timeout=1), {}):
            plane.apply(widget())
            wait_until(lambda: EmbeddedObject.objects.get(kind="Widget").status, "an error is noted")
        row = EmbeddedObject.objects.get(kind="Widget")
        assert [one["type"] for one in row.status["conditions"]] == ["Synced"]
        assert SIMULATED not in row.annotations

    def test_a_composed_composite_is_left_to_its_own_function(
        self, plane: ControlPlane, tiny_function: FunctionProcess
    ) -> None:
        """Two levels: the inner Widget's function says that it waits, so neither becomes ready; then that it is
        done."""
        functions = Functions({"tiny": tiny_function.address}, timeout=5)
        with Controller(functions, {}):
            plane.apply(widget(mode="nested", note="waiting"))
            wait_until(lambda: EmbeddedObject.objects.filter(kind="Widget").count() == 2, "the inner one is composed")
        with Controller(functions, {}):  # which gives everything composed a turn again
            time.sleep(0.5)
            inner = EmbeddedObject.objects.exclude(name="one").get(kind="Widget")
            assert condition(inner.status, "Ready") == "False"
            assert SIMULATED not in inner.annotations
            assert not ready(plane)
            plane.apply(widget(mode="nested", note="plain"))
            wait_until(lambda: ready(plane), "both Ready")
            plane.delete(ref(), None)
            wait_until(lambda: not EmbeddedObject.objects.filter(kind__in=("Widget", "Object")).exists(), "all gone")

    def test_a_fault_fails_with_a_reason_and_only_the_chosen_one(self, controlled: ControlPlane) -> None:
        controlled.apply(widget("broken"))
        controlled.apply(widget("fine"))
        wait_until(lambda: ready(controlled, "fine"), "the other is Ready")
        wait_until(lambda: "ImagePullBackOff" in _message(controlled, "broken"), "the reason is there")
        assert not ready(controlled, "broken")

    def test_a_hanging_one_never_gets_further(self, controlled: ControlPlane) -> None:
        controlled.apply(widget("hanging"))
        wait_until(lambda: _message(controlled, "hanging"), "something is reported")
        assert not ready(controlled, "hanging")

    def test_without_its_fault_it_recovers_after_a_restart(
        self, plane: ControlPlane, tiny_function: FunctionProcess
    ) -> None:
        functions = Functions({"tiny": tiny_function.address}, timeout=5)
        with Controller(functions, FAULTS):
            plane.apply(widget("broken"))
            wait_until(lambda: "ImagePullBackOff" in _message(plane, "broken"), "it failed")
        with Controller(functions, {}):
            wait_until(lambda: ready(plane, "broken"), "Ready")

    def test_what_failed_can_be_deleted(self, controlled: ControlPlane) -> None:
        controlled.apply(widget("broken"))
        wait_until(lambda: _message(controlled, "broken"), "it failed")
        controlled.delete(ref("broken"), None)
        wait_until(lambda: controlled.get(ref("broken")) is None, "gone")


def _message(plane: ControlPlane, name: str) -> str:
    claim = plane.get(ref(name))
    return " ".join(one.message for one in claim.composed) if claim is not None else ""
