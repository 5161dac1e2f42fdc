"""The pods of a Qdrant: image, settings, probes, and how several of them find each other.

Settings are Qdrant's defaults for new collections (its config/config.yaml, read 2026-12): a collection made with
settings of its own overrides them.
"""

from composition_function import naming
from composition_function.contract import Manifest, text
from composition_function.sizing import copies, memory_mib_per_instance

IMAGE = "qdrant/qdrant:v1.15.4-unprivileged"
HTTP_PORT = 6333
GRPC_PORT = 6334
PEER_PORT = 6335
USER = 1000  # of the unprivileged image
# The names of pods and of their revisions are labels of at most 63 characters, and get up to 11 more.
NAME_MAX = 50
DATA = "storage"
KEY = "api-key"
# How each precision is kept in memory when a collection doesn't say otherwise. The full vectors stay on disk.
QUANTIZATION = {
    "int8": {"SCALAR__TYPE": "int8", "SCALAR__ALWAYS_RAM": "true"},
    "binary": {"BINARY__ALWAYS_RAM": "true"},
}


def name_of(composite: Manifest) -> str:
    """What the StatefulSet of a claim is called."""
    return naming.short(composite["metadata"]["name"], NAME_MAX)


def labels_of(composite: Manifest) -> Manifest:
    """By which its pods are found."""
    return {"app.kubernetes.io/name": "qdrant", "app.kubernetes.io/instance": name_of(composite)}


def pod_spec(composite: Manifest, replicas: int) -> Manifest:
    """The spec of each of ``replicas`` pods."""
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
                "labelSelector": {"matchLabels": labels_of(composite)},
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
        first = f"http://{name_of(composite)}-0.{name_of(composite)}-peers:{PEER_PORT}"
        container["command"] = ["/bin/sh", "-c", _START, "start", first, f"{name_of(composite)}-peers"]
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
    key = {"name": f"{name_of(composite)}-key", "key": KEY}
    return [
        *({"name": name, "value": value} for name, value in settings.items()),
        {"name": "QDRANT__SERVICE__API_KEY", "valueFrom": {"secretKeyRef": key}},
    ]
