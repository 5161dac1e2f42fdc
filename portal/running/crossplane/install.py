"""In charge of: what is written to the API servers: CRDs, this project's manifests, the fleet, roles, the function.

All of it is applied again at each start, and stays as it is if nothing has changed. Not in charge of: when (plan.py).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from portal.running.crossplane import crds
from portal.running.crossplane.access import Server, kubeconfig
from portal.running.crossplane.authority import Authority, write_private
from portal.running.crossplane.controllers import CLIENT_CERTIFICATE, FUNCTION, ROOT_AUTHORITY
from portal.running.crossplane.kube import Api, Object, eventually, is_true
from portal.running.crossplane.layout import CORE_NAMESPACE, MANIFESTS, PORTAL_ACCOUNT, Layout
from portal.running.crossplane.nodes import nodes_of
from portal.running.crossplane.parts import CLOUDNATIVE_PG_CRDS, KSERVE_CRDS, PROVIDER_CRDS, Definitions
from portal.running.errors import NotReady

CRD = "apiextensions.k8s.io/v1"
XRD = "apiextensions.crossplane.io/v2"
GROUP = "aiplatform.example.org/v1alpha1"
SERVED_WITHIN = 60.0  # seconds
READY_WITHIN = 120.0
TOKEN_SECONDS = 30 * 24 * 3600
AT_ONCE = 4  # applies in flight


def namespace(api: Api, name: str) -> None:
    """Makes a namespace."""
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    eventually(f"namespace {name}", partial(api.apply, manifest), SERVED_WITHIN)


def definitions(api: Api, cache: Path, *wanted: Definitions) -> None:
    """Other projects' CRDs, until they are served."""
    manifests = [crd for each in wanted for crd in crds.installable(each, cache)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda m: eventually(_name(m), partial(_define, api, m), SERVED_WITHIN), manifests))
    for manifest in manifests:
        spec = manifest["spec"]
        for version in spec["versions"]:
            served = partial(api.serves, f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            eventually(f"{_name(manifest)} is served", served, SERVED_WITHIN)


def _define(api: Api, crd: Object) -> Object:
    """Creates a CRD, or replaces one of another version. Server-side apply of so large an object takes seconds."""
    found = api.get(CRD, crd["kind"], crd["metadata"]["name"])
    if found is None:
        return api.create(f"/apis/{CRD}/customresourcedefinitions", crd)
    annotations = found["metadata"].get("annotations", {})
    if crd["metadata"]["annotations"].items() <= annotations.items():
        return found
    return api.replace({**crd, "metadata": {**found["metadata"], **crd["metadata"]}})


def workload_cluster(api: Api, name: str, cache: Path) -> None:
    """What a workload cluster has before anything is placed there: operators' CRDs, nodes, and the actor's role."""
    definitions(api, cache, KSERVE_CRDS, CLOUDNATIVE_PG_CRDS)
    fleet = _fleet()
    classes = {item["metadata"]["name"]: item for item in fleet if item["kind"] == "AcceleratorClass"}
    (cluster,) = (i for i in fleet if i["kind"] == "InferenceCluster" and i["metadata"]["name"] == name)
    for node in nodes_of(cluster, classes):
        api.apply({key: value for key, value in node.items() if key != "status"})
        api.apply(node, status=True)
    _apply_all(api, _documents(Path(__file__).with_name("actor-role.yaml")))


def provider_definitions(api: Api, cache: Path) -> None:
    """provider-kubernetes' CRDs on the control plane."""
    definitions(api, cache, PROVIDER_CRDS)


def certificates(api: Api, layout: Layout) -> None:
    """What the core made at its initialisation, as files: its client certificate; and one for the function."""
    client = _secret(api, CLIENT_CERTIFICATE)
    for name, content in client.items():
        write_private(layout.core_tls / name, content)
    root = _secret(api, ROOT_AUTHORITY)
    Authority(root["tls.crt"], root["tls.key"]).issue(layout.function_tls, FUNCTION)


def function(api: Api, endpoint: str, name: str = FUNCTION) -> None:
    """Tells the core that a function is there and where, without a package: a revision that it leaves alone."""
    head = {"apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision"}
    meta: Object = {
        "name": name,
        "labels": {"pkg.crossplane.io/package": name},
        "annotations": {"crossplane.io/paused": "true"},
    }
    # The image is never fetched; .invalid is reserved for names that are none (RFC 2606).
    spec = {"desiredState": "Active", "image": f"registry.invalid/{name}:v1", "revision": 1}
    eventually("FunctionRevision", partial(api.apply, {**head, "metadata": meta, "spec": spec}), SERVED_WITHIN)
    status = {"endpoint": endpoint, "capabilities": ["composition"]}
    api.apply({**head, "metadata": {"name": name}, "status": status}, status=True)


def portal_role(api: Api) -> str:
    """The role that the portal has, from the repository, and a token of its ServiceAccount."""
    account_namespace, account = PORTAL_ACCOUNT
    _apply_all(api, [d for path in sorted((MANIFESTS / "rbac").glob("*.yaml")) for d in _documents(path)])
    path = f"/api/v1/namespaces/{account_namespace}/serviceaccounts/{account}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    answer = api.create(path, {**asked, "spec": {"expirationSeconds": TOKEN_SECONDS}})
    return str(answer["status"]["token"])


def apis(api: Api) -> None:
    """This project's XRDs and Compositions, until their kinds are served."""
    found = [d for path in sorted((MANIFESTS / "apis").glob("*/*.yaml")) for d in _documents(path)]
    installed = [d for d in found if d["kind"] in ("CompositeResourceDefinition", "Composition")]
    _apply_all(api, installed)
    for item in installed:
        if item["kind"] == "CompositeResourceDefinition":
            _until(api, XRD, "CompositeResourceDefinition", item["metadata"]["name"], "Established")


def fleet(api: Api, clusters: Sequence[Server]) -> None:
    """The sample fleet, as far as its clusters run here, until the core, the function and the provider reach them."""
    running = {server.name: server for server in clusters}
    wanted = [i for i in _fleet() if i["kind"] == "AcceleratorClass" or i["metadata"]["name"] in running]
    for item in wanted:
        if item["kind"] == "InferenceCluster":
            api.apply(_kubeconfig_secret(item, running[item["metadata"]["name"]]))
        eventually(f"{item['kind']} {item['metadata']['name']}", partial(api.apply, item), SERVED_WITHIN)
    for item in wanted:
        _until(api, GROUP, item["kind"], item["metadata"]["name"], "Synced", "Ready", seconds=READY_WITHIN)


def _kubeconfig_secret(cluster: Object, server: Server) -> Object:
    reference = cluster["spec"]["kubeconfigSecretRef"]
    content = base64.b64encode(kubeconfig(server).encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": reference["namespace"], "name": reference["name"]},
        "type": "Opaque",
        "data": {reference["key"]: content},
    }


def _secret(api: Api, name: str) -> dict[str, bytes]:
    found = eventually(f"Secret {name}", partial(api.get, "v1", "Secret", name, CORE_NAMESPACE), SERVED_WITHIN)
    return {key: base64.b64decode(value) for key, value in found["data"].items()}


def _until(api: Api, api_version: str, kind: str, name: str, *kinds: str, seconds: float = SERVED_WITHIN) -> None:
    """Waits for an object's conditions. Raises NotReady, with the object's own conditions."""
    last: list[Any] = []

    def reached() -> bool:
        found = api.get(api_version, kind, name)
        last[:] = ((found or {}).get("status") or {}).get("conditions") or []
        return is_true(found, *kinds)

    try:
        eventually(f"{kind} {name} is {' and '.join(kinds)}", reached, seconds)
    except NotReady as error:
        said = "; ".join(f"{c['type']}={c['status']} {c.get('message', '')}".strip() for c in last)
        raise NotReady(f"{error} It says: {said or 'no conditions'}") from None


def _apply_all(api: Api, manifests: Iterable[Object]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda m: eventually(_name(m), partial(api.apply, m), SERVED_WITHIN), manifests))


def _name(manifest: Object) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def _fleet() -> list[Object]:
    return [d for path in sorted((MANIFESTS / "fleet").glob("*.yaml")) for d in _documents(path)]


def _documents(path: Path) -> list[Object]:
    return [d for d in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader) if d]
