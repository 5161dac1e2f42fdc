"""What a real kube-apiserver refuses, and what the portal makes of it; and whose objects it leaves alone."""

from __future__ import annotations

import copy
import stat
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.kubernetes import KubernetesControlPlane
from portal.adapters.kubernetes.client import Client
from portal.ports import ClaimRef, RetryableError, TerminalError
from portal.running.crossplane.kube import Object, eventually
from tests.adapters.apiserver import OBJECT, ApiServer
from tests.adapters.widgets import API_VERSION, KINDS, NAMESPACE, ref, widget

pytestmark = [pytest.mark.crossplane, pytest.mark.go, pytest.mark.slow]

Plane = KubernetesControlPlane
UNKNOWN = {**widget(), "kind": "Gadget"}
GADGET = ClaimRef(API_VERSION, "Gadget", "gadgets", NAMESPACE, "one")


def spec_of(plane: Plane) -> dict[str, Any]:
    claim = plane.get(ref())
    assert claim is not None
    return claim.spec


class TestConflicts:
    def test_a_field_that_somebody_else_has_set(self, api_server: ApiServer, kube_plane: Plane) -> None:
        """Case 17: field and manager are named, nothing is forced, unless somebody decides so."""
        kube_plane.apply(widget(size=2))
        theirs = widget(size=5)
        api_server.admin.apply(theirs, manager="kubectl-edit")
        with pytest.raises(TerminalError) as refused:
            kube_plane.apply(widget(size=3))
        assert refused.value.code == "field-conflict"
        assert "/spec/size" in refused.value.message
        assert "'kubectl-edit'" in refused.value.message
        assert spec_of(kube_plane)["size"] == 5

        kube_plane.apply(widget(size=3), force=True)
        assert spec_of(kube_plane)["size"] == 3
        kube_plane.apply(widget(size=4))

    def test_who_set_what_is_seen(self, api_server: ApiServer, kube_plane: Plane) -> None:
        kube_plane.apply(widget(size=2))
        only = {**widget(), "spec": {"note": "theirs"}}
        api_server.admin.apply(only, manager="kubectl-edit")
        claim = kube_plane.get(ref())
        assert claim is not None
        fields = {each.manager: set(each.fields) for each in claim.managers}
        assert "/spec/size" in fields["portal"]
        assert "/spec/note" in fields["kubectl-edit"]
        assert "/spec/note" not in fields["portal"]
        assert "/metadata/labels/portal.aiplatform.example.org~1instance" in fields["portal"]
        assert all(each.at is not None and each.operation == "Apply" for each in claim.managers)

    def test_a_claim_that_was_replaced_since_it_was_read(
        self, kube_plane: Plane, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another object under that name, with the same label: the apply names the uid that was read."""
        kube_plane.apply(widget(size=2))
        found = Client.find

        def stale(self: Client, *args: Any, **kwargs: Any) -> Object | None:
            live = copy.deepcopy(found(self, *args, **kwargs))
            if live is not None and live["kind"] == "Widget":
                live["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
            return live

        monkeypatch.setattr(Client, "find", stale)
        with pytest.raises(RetryableError) as refused:
            kube_plane.apply(widget(size=7))
        monkeypatch.undo()
        assert refused.value.code == "write-conflict"
        assert spec_of(kube_plane)["size"] == 2

    def test_a_claim_that_is_being_deleted(self, kube_plane: Plane) -> None:
        uid = kube_plane.apply(widget()).uid
        kube_plane.delete(ref(), uid)
        for attempt in (kube_plane.apply, kube_plane.dry_run):
            with pytest.raises(RetryableError) as refused:
                attempt(widget())
            assert refused.value.code == "claim-deleting"


STRANGERS: list[tuple[str, Object]] = [
    ("another label and spec", widget(instance="i-theirs", size=5)),
    ("another label, the same spec", widget(instance="i-theirs", size=3)),
    ("no label, another spec", {**widget(size=5), "metadata": {"name": "one", "namespace": NAMESPACE}}),
    ("no label, the same spec", {**widget(size=3), "metadata": {"name": "one", "namespace": NAMESPACE}}),
]


class TestStrangers:
    @pytest.mark.parametrize(("reason", "theirs"), STRANGERS, ids=[reason for reason, _ in STRANGERS])
    @pytest.mark.parametrize("raced", [False, True], ids=["there before", "made between reading and writing"])
    def test_a_strangers_object_stays_as_it_is(
        self,
        api_server: ApiServer,
        kube_plane: Plane,
        monkeypatch: pytest.MonkeyPatch,
        raced: bool,
        reason: str,
        theirs: Object,
    ) -> None:
        before = api_server.admin.apply(theirs, manager="kubectl")
        if raced:
            found = Client.find
            blind = lambda self, action, path, *rest: None if "/widgets/" in path else found(self, action, path, *rest)  # noqa: E731 - one line, said once
            monkeypatch.setattr(Client, "find", blind)
        with pytest.raises(TerminalError) as refused:
            kube_plane.apply(widget(instance="i-mine", size=3, note="mine"))
        assert refused.value.code == "claim-name-taken", reason
        after = api_server.admin.get(API_VERSION, "Widget", "one", NAMESPACE)
        assert after is not None
        assert after["spec"] == before["spec"], reason
        assert after["metadata"].get("labels") == before["metadata"].get("labels"), reason
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert {each["manager"] for each in after["metadata"]["managedFields"]} == {"kubectl"}, reason

    def test_another_attempt_of_ours_at_the_same_time(self, kube_plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
        first = kube_plane.apply(widget(size=3))
        found = Client.find
        blind = lambda self, action, path, *rest: None if "/widgets/" in path else found(self, action, path, *rest)  # noqa: E731 - one line, said once
        monkeypatch.setattr(Client, "find", blind)
        assert kube_plane.apply(widget(size=3)).uid == first.uid


class TestDryRun:
    def test_what_a_new_claim_would_be(self, kube_plane: Plane) -> None:
        found = kube_plane.dry_run(widget(size=2))
        assert found.live is None
        assert found.claim["spec"] == {"size": 2, "color": "blue"}
        assert "managedFields" not in found.claim["metadata"]
        assert kube_plane.get(ref()) is None

    def test_what_a_change_would_be(self, kube_plane: Plane) -> None:
        before = kube_plane.apply(widget(size=2, note="old"))
        found = kube_plane.dry_run(widget(size=3))
        assert found.live is not None
        assert (found.live["spec"], found.claim["spec"]) == (
            {"size": 2, "note": "old", "color": "blue"},
            {"size": 3, "color": "blue"},
        )
        claim = kube_plane.get(ref())
        assert claim is not None
        assert claim.resource_version == before.resource_version

    def test_what_would_be_refused(self, kube_plane: Plane) -> None:
        with pytest.raises(TerminalError) as refused:
            kube_plane.dry_run(widget(size=3, most=2))
        assert (refused.value.code, "/spec/size" in refused.value.message) == ("claim-invalid", True)


class TestNamespaces:
    def test_one_that_is_being_deleted(self, api_server: ApiServer, kube_plane: Plane) -> None:
        kube_plane.ensure_namespace("leaving", create=True, labels={})
        api_server.admin.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}})
        for attempt in (
            lambda: kube_plane.ensure_namespace("leaving", create=True, labels={}),
            lambda: kube_plane.apply(widget(namespace="leaving")),
        ):
            with pytest.raises(RetryableError) as refused:
                attempt()
            assert refused.value.code == "namespace-terminating"

    def test_labels_are_given_at_its_creation(self, api_server: ApiServer, kube_plane: Plane) -> None:
        kube_plane.ensure_namespace("labelled", create=True, labels={"team": "search"})
        kube_plane.ensure_namespace("labelled", create=True, labels={"team": "other"})
        found = api_server.admin.get("v1", "Namespace", "labelled")
        assert found is not None
        assert found["metadata"]["labels"]["team"] == "search"


POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "small-widgets"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["test.example.org"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["widgets"],
                }
            ]
        },
        "validations": [{"expression": "object.spec.size < 9", "message": "widgets are smaller than 9"}],
    },
}
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "small-widgets"},
    "spec": {"policyName": "small-widgets", "validationActions": ["Deny"]},
}
WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "away"},
    "webhooks": [
        {
            "name": "away.example.org",
            "clientConfig": {"url": "https://127.0.0.1:9/never"},
            "rules": [{**POLICY["spec"]["matchConstraints"]["resourceRules"][0]}],  # type: ignore[index]  # the test's own
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
        }
    ],
}


class TestAdmission:
    def test_a_policy_says_no(self, api_server: ApiServer, kube_plane: Plane) -> None:
        for manifest in (POLICY, BINDING):
            api_server.admin.apply(manifest)

        def denied() -> TerminalError | None:
            try:
                kube_plane.dry_run(widget(size=9))
            except TerminalError as error:
                return error
            return None

        try:
            error = eventually("the policy is in force", denied, 20)
            assert error.code == "admission-denied"
            assert "'small-widgets'" in error.message
            assert "widgets are smaller than 9" in error.message
            assert kube_plane.apply(widget(size=8)).uid
        finally:
            for manifest in (BINDING, POLICY):
                api_server.admin.delete(manifest)

    def test_a_webhook_that_is_away(self, api_server: ApiServer, kube_plane: Plane) -> None:
        api_server.admin.apply(WEBHOOK)

        def unavailable() -> RetryableError | None:
            try:
                kube_plane.dry_run(widget(size=1))
            except RetryableError as error:
                return error
            return None

        try:
            error = eventually("the webhook is asked", unavailable, 20)
            assert error.code == "admission-unavailable"
            assert "'away.example.org'" in error.message
        finally:
            api_server.admin.delete(WEBHOOK)
            eventually("it is asked no more", lambda: unavailable() is None, 20)


class TestRights:
    def test_what_is_forbidden_names_who_verb_resource_and_role(self, api_server: ApiServer, kube_plane: Plane) -> None:
        nobody = KubernetesControlPlane("local", api_server.as_account("nobody"))
        cases = {
            "get": lambda: nobody.apply(widget()),
            "list": lambda: nobody.list(KINDS),
            "delete": lambda: nobody.delete(ref(), None),
        }
        for verb, call in cases.items():
            with pytest.raises(RetryableError) as refused:
                call()
            assert refused.value.code == "forbidden"
            assert f"system:serviceaccount:default:nobody may not {verb} " in refused.value.message
            assert "ClusterRole aiplatform-portal" in refused.value.message
        assert kube_plane.list(KINDS)[0] == []

    def test_a_kind_that_is_not_installed(self, api_server: ApiServer, kube_plane: Plane) -> None:
        rule = {"apiGroups": ["test.example.org"], "resources": ["gadgets"], "verbs": ["*"]}
        api_server.portal_may("gadgets", [rule])
        for call in (
            lambda: kube_plane.apply(UNKNOWN),
            lambda: kube_plane.get(GADGET),
            lambda: kube_plane.delete(GADGET, None),
        ):
            with pytest.raises(RetryableError) as refused:
                call()
            assert refused.value.code == "offering-not-installed"
        claims, cursor = kube_plane.list([*KINDS, GADGET])
        assert claims == []
        kube_plane.apply(widget())
        seen = list(kube_plane.watch([*KINDS, GADGET], cursor, 1.0))
        assert [event.claim.ref.kind for event in seen] == ["Widget"]


class TestCredentials:
    def test_a_rotated_token_is_read_again(self, api_server: ApiServer, kube_plane: Plane) -> None:
        good = api_server.kubeconfig.read_text()
        path = api_server.kubeconfig_with("an-old-token", "rotated")
        plane = KubernetesControlPlane("local", path)
        with pytest.raises(RetryableError) as refused:
            plane.get(ref())
        assert refused.value.code == "credentials-refused"
        path.write_text(good)
        assert plane.get(ref()) is None
        path.write_text(good.replace("token: ", "token: x"))
        assert plane.get(ref()) is None, "what is accepted is not read again"

    def test_a_program_gives_the_token(self, api_server: ApiServer, kube_plane: Plane, tmp_path: Path) -> None:
        token = self._token(api_server)
        program = tmp_path / "credentials"
        credential = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
        program.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\necho '{credential % token}'\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        text = api_server.kubeconfig.read_text()
        run = (
            "exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
            f"      command: {program}\n      interactiveMode: Never"
        )
        path = tmp_path / "kubeconfig"
        path.write_text(text.replace(f"token: {token}", run))
        plane = KubernetesControlPlane("local", path)
        assert plane.get(ref()) is None
        assert plane.list(KINDS)[0] == []
        assert (tmp_path / "calls").read_text() == "called\n"

    def test_a_token_file(self, api_server: ApiServer, kube_plane: Plane, tmp_path: Path) -> None:
        token = self._token(api_server)
        (tmp_path / "token").write_text("old")
        path = tmp_path / "kubeconfig"
        path.write_text(api_server.kubeconfig.read_text().replace(f"token: {token}", f"tokenFile: {tmp_path}/token"))
        plane = KubernetesControlPlane("local", path)
        with pytest.raises(RetryableError):
            plane.get(ref())
        (tmp_path / "token").write_text(token)
        assert plane.get(ref()) is None

    def _token(self, api_server: ApiServer) -> str:
        (line,) = [line for line in api_server.kubeconfig.read_text().splitlines() if "token:" in line]
        return line.split()[-1]

    def test_a_certificate_of_somebody_else(self, api_server: ApiServer, tmp_path: Path) -> None:
        from portal.running.crossplane.access import Server, kubeconfig
        from portal.running.crossplane.authority import authority_in

        other = authority_in(tmp_path / "pki").certificate.decode()
        server = api_server.admin.server
        path = tmp_path / "kubeconfig"
        path.write_text(kubeconfig(Server("x", server.url, other, "x", "x")))
        with pytest.raises(RetryableError) as refused:
            KubernetesControlPlane("local", path).get(ref())
        assert refused.value.code == "control-plane-untrusted"
        assert "certificate" in refused.value.message


class TestHistory:
    def test_a_version_that_is_too_old(self, kube_plane: Plane) -> None:
        kube_plane.apply(widget())
        with pytest.raises(RetryableError) as refused:
            list(kube_plane.watch(KINDS, "widgets.test.example.org=1", 8.0))
        assert refused.value.code == "cursor-expired"

    def test_a_control_plane_that_was_restored(self, kube_plane: Plane) -> None:
        """What was seen of it lies in its future: everything that is there is listed all the same."""
        kube_plane.apply(widget())
        kube_plane._seen.note("widgets.test.example.org", "999999999999")
        claims, cursor = kube_plane.list(KINDS)
        assert [claim.ref.name for claim in claims] == ["one"]
        assert "999999999999" not in cursor

    def test_a_list_shows_what_was_written_before(self, kube_plane: Plane) -> None:
        for number in range(30):
            kube_plane.apply(widget(f"n{number}"))
            assert len(kube_plane.list(KINDS)[0]) == number + 1


def an_object(name: str, owner: Object, ready: str, message: str = "") -> tuple[Object, Object]:
    """An Object of provider-kubernetes as the core composes it, and its status."""
    reference = {key: owner["metadata"][key] for key in ("name", "uid")} | {
        "apiVersion": API_VERSION,
        "kind": "Widget",
        "controller": True,
    }
    head = {"apiVersion": OBJECT, "kind": "Object"}
    metadata = {"name": name, "namespace": NAMESPACE}
    labels = {"crossplane.io/composite": owner["metadata"]["name"]}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "hush"}}
    spec = {
        "forProvider": {"manifest": secret},
        "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "a"},
    }
    condition = {"type": "Ready", "status": ready, "reason": "Because", "message": message}
    status = {"conditions": [{**condition, "lastTransitionTime": "2026-12-01T10:00:00Z"}]}
    made = {**head, "metadata": {**metadata, "labels": labels, "ownerReferences": [reference]}, "spec": spec}
    return made, {**head, "metadata": metadata, "status": status}


class TestComposed:
    """The core's part is played here; the core itself is in tests/e2e."""

    def compose(self, server: ApiServer, name: str, ready: str, message: str = "") -> None:
        owner = server.admin.get(API_VERSION, "Widget", "one", NAMESPACE)
        assert owner is not None
        manifest, status = an_object(name, owner, ready, message)
        server.admin.apply(manifest)
        server.admin.apply(status, status=True)

    def refer(self, server: ApiServer, *names: str) -> None:
        references = [{"apiVersion": OBJECT, "kind": "Object", "name": name} for name in names]
        references.append({"apiVersion": "v1", "kind": "Secret", "name": "theirs"})
        manifest = {**widget(), "spec": {"crossplane": {"resourceRefs": references}}}
        server.admin.apply(manifest, manager="crossplane")

    def test_what_is_composed_says_whether_it_is_ready(self, api_server: ApiServer, kube_plane: Plane) -> None:
        kube_plane.apply(widget(size=2))
        self.compose(api_server, "a", "True")
        self.compose(api_server, "b", "False", "no such node")
        self.refer(api_server, "a", "b", "not-there-yet")
        listed = kube_plane.list(KINDS)[0][0]
        for claim in (listed, kube_plane.get(ref())):
            assert claim is not None
            assert [(one.kind, one.name, one.ready, one.message) for one in claim.composed] == [
                ("Object", "a", True, ""),
                ("Object", "b", False, "no such node"),
                ("Object", "not-there-yet", None, ""),
                ("Secret", "theirs", None, ""),
            ]
            assert dict(claim.composed[0].manifest)["spec"]["forProvider"]["manifest"]["stringData"] == {
                "key": "(hidden)"
            }
            assert claim.composed[0].manifest["metadata"]["ownerReferences"]

    def test_a_change_of_an_object_alone_is_seen(self, api_server: ApiServer, kube_plane: Plane) -> None:
        kube_plane.apply(widget(size=2))
        self.compose(api_server, "a", "False", "pulling")
        self.refer(api_server, "a")
        _, cursor = kube_plane.list(KINDS)
        self.compose(api_server, "a", "True")
        (event,) = kube_plane.watch(KINDS, cursor, 2.0)
        assert [(one.name, one.ready) for one in event.claim.composed] == [("a", True), ("theirs", None)]
        assert list(kube_plane.watch(KINDS, event.cursor, 1.0)) == []

    def test_why_is_told_by_events(self, api_server: ApiServer, kube_plane: Plane) -> None:
        kube_plane.apply(widget(size=2))
        self.compose(api_server, "a", "False")
        self.refer(api_server, "a")
        claim = kube_plane.get(ref())
        assert claim is not None
        for number in range(25):
            about = (
                {"kind": "Object", "name": "a"} if number % 2 else {"kind": "Widget", "name": "one", "uid": claim.uid}
            )
            self.event(api_server, f"e{number}", about, number)
        self.event(api_server, "earlier", {"kind": "Widget", "name": "one", "uid": "another"}, 30)
        self.event(api_server, "others", {"kind": "Widget", "name": "two", "uid": "x"}, 31)
        found = kube_plane.explanations(claim)
        assert len(found) == 20
        assert [each.message for each in found[:3]] == ["said e24", "said e23", "said e22"]
        assert [each.about for each in found[:2]] == ["Widget one", "Object a"]
        assert {(each.type, each.reason, each.count) for each in found} == {("Warning", "Because", 3)}

    def event(self, server: ApiServer, name: str, about: Object, second: int) -> None:
        server.admin.create(
            f"/api/v1/namespaces/{NAMESPACE}/events",
            {
                "metadata": {"generateName": f"{name}-", "namespace": NAMESPACE},
                "involvedObject": {"namespace": NAMESPACE, **about},
                "type": "Warning",
                "reason": "Because",
                "message": f"said {name}",
                "count": 3,
                "lastTimestamp": f"2026-12-01T10:00:{second:02d}Z",
            },
        )
