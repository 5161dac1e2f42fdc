"""What a local control plane is set up with: ports, certificates, kubeconfigs, nodes, roles; what the actor reports."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from portal.running.crossplane import ports, probes
from portal.running.crossplane.access import Server, kubeconfig, server_from, tokens_in
from portal.running.crossplane.authority import authority_in
from portal.running.crossplane.layout import MANIFESTS
from portal.running.crossplane.nodes import SIMULATED, nodes_of
from portal.running.crossplane.reports import NOTE, WORKLOADS

FLEET = [yaml.safe_load(path.read_text()) for path in sorted((MANIFESTS / "fleet").glob("*.yaml"))]
CLASSES = {item["metadata"]["name"]: item for item in FLEET if item["kind"] == "AcceleratorClass"}
FLEET_CLUSTERS = [item for item in FLEET if item["kind"] == "InferenceCluster"]
ROLES = list(yaml.safe_load_all((MANIFESTS / "rbac" / "portal.yaml").read_text()))
NOW = "2026-12-01T00:00:00Z"


def test_ports_are_kept_from_start_to_start(tmp_path: Path) -> None:
    first = ports.choose(tmp_path / "ports.json", ["a", "b", "c"])
    assert len(set(first.values())) == 3
    assert ports.choose(tmp_path / "ports.json", ["a", "b", "c"]) == first


def test_a_port_that_is_taken_by_now_is_left_to_its_owner(tmp_path: Path) -> None:
    first = ports.choose(tmp_path / "ports.json", ["a", "b"])
    with socket.socket() as other:
        other.bind(("127.0.0.1", first["a"]))
        other.listen()
        second = ports.choose(tmp_path / "ports.json", ["a", "b"])
    assert second["a"] != first["a"]
    assert second["b"] == first["b"]


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[int]:
    """Answers 200 to who shows a certificate of the authority in `pki`."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/readyz" else 503)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    authority_in(tmp_path / "pki").issue(tmp_path / "pki", "local")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "pki" / "ca.crt"))
    context.load_cert_chain(tmp_path / "pki" / "tls.crt", tmp_path / "pki" / "tls.key")
    context.verify_mode = ssl.CERT_REQUIRED
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def test_programs_trust_certificates_of_their_own_authority_only(tmp_path: Path, tls_server: int) -> None:
    pki = tmp_path / "pki"
    assert probes.healthy_tls(tls_server, "/readyz", pki)
    assert not probes.healthy_tls(tls_server, "/livez", pki), "up, but not well"
    authority_in(tmp_path / "other").issue(tmp_path / "other", "local")
    assert not probes.healthy_tls(tls_server, "/readyz", tmp_path / "other"), "another authority's"


def test_the_authority_outlives_a_restart(tmp_path: Path) -> None:
    assert authority_in(tmp_path) == authority_in(tmp_path)
    assert (tmp_path / "ca.key").stat().st_mode & 0o077 == 0


def test_everybody_has_a_token_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    tokens = tokens_in(path, {"admin": ["system:masters", "x"], "actor": []})
    assert len(set(tokens.values())) == 2
    assert path.read_text().splitlines()[0] == f'{tokens["admin"]},admin,admin,"system:masters,x"'
    assert path.stat().st_mode & 0o077 == 0


def test_a_kubeconfig_says_what_was_put_in(tmp_path: Path) -> None:
    server = Server("control-plane", "https://127.0.0.1:1", "a certificate", "portal", "secret")
    (tmp_path / "k.yaml").write_text(kubeconfig(server))
    assert server_from(tmp_path / "k.yaml") == server


@pytest.mark.parametrize("cluster", FLEET_CLUSTERS, ids=lambda item: item["metadata"]["name"])
def test_nodes_offer_what_the_pools_promise(cluster: dict[str, Any]) -> None:
    nodes = list(nodes_of(cluster, CLASSES))
    offered = sum(int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)) for node in nodes)
    assert offered == sum(pool["accelerators"] for pool in cluster["spec"]["pools"])
    assert all(node["metadata"]["annotations"] == {SIMULATED: "true"} for node in nodes)
    for pool in cluster["spec"]["pools"]:
        labels = CLASSES[pool["acceleratorClass"]]["spec"]["nodeSelector"].items()
        assert any(labels <= node["metadata"]["labels"].items() for node in nodes), pool["name"]


OBJECTS = {
    "LLMInferenceService": {"spec": {"scaling": {"minReplicas": 2, "maxReplicas": 3}}},
    "Cluster": {"spec": {"instances": 3}},
    "StatefulSet": {"spec": {"replicas": 3}},
}


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.kind)
@pytest.mark.parametrize("fails", [False, True])
def test_a_report_says_that_nothing_runs_and_stays_the_same(workload: Any, fails: bool) -> None:
    found = {"metadata": {"name": "chat", "namespace": "search", "generation": 4}, **OBJECTS[workload.kind]}
    report = workload.report(found, "eu-west-1", fails, NOW)
    assert NOTE in str(report)
    again = workload.report({**found, "status": report}, "eu-west-1", fails, "2027-01-01T00:00:00Z")
    assert again == report, "written again it would start a loop of changes"
    recovered = workload.report({**found, "status": report}, "eu-west-1", not fails, "2027-01-01T00:00:00Z")
    assert recovered != report


def _rules() -> list[dict[str, Any]]:
    return [rule for role in ROLES if role["kind"] == "ClusterRole" for rule in role.get("rules") or []]


def test_the_portals_role_names_what_it_may_do() -> None:
    for rule in _rules():
        for words in (rule["apiGroups"], rule["resources"], rule["verbs"]):
            assert "*" not in words, rule
        assert "secrets" not in rule["resources"]
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])
        assert not any(resource.endswith("/status") for resource in rule["resources"]), "status is the core's"


def test_the_portals_role_covers_every_offering_and_nothing_of_the_fleet() -> None:
    offered = {path.parent.name for path in MANIFESTS.glob("apis/*/offering.yaml")}
    written = {resource for rule in _rules() if "patch" in rule["verbs"] for resource in rule["resources"]}
    assert written == offered


def test_every_role_but_the_sum_is_part_of_it() -> None:
    label = {"aiplatform.example.org/aggregate-to-portal": "true"}
    roles = {role["metadata"]["name"]: role for role in ROLES if role["kind"] == "ClusterRole"}
    total = roles.pop("aiplatform-portal")
    assert total["aggregationRule"]["clusterRoleSelectors"] == [{"matchLabels": label}]
    assert all(role["metadata"]["labels"] == label for role in roles.values())
