"""What runs behind the portal is killed, cut off and compacted; requests go on, and no claim is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from portal.running.crossplane import access, authority, install, servers
from portal.running.crossplane.kube import Api, eventually
from portal.running.crossplane.layout import CONTROL_PLANE, PORTAL_ACCOUNT
from portal.running.crossplane.plan import LocalControlPlane
from tests.e2e.remains import Clusters
from tests.e2e.scratch import ScratchFunction, body
from tests.front import Front

pytestmark = pytest.mark.timeout(300)
GROUP = "aiplatform.example.org/v1alpha1"
NAMESPACE = "lab-dev"
WITHIN = 120.0  # seconds; an order of magnitude above what is seen


@pytest.fixture
def admin(clusters: Clusters) -> Api:
    """The control plane, as an administrator."""
    return clusters.apis[CONTROL_PLANE]


def spaces(admin: Api, prefix: str) -> dict[str, str]:
    """uid by name of the scratch spaces whose name begins so."""
    found = admin.items(GROUP, "ScratchSpace", NAMESPACE)
    return {i["metadata"]["name"]: i["metadata"]["uid"] for i in found if i["metadata"]["name"].startswith(prefix)}


def remembered(front: Front, prefix: str) -> dict[str, str]:
    """The same, as the portal remembers it."""
    query = "SELECT claim->'metadata'->>'name', claim_uid FROM portal_instance WHERE name LIKE %s AND phase <> 'Gone'"
    return {str(name): str(uid) for name, uid in front.rows(query, f"{prefix}%")}


def kill(plane: LocalControlPlane, name: str) -> int:
    """SIGKILL for one of its programs; the supervisor starts it again."""
    pid = plane.pids()[name]
    os.kill(pid, signal.SIGKILL)
    return pid


def is_back(plane: LocalControlPlane, name: str, before: int) -> None:
    eventually(f"{name} was started again", lambda: plane.pids().get(name, before) != before, WITHIN)


def ask(front: Front, prefix: str, count: int) -> list[dict[str, Any]]:
    return [front.submit("ada", body(f"{prefix}-{number}")) for number in range(count)]


def all_done_once(front: Front, admin: Api, prefix: str, asked: list[dict[str, Any]]) -> None:
    """Every request is Done, and there is one claim for each, which is the one that the portal remembers."""
    for request in asked:
        front.done(request, WITHIN)
    there = spaces(admin, prefix)
    assert there == remembered(front, prefix)
    assert len(there) == len(asked) == len(set(there.values()))
    for request in asked:
        assert front.steps(request["id"]).count("claim.apply") == 1


KILLED = [
    ("crossplane", "core", "the core dies while it reconciles"),
    (CONTROL_PLANE, "server", "the API server dies while claims are applied and watched"),
    ("composition-function", "function", "another function's death holds up nobody"),
]


@pytest.mark.parametrize(("program", "prefix", "reason"), KILLED, ids=[case[0] for case in KILLED])
def test_killed_in_the_middle(
    front: Front, plane: LocalControlPlane, admin: Api, program: str, prefix: str, reason: str
) -> None:
    asked = ask(front, prefix, 4)
    before = kill(plane, program)
    asked += ask(front, f"{prefix}-later", 4)
    is_back(plane, program, before)
    all_done_once(front, admin, prefix, asked)


def test_an_api_server_that_is_away_makes_nothing_gone(front: Front, plane: LocalControlPlane) -> None:
    (request,) = ask(front, "stays", 1)
    instance = front.done(request, WITHIN)["instance"]
    before = kill(plane, CONTROL_PLANE)
    until = time.monotonic() + 5
    while time.monotonic() < until:
        assert front.instance(instance)["phase"] == "Ready"
        time.sleep(0.2)
    is_back(plane, CONTROL_PLANE, before)


def test_the_function_is_killed_and_started_again(front: Front, scratch: ScratchFunction, admin: Api) -> None:
    scratch.kill()
    try:
        asked = ask(front, "mute", 2)
        eventually("applied", lambda: len(spaces(admin, "mute")) == 2, WITHIN)
        states = {front.request(request["id"])["state"] for request in asked}
        assert states == {"Delivering"}, "nothing is Ready without it"
    finally:
        scratch.start()
    all_done_once(front, admin, "mute", asked)


def test_the_portals_token_is_rotated(front: Front, plane: LocalControlPlane, admin: Api) -> None:
    """The old one is refused from one moment to the next; the kubeconfig has the new one soon after."""
    namespace, account = PORTAL_ACCOUNT
    with Api(access.server_from(plane.kubeconfig)) as old:
        old.items(GROUP, "ScratchSpace", NAMESPACE)
    admin.delete({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}})
    (refused,) = ask(front, "rotated-before", 1)
    time.sleep(2)
    token = install.portal_role(admin)
    server = admin.server
    renewed = access.Server(CONTROL_PLANE, server.url, server.authority, ".".join(PORTAL_ACCOUNT), token)
    authority.write_private(plane.kubeconfig, access.kubeconfig(renewed).encode())
    asked = [refused, *ask(front, "rotated-after", 2)]
    all_done_once(front, admin, "rotated", asked)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that gets no time for a while."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_was_missed_until_etcd_was_compacted(front: Front, plane: LocalControlPlane, admin: Api) -> None:
    """The mirror's place in the watch is gone (410): it lists again, and sees what came, changed and went."""
    kept, deleted = ask(front, "missed", 2)
    kept_instance, deleted_instance = (front.done(each, WITHIN)["instance"] for each in (kept, deleted))
    with stopped(front.portal.supervisor.pids()["mirror"]):
        name = front.instance(deleted_instance)["claim"]["metadata"]["name"]
        head = {"apiVersion": GROUP, "kind": "ScratchSpace", "metadata": {"name": name, "namespace": NAMESPACE}}
        admin.delete(head, "Foreground")
        eventually("deleted", lambda: name not in spaces(admin, "missed"), WITHIN)
        new = ask(front, "missed-new", 1)
        eventually("applied", lambda: len(spaces(admin, "missed-new")) == 1, WITHIN)
        compact(plane, admin)
        before = kill(plane, CONTROL_PLANE)  # what it remembers of the past goes too
        is_back(plane, CONTROL_PLANE, before)
        eventually("it answers", lambda: spaces(admin, "missed"), WITHIN)
    front.done(new[0], WITHIN)
    eventually("gone", lambda: front.instance(deleted_instance)["phase"] == "Gone", WITHIN)
    assert front.instance(kept_instance)["phase"] == "Ready"
    assert front.holds(deleted_instance) == (0, 0)


def compact(plane: LocalControlPlane, admin: Api) -> None:
    """Makes etcd forget every revision but the newest."""
    newest = int(admin.listed("v1", "Namespace")["metadata"]["resourceVersion"])
    binary = Path(servers.etcd_binary())
    command = [str(_executable(binary.with_name("etcdctl"))), "--endpoints", etcd_address(plane)]
    pki = plane.layout.pki
    command += ["--cacert", str(pki / "ca.crt"), "--cert", str(pki / "tls.crt"), "--key", str(pki / "tls.key")]
    done = subprocess.run(
        [*command, "compaction", str(newest)],
        env={**os.environ, "ETCDCTL_API": "3"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def etcd_address(plane: LocalControlPlane) -> str:
    command = Path(f"/proc/{plane.pids()['etcd']}/cmdline").read_bytes().decode().split("\0")
    return next(part.partition("=")[2] for part in command if part.startswith("--listen-client-urls="))


def _executable(path: Path) -> Path:
    path.chmod(path.stat().st_mode | 0o111)
    return path
