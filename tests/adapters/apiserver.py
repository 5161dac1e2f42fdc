"""In charge of: etcd and one kube-apiserver with the tests' kinds and Crossplane's, and nothing that reconciles.

What a claim is told at the door is told by the real one here. Not in charge of: the core (tests/e2e).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from portal.adapters.kubernetes import KubernetesControlPlane
from portal.running import leftovers
from portal.running.crossplane import access, authority, build, crds, install, ports, servers
from portal.running.crossplane.kube import Api, Object, eventually
from portal.running.crossplane.layout import CONTROL_PLANE, MANIFESTS, PORTAL_ACCOUNT, Layout
from portal.running.crossplane.parts import CROSSPLANE_CRDS, PROVIDER_CRDS
from portal.running.supervisor import Supervisor
from tests.adapters import widgets

CRD = "apiextensions.k8s.io/v1"
PORTAL_LABEL = "aiplatform.example.org/aggregate-to-portal"
OBJECT = "kubernetes.m.crossplane.io/v1alpha1"
OBJECT_GROUP = OBJECT.partition("/")[0]
REVISION = "apiextensions.crossplane.io/v1"


class ApiServer:
    """A running API server. `admin` may do everything; `kubeconfig` has the portal's rights, and those on Widgets."""

    def __init__(self, layout: Layout, admin: Api, programs: Supervisor) -> None:
        self.layout, self.admin, self.programs = layout, admin, programs
        self.kubeconfig = layout.portal_kubeconfig

    def plane(self) -> KubernetesControlPlane:
        return KubernetesControlPlane("local", self.kubeconfig)

    def as_account(self, name: str) -> Path:
        """A kubeconfig of an account of its own, which may do nothing yet."""
        self.admin.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
        )
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = self.admin.create(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", asked)
        return self.kubeconfig_with(answer["status"]["token"], name)

    def kubeconfig_with(self, token: str, name: str) -> Path:
        """A kubeconfig with this token."""
        server = self.admin.server
        path = self.layout.kubeconfig(CONTROL_PLANE, name)
        found = access.Server(CONTROL_PLANE, server.url, server.authority, name, token)
        authority.write_private(path, access.kubeconfig(found).encode())
        return path

    def portal_may(self, name: str, rules: list[Object]) -> None:
        """Gives the portal's account these rights."""
        head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
        self.admin.apply({**head, "kind": "ClusterRole", "rules": rules})
        self._bind(name)

    def _bind(self, role: str) -> None:
        namespace, account = PORTAL_ACCOUNT
        self.admin.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"portal-{role}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
            }
        )

    def install(self) -> None:
        """The portal's role and token, the tests' kinds, Crossplane's."""
        token = install.portal_role(self.admin)
        # The controller that sums up the role is not running here: its parts are bound one by one.
        for path in sorted((MANIFESTS / "rbac").glob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                if document and PORTAL_LABEL in (document["metadata"].get("labels") or {}):
                    self._bind(document["metadata"]["name"])
        verbs = ["get", "list", "watch", "create", "patch", "delete"]
        self.portal_may("widgets", [{"apiGroups": ["test.example.org"], "resources": ["widgets"], "verbs": verbs}])
        self.kubeconfig_with(token, "portal")
        found = crds.read(CROSSPLANE_CRDS, settings.CACHE_DIR)
        wanted = [crd for crd in found if crd["spec"]["names"]["kind"] == "CompositionRevision"]
        provider = crds.installable(PROVIDER_CRDS, settings.CACHE_DIR)
        for crd in [*wanted, *(crd for crd in provider if crd["spec"]["group"] == OBJECT_GROUP), widget_crd()]:
            self.admin.apply(crd)
        served = ((widgets.API_VERSION, "Widget"), (REVISION, "CompositionRevision"), (OBJECT, "Object"))
        for api_version, kind in served:
            eventually(f"{kind} is served", lambda v=api_version, k=kind: _listed(self.admin, v, k), 30)
        self.admin.apply(composition_revision("widgets", 1))

    def clean(self) -> None:
        """No claims, whatever holds them; no namespaces but the tests' own."""
        found = [(widgets.API_VERSION, "Widget"), (OBJECT, "Object")]
        for item in [item for api_version, kind in found for item in self.admin.items(api_version, kind)]:
            self.admin.delete(item, "Background")
            path = self.admin.path(item)
            with contextlib.suppress(Exception):  # it may be gone by now
                self.admin.call("PATCH", path, '{"metadata":{"finalizers":null}}', "application/merge-patch+json")


def widget_crd() -> dict[str, Any]:
    """What Crossplane makes of the tests' XRD: its schema, with the machinery in the spec."""
    xrd = widgets.WIDGET_XRD["spec"]
    (version,) = xrd["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    machinery = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = schema["properties"]["spec"]
    spec = {**spec, "properties": {**spec["properties"], "crossplane": machinery}}
    return {
        "apiVersion": CRD,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": widgets.WIDGET_XRD["metadata"]["name"]},
        "spec": {
            "scope": xrd["scope"],
            "group": xrd["group"],
            "names": {**xrd["names"], "listKind": "WidgetList"},
            "versions": [
                {
                    "name": version["name"],
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {**schema, "properties": {**schema["properties"], "spec": spec}},
                    },
                }
            ],
        },
    }


def composition_revision(composition: str, number: int) -> dict[str, Any]:
    return {
        "apiVersion": REVISION,
        "kind": "CompositionRevision",
        "metadata": {"name": f"{composition}-{number}", "labels": {"crossplane.io/composition-name": composition}},
        "spec": {
            "revision": number,
            "compositeTypeRef": {"apiVersion": widgets.API_VERSION, "kind": "Widget"},
            "mode": "Pipeline",
            "pipeline": [{"step": "one", "functionRef": {"name": "tiny"}}],
        },
    }


@contextlib.contextmanager
def running_api_server(state: Path) -> Iterator[ApiServer]:
    """etcd and one kube-apiserver for the time of the block; what is missing is built first."""
    binaries = build.built(settings.CACHE_DIR, print)
    layout = Layout(state.resolve())
    (layout.state / "run").mkdir(parents=True, exist_ok=True)
    numbers = ports.choose(layout.state / "run" / "ports.json", servers.ports_needed(()))
    own = authority.authority_in(layout.pki)
    own.issue(layout.pki, "local")
    authority.signing_key(layout.pki / "service-accounts.key")
    tokens = access.tokens_in(layout.tokens(CONTROL_PLANE), {"admin": [access.MASTERS]})
    url = f"https://127.0.0.1:{numbers[CONTROL_PLANE]}"
    admin = access.Server(CONTROL_PLANE, url, own.certificate.decode(), "admin", tokens["admin"])
    programs = servers.server_programs(layout, binaries, numbers, ())[:2]  # without the garbage collector
    started = time.monotonic()
    environment = {**os.environ, **leftovers.mark(layout.state)}
    with Supervisor(layout.state, programs, environment) as supervisor, Api(admin) as api:
        print(f"API server up after {time.monotonic() - started:.1f} s")
        server = ApiServer(layout, api, supervisor)
        server.install()
        yield server


def _listed(api: Api, api_version: str, kind: str) -> bool:
    return api.listed(api_version, kind) is not None
