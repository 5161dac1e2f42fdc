"""VectorDatabase with engine qdrant -> a StatefulSet, two Services and a Secret; no operator is needed.

Settings are Qdrant's defaults for new collections (its config/config.yaml, read 2026-12): a collection made with
settings of its own overrides them.
"""

import base64
import hashlib
import secrets

from composition_function import naming, objects
from composition_function.contract import Composed, Manifest, Request, at, text
from composition_function.sizing import copies, disk_gib_per_instance, instances, memory_mib_per_instance
from composition_function.workloads import Built, all_ready

MAIN = "qdrant"
IMAGE = "qdrant/qdrant:v1.15.4-unprivileged"
HTTP_PORT = 6333
GRPC_PORT = 6334
PEER_PORT = 6335
USER = 1000  # of the unprivileged image
# The names of pods and of their revisions are labels of at most 63 characters, and get up to 11 more.
NAME_MAX = 50
DATA = "storage"
KEY = "api-key"

READY_WHEN = (
    "has(object.status) && has(object.status.readyReplicas) && object.status.readyReplicas >= object.spec.replicas && "
    "(!has(object.status.observedGeneration) || object.status.observedGeneration >= object.metadata.generation)"
)
# How each precision is kept in memory when a collection doesn't say otherwise. The full vectors stay on disk.
QUANTIZATION = {
    "int8": {"SCALAR__TYPE": "int8", "SCALAR__ALWAYS_RAM": "true"},
    "binary": {"BINARY__ALWAYS_RAM": "true"},
}


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


def _name(composite: Manifest) -> str:
    return naming.short(composite["metadata"]["name"], NAME_MAX)


def _service_name(composite: Manifest) -> str:
    """Never the bare name: another database could be called like this one's peers."""
    return f"{_name(composite)}-qdrant"


def _labels(composite: Manifest) -> Manifest:
    return {"app.kubernetes.io/name": "qdrant", "app.kubernetes.io/instance": _name(composite)}


def _metadata(composite: Manifest, name: str) -> Manifest:
    meta = objects.metadata(composite, name)
    return {**meta, "labels": {**meta.get("labels", {}), **_labels(composite)}}


def _stateful_set(composite: Manifest, key: str) -> Manifest:
    replicas = instances(composite)
    spec: Manifest = {
        "replicas": replicas,
        "serviceName": f"{_name(composite)}-peers",
        # Peers find each other through the first, which must not wait for the others.
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": _labels(composite)},
        "template": {
            "metadata": {
                "labels": _metadata(composite, _name(composite))["labels"],
                # Another key restarts the pods; they read it only at start.
                "annotations": {f"{objects.GROUP}/api-key-hash": hashlib.sha256(key.encode()).hexdigest()[:16]},
            },
            "spec": _pod(composite, replicas),
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
        "metadata": _metadata(composite, _name(composite)),
        "spec": spec,
    }


def _pod(composite: Manifest, replicas: int) -> Manifest:
    pod: Manifest = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "automountServiceAccountToken": False,
        "containers": [_container(composite, replicas)],
    }
    if replicas > 1:
        pod["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": _labels(composite)},
            }
        ]
    return pod


def _container(composite: Manifest, replicas: int) -> Manifest:
    memory = {"memory": f"{memory_mib_per_instance(composite)}Mi"}
    container: Manifest = {
        "name": "qdrant",
        "image": IMAGE,
        "env": _environment(composite, replicas),
        "ports": [
            {"name": "http", "containerPort": HTTP_PORT},
            {"name": "grpc", "containerPort": GRPC_PORT},
            {"name": "peer", "containerPort": PEER_PORT},
        ],
        "resources": {"requests": memory, "limits": dict(memory)},
        "startupProbe": _probe("/readyz", failures=60),
        "readinessProbe": _probe("/readyz", failures=3),
        "livenessProbe": _probe("/livez", failures=6),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": DATA, "mountPath": "/qdrant/storage"}],
    }
    if replicas > 1:
        first = f"http://{_name(composite)}-0.{_name(composite)}-peers:{PEER_PORT}"
        container["command"] = ["/bin/sh", "-c", _START, "start", first, f"{_name(composite)}-peers"]
    return container


# The first pod starts the cluster, the others join it. All that varies comes as an argument, nothing is pasted in.
_START = (
    'case "$HOSTNAME" in *-0) exec ./entrypoint.sh --uri "$1" ;; '
    f'*) exec ./entrypoint.sh --bootstrap "$1" --uri "http://$HOSTNAME.$2:{PEER_PORT}" ;; esac'
)


def _probe(path: str, failures: int) -> Manifest:
    return {"httpGet": {"path": path, "port": HTTP_PORT}, "periodSeconds": 5, "failureThreshold": failures}


def _environment(composite: Manifest, replicas: int) -> list[Manifest]:
    settings = {
        "QDRANT__STORAGE__SNAPSHOTS_PATH": "/qdrant/storage/snapshots",
        "QDRANT__TELEMETRY_DISABLED": "true",
    }
    if replicas > 1:
        settings["QDRANT__CLUSTER__ENABLED"] = "true"
        settings["QDRANT__STORAGE__COLLECTION__REPLICATION_FACTOR"] = str(copies(composite))
    for name, value in QUANTIZATION.get(text(composite, "spec", "precision"), {}).items():
        settings[f"QDRANT__STORAGE__COLLECTION__QUANTIZATION__{name}"] = value
    key = {"name": f"{_name(composite)}-key", "key": KEY}
    return [
        *({"name": name, "value": value} for name, value in settings.items()),
        {"name": "QDRANT__SERVICE__API_KEY", "valueFrom": {"secretKeyRef": key}},
    ]


def _service(composite: Manifest, *, headless: bool) -> Manifest:
    """The Service that clients use, or the headless one by which pods find each other before they are ready."""
    ports = {"http": HTTP_PORT, "grpc": GRPC_PORT}
    spec: Manifest = {"selector": _labels(composite)}
    name = _service_name(composite)
    if headless:
        name = f"{_name(composite)}-peers"
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
        "metadata": _metadata(composite, f"{_name(composite)}-key"),
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
