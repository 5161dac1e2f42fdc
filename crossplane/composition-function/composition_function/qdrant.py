"""VectorDatabase with engine qdrant -> a StatefulSet, two Services and a Secret; no operator is needed.

Not in charge of what is in a pod (``qdrant_pod``).
"""

import base64
import hashlib
import secrets

from composition_function import naming, objects
from composition_function.contract import Composed, Manifest, Request, at
from composition_function.qdrant_pod import DATA, GRPC_PORT, HTTP_PORT, KEY, PEER_PORT, labels_of, name_of, pod_spec
from composition_function.sizing import disk_gib_per_instance, instances
from composition_function.suspension import Stopping
from composition_function.workloads import Built, Workload, all_ready

MAIN = "qdrant"

READY_WHEN = (
    "has(object.status) && has(object.status.readyReplicas) && object.status.readyReplicas >= object.spec.replicas && "
    "(!has(object.status.observedGeneration) || object.status.observedGeneration >= object.metadata.generation)"
)
STOPPED_WHEN = (
    "has(object.status) && has(object.status.replicas) && object.status.replicas == 0 && "
    "(!has(object.status.observedGeneration) || object.status.observedGeneration >= object.metadata.generation)"
)


def build(request: Request, target: objects.Target) -> Built:
    """Everything of one Qdrant, and the Secret beside the claim that says how to reach it."""
    composite = request.composite
    key = api_key(request)
    observed = request.observed.get(MAIN)
    stateful_set = _stateful_set(composite, key)
    disk_stays = _keep_disk(stateful_set, observed)
    parts = {
        MAIN: objects.wrap(composite, target, "qdrant", stateful_set, READY_WHEN),
        "namespace": objects.namespace(composite, target, "qdrant-namespace"),
        "api-key": objects.wrap(composite, target, "qdrant-key", _remote_secret(composite, key)),
        "peers": objects.wrap(composite, target, "qdrant-peers", _service(composite, headless=True)),
        "service": objects.wrap(composite, target, "qdrant-service", _service(composite, headless=False)),
        "connection": _connection_secret(composite, key),
    }
    resources = {name: Composed(manifest) for name, manifest in parts.items()}
    waiting_for = objects.applied(observed, parts[MAIN]) or _not_ready(objects.workload(observed)) or disk_stays
    all_ready(resources, waiting_for)
    return Built(resources, waiting_for, observe(request))


def api_key(request: Request) -> str:
    """The key that was composed before; a new random one only if there is none."""
    known = at(request.observed.get("connection"), "data", KEY)
    if isinstance(known, str) and known:
        return base64.b64decode(known).decode()
    return secrets.token_urlsafe(32)


def _service_name(composite: Manifest) -> str:
    """Never the bare name: another database could be called like this one's peers."""
    return f"{name_of(composite)}-qdrant"


def _metadata(composite: Manifest, name: str) -> Manifest:
    meta = objects.metadata(composite, name)
    return {**meta, "labels": {**meta.get("labels", {}), **labels_of(composite)}}


def _stateful_set(composite: Manifest, key: str) -> Manifest:
    replicas = instances(composite)
    spec: Manifest = {
        "replicas": replicas,
        "serviceName": f"{name_of(composite)}-peers",
        # Peers find each other through the first, which must not wait for the others.
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels_of(composite)},
        "template": {
            "metadata": {
                "labels": _metadata(composite, name_of(composite))["labels"],
                # Another key restarts the pods; they read it only at start.
                "annotations": {f"{objects.GROUP}/api-key-hash": hashlib.sha256(key.encode()).hexdigest()[:16]},
            },
            "spec": pod_spec(composite, replicas),
        },
        "volumeClaimTemplates": [
            {
                "metadata": {"name": DATA},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": f"{disk_gib_per_instance(composite)}Gi"}},
                },
            }
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _metadata(composite, name_of(composite)),
        "spec": spec,
    }


def _service(composite: Manifest, *, headless: bool) -> Manifest:
    """The Service that clients use, or the headless one by which pods find each other before they are ready."""
    ports = {"http": HTTP_PORT, "grpc": GRPC_PORT}
    spec: Manifest = {"selector": labels_of(composite)}
    name = _service_name(composite)
    if headless:
        name = f"{name_of(composite)}-peers"
        ports["peer"] = PEER_PORT
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    spec["ports"] = [{"name": port, "port": number, "targetPort": port} for port, number in ports.items()]
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(composite, name), "spec": spec}


def _remote_secret(composite: Manifest, key: str) -> Manifest:
    """The key on the workload cluster.

    It stands in an Object of the claim's namespace: whoever may read Objects there can read it, as whoever may read
    Secrets there can read the connection Secret.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(composite, f"{name_of(composite)}-key"),
        "type": "Opaque",
        "data": {KEY: _encoded(key)},
    }


def _connection_secret(composite: Manifest, key: str) -> Manifest:
    endpoint = _endpoint(composite)
    data = {KEY: key, "host": endpoint["host"], "port": str(endpoint["port"]), "scheme": endpoint["scheme"]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": naming.child(composite, "connection"),
            "namespace": composite["metadata"]["namespace"],
        },
        "type": "Opaque",
        "data": {name: _encoded(value) for name, value in data.items()},
    }


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _endpoint(composite: Manifest) -> Manifest:
    host = f"{_service_name(composite)}.{composite['metadata']['namespace']}.svc"
    return {"host": host, "port": HTTP_PORT, "scheme": "http"}


def _keep_disk(stateful_set: Manifest, observed: Manifest | None) -> str | None:
    """Volumes of a StatefulSet can't be changed: keep those it has. Says so if they have become too small."""
    volumes = at(observed, "spec", "forProvider", "manifest", "spec", "volumeClaimTemplates")
    if not volumes:
        return None
    wanted = _size(stateful_set["spec"]["volumeClaimTemplates"])
    stateful_set["spec"]["volumeClaimTemplates"] = volumes
    if _size(volumes) >= wanted:
        return None
    return (
        f"its volumes have {_size(volumes)} GiB and need {wanted}; a StatefulSet can't grow them. Create another "
        "database of the new size and copy, or ask the platform team to grow the volumes by hand"
    )


def _size(volume_claim_templates: list[Manifest]) -> int:
    return int(volume_claim_templates[0]["spec"]["resources"]["requests"]["storage"].removesuffix("Gi"))


def observe(request: Request) -> Manifest:
    """The Secret's name, always there once composed, and the endpoint once the service was applied."""
    status: Manifest = {"connectionSecretName": naming.child(request.composite, "connection")}
    if objects.workload(request.observed.get("service")):
        status["endpoint"] = _endpoint(request.composite)
    return status


def _not_ready(stateful_set: Manifest) -> str | None:
    generation = at(stateful_set, "metadata", "generation", default=0)
    if at(stateful_set, "status", "observedGeneration", default=generation) < generation:
        return "the StatefulSet's last update was not seen by its cluster yet"
    ready, wanted = (
        at(stateful_set, "status", "readyReplicas", default=0),
        at(stateful_set, "spec", "replicas", default=1),
    )
    return None if ready >= wanted else f"{int(ready)} of {int(wanted)} Qdrant pods are ready"


def _scale_to_zero(stateful_set: Manifest) -> None:
    """The volumes stay: that is what a StatefulSet does when it is scaled, unless told otherwise (Kubernetes'
    documentation, "PersistentVolumeClaim retention", read 2026-12-01)."""
    stateful_set["spec"]["replicas"] = 0


def _still_runs(stateful_set: Manifest) -> str | None:
    generation = at(stateful_set, "metadata", "generation", default=0)
    if at(stateful_set, "status", "observedGeneration", default=generation) < generation:
        return "the StatefulSet's last update was not seen by its cluster yet"
    left = at(stateful_set, "status", "replicas")
    if left is None:
        return "its cluster has not said how many pods there are"
    return f"{int(left)} Qdrant pods are still there" if left else None


def _is_stopped(stateful_set: Manifest) -> bool:
    return bool(at(stateful_set, "spec", "replicas") == 0)


WORKLOAD = Workload(
    MAIN,
    build,
    observe,
    _not_ready,
    Stopping({MAIN: _scale_to_zero}, _still_runs, STOPPED_WHEN, _is_stopped, keeps_slot=True),
)
