"""The function as it runs: a child process, spoken to by the protocol that Crossplane speaks."""

import datetime
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from crossplane.function import resource
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.crossplane.samples import CROSSPLANE, MODEL, PGVECTOR, QDRANT, counted_fleet, example

pytestmark = pytest.mark.slow

SOURCE = CROSSPLANE / "composition-function"


def free_address() -> str:
    """An address that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"localhost:{listener.getsockname()[1]}"


def start(*arguments: str) -> "subprocess.Popen[str]":
    """The function, in an environment of its own: nothing of the portal is on its path."""
    return subprocess.Popen(
        [sys.executable, "-m", "composition_function", *arguments],
        cwd=SOURCE,
        env={"PATH": os.environ["PATH"]},
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(address: str, credentials: grpc.ChannelCredentials | None, *arguments: str) -> Iterator[Any]:
    """A running function: its process and a stub."""
    process = start("--address", address, *arguments)
    try:
        channel = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
        with channel:
            grpc.channel_ready_future(channel).result(timeout=30)
            yield process, grpcv1.FunctionRunnerServiceStub(channel)
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.fixture(scope="module")
def stub() -> Iterator[Any]:
    with serving(free_address(), None, "--insecure", "--approvals=warn") as (_, found):
        yield found


def request_for(claim: dict[str, Any], answer: Any = None, objects: list[dict[str, Any]] | None = None) -> Any:
    """A request with what the last answer asked for, and with what it composed."""
    request = fnv1.RunFunctionRequest(meta=fnv1.RequestMeta(tag="some-tag"))
    resource.update(request.observed.composite, claim)
    for key, composed in answer.desired.resources.items() if answer else ():
        request.observed.resources[key].resource.CopyFrom(composed.resource)
    for key, selector in answer.requirements.resources.items() if answer else ():
        request.required_resources[key].SetInParent()
        if selector.kind == "ConfigMap":
            assert (selector.match_name, selector.namespace) == ("portal-approval-keys", "portal-system")
            continue
        assert selector.WhichOneof("match") == "match_labels", "all of a kind has to be said explicitly"
        if selector.kind == "Object":
            assert selector.match_labels.labels["crossplane.io/composite"] == claim["metadata"]["name"], "its own"
            assert selector.namespace == claim["metadata"].get("namespace", "")
            continue
        assert not selector.HasField("namespace"), "in all namespaces"
        for item in objects or []:
            if (item["apiVersion"], item["kind"]) == (selector.api_version, selector.kind):
                resource.update(request.required_resources[key].items.add(), item)
    return request


def fresh(name: str) -> dict[str, Any]:
    """An example claim that the function has not met before: it remembers what it answered to whom."""
    claim = example(name)
    claim["metadata"]["uid"] = str(uuid.uuid4())
    return claim


def status_of(answer: Any) -> dict[str, Any]:
    """The status that an answer gives the claim, without its conditions."""
    found: dict[str, Any] = resource.struct_to_dict(answer.desired.composite.resource).get("status", {})
    return found


def written(answer: Any) -> dict[str, Any]:
    """The status once Crossplane has written an answer."""
    said = {c.type: (c.status == fnv1.STATUS_CONDITION_TRUE, c.reason, c.message) for c in answer.conditions}
    said["Ready"] = (answer.desired.composite.ready == fnv1.READY_TRUE, "", "")
    conditions = [
        {"type": kind, "status": str(status), "reason": reason, "message": message}
        for kind, (status, reason, message) in said.items()
    ]
    return {**status_of(answer), "conditions": conditions}


@pytest.mark.parametrize(
    ("name", "asks_for"),
    [
        (MODEL, {"AcceleratorClass", "InferenceCluster", "ModelDeployment", "ConfigMap", "Object"}),
        (QDRANT, {"InferenceCluster", "VectorDatabase", "ConfigMap", "Object"}),
        (PGVECTOR, {"InferenceCluster", "VectorDatabase", "ConfigMap", "Object"}),
    ],
)
def test_it_asks_reserves_and_composes(stub: Any, name: str, asks_for: set[str]) -> None:
    claim = fresh(name)
    asked = stub.RunFunction(request_for(claim), timeout=10)
    assert {selector.kind for selector in asked.requirements.resources.values()} == asks_for
    assert (len(asked.desired.resources), status_of(asked)) == (0, {})

    reserved = stub.RunFunction(request_for(claim, asked, counted_fleet()), timeout=10)
    assert reserved.requirements == asked.requirements, "Crossplane calls again until these are stable"
    assert (reserved.meta.tag, reserved.meta.ttl.seconds) == ("some-tag", 1)
    assert len(reserved.desired.resources) == 0
    assert reserved.desired.composite.ready == fnv1.READY_FALSE, "nothing composed must not count as ready"

    claim["status"] = written(reserved)
    composed = stub.RunFunction(request_for(claim, reserved, counted_fleet()), timeout=10)
    assert len(composed.desired.resources) > 0
    assert {item.ready for item in composed.desired.resources.values()} == {fnv1.READY_FALSE}
    assert [(c.type, c.status) for c in composed.conditions] == [
        ("Placed", fnv1.STATUS_CONDITION_TRUE),
        ("WorkloadReady", fnv1.STATUS_CONDITION_FALSE),
        ("Suspended", fnv1.STATUS_CONDITION_FALSE),
        ("Approved", fnv1.STATUS_CONDITION_FALSE),
    ]
    assert composed.conditions[-1].message.startswith("would be refused: ")
    assert list(composed.results) == []


def test_what_is_not_read_of_other_objects_makes_no_difference(stub: Any) -> None:
    """It is dropped before it is looked at; nothing else may go with it."""
    claim, other = fresh(MODEL), fresh(MODEL)
    claim["metadata"]["uid"] = "first"  # what was answered to a uid is remembered for a while
    other["metadata"] |= {"uid": "other", "annotations": {"a": "b"}, "managedFields": [{"manager": "core"}]}
    placement = {"cluster": "eu-central-1", "pool": "l4", "region": "eu-central", "reasons": [{"code": "Chosen"}]}
    other["status"] = {"placement": placement, "replicas": {"ready": 1, "total": 1}}
    asked = stub.RunFunction(request_for(claim), timeout=10)
    answer = stub.RunFunction(request_for(claim, asked, [*counted_fleet(), other]), timeout=10)
    assert status_of(answer)["placement"]["cluster"] == "us-east-1", "the other one's slot counts"
    bare = {"kind": "ModelDeployment", "apiVersion": other["apiVersion"], "spec": other["spec"]}
    claim["metadata"]["uid"] = "second"
    without = stub.RunFunction(request_for(claim, asked, [*counted_fleet(), bare]), timeout=10)
    assert [result.message for result in without.results] == [
        "left out: ModelDeployment ?: /metadata/name is missing; it must be a text that is not empty"
    ]


def test_it_becomes_ready_when_the_workload_is(stub: Any) -> None:
    claim = fresh(MODEL)
    answer = stub.RunFunction(request_for(claim), timeout=10)
    for _ in range(2):
        answer = stub.RunFunction(request_for(claim, answer, counted_fleet()), timeout=10)
        claim["status"] = written(answer)
    request = request_for(claim, answer, counted_fleet())
    observed = resource.struct_to_dict(request.observed.resources["llminferenceservice"].resource)
    workload = observed["spec"]["forProvider"]["manifest"]
    workload["status"] = {"url": "http://a.example.org", "conditions": [{"type": "Ready", "status": "True"}]}
    status = {"atProvider": {"manifest": workload}}
    resource.update(request.observed.resources["llminferenceservice"], {"status": status})
    ready = stub.RunFunction(request, timeout=10)
    assert ready.desired.composite.ready == fnv1.READY_TRUE
    assert status_of(ready)["endpoint"]["url"] == "http://a.example.org"
    assert ready.meta.ttl.seconds == 60


def test_while_it_has_not_seen_the_others_what_is_composed_stays(stub: Any) -> None:
    claim = fresh(QDRANT)
    answer = stub.RunFunction(request_for(claim), timeout=10)
    for _ in range(2):
        answer = stub.RunFunction(request_for(claim, answer, counted_fleet()), timeout=10)
        claim["status"] = written(answer)
    request = request_for(claim, answer, counted_fleet())
    request.required_resources.clear()
    first = stub.RunFunction(request, timeout=10)
    assert {key: item.resource for key, item in first.desired.resources.items()} == {
        key: item.resource for key, item in answer.desired.resources.items()
    }


@pytest.mark.parametrize(
    ("claim", "says", "reason"),
    [
        (
            {"kind": "NotebookServer", "metadata": {"name": "n"}},
            "'NotebookServer' is not composed here",
            "not its kind",
        ),
        ({}, "None is not composed here", "nothing at all"),
        ({"kind": "ModelDeployment", "metadata": {"name": "m"}}, "/spec/accelerator/class is missing", "no spec"),
        (
            {"kind": "VectorDatabase", "metadata": {"name": "v"}, "spec": {"engine": "milvus"}},
            "must be one of pgvector, qdrant",
            "an engine that it doesn't know",
        ),
    ],
)
def test_what_it_can_not_work_with_is_a_fatal_result(stub: Any, claim: dict[str, Any], says: str, reason: str) -> None:
    answer = stub.RunFunction(request_for(claim), timeout=10)
    if not answer.results:
        answer = stub.RunFunction(request_for(claim, answer, counted_fleet()), timeout=10)
    (result,) = answer.results
    assert result.severity == fnv1.SEVERITY_FATAL, reason
    assert says in result.message, reason
    assert "Traceback" not in result.message


def test_the_old_protocol_version_is_served_too(stub: Any) -> None:
    """Crossplane falls back to v1beta1; the SDK serves it beside v1."""
    from crossplane.function.proto.v1beta1 import run_function_pb2 as beta
    from crossplane.function.proto.v1beta1 import run_function_pb2_grpc as beta_grpc

    with serving(free_address(), None, "--insecure") as (process, _):
        address = process.args[process.args.index("--address") + 1]
        with grpc.insecure_channel(address) as channel:
            beta_stub = beta_grpc.FunctionRunnerServiceStub(channel)
            assert beta_stub.RunFunction(beta.RunFunctionRequest(), timeout=10).results[0].severity == 1


def test_it_ends_when_told_to() -> None:
    with serving(free_address(), None, "--insecure") as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0


def test_a_port_that_is_taken_is_an_error_and_not_shared() -> None:
    address = free_address()
    with serving(address, None, "--insecure"):
        second = start("--address", address, "--insecure")
        _, errors = second.communicate(timeout=30)
        assert second.returncode != 0
        assert address in errors


def test_neither_certificates_nor_insecure_is_refused() -> None:
    process = start("--address", free_address())
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "--tls-certs-dir" in errors


class Authority:
    """A certificate authority that lives as long as a test."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign("ca", self.key, is_authority=True)

    def _sign(self, name: str, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ca")])
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def issue(self, name: str, folder: Path) -> Path:
        """A folder with tls.crt, tls.key and ca.crt."""
        folder.mkdir()
        key = ec.generate_private_key(ec.SECP256R1())
        pem = serialization.Encoding.PEM
        (folder / "tls.crt").write_bytes(self._sign(name, key, is_authority=False).public_bytes(pem))
        (folder / "ca.crt").write_bytes(self.certificate.public_bytes(pem))
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (folder / "tls.key").write_bytes(private)
        return folder


def test_with_certificates_only_their_authority_is_let_in(tmp_path: Path) -> None:
    authority = Authority()
    server, client = authority.issue("function", tmp_path / "server"), authority.issue("core", tmp_path / "client")
    stranger = Authority().issue("core", tmp_path / "stranger")

    def credentials(folder: Path) -> grpc.ChannelCredentials:
        files = [server / "ca.crt", folder / "tls.key", folder / "tls.crt"]
        return grpc.ssl_channel_credentials(*(file.read_bytes() for file in files))

    address = free_address()
    with serving(address, credentials(client), "--tls-certs-dir", str(server)) as (_, let_in):
        with grpc.secure_channel(address, credentials(stranger)) as channel, pytest.raises(grpc.RpcError) as refused:
            grpcv1.FunctionRunnerServiceStub(channel).RunFunction(request_for(fresh(MODEL)), timeout=10)
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        assert let_in.RunFunction(request_for(fresh(MODEL)), timeout=10).requirements.resources
