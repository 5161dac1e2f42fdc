"""VectorDatabase with engine pgvector -> a CloudNativePG Cluster (postgresql.cnpg.io/v1, read at v1.30.0).

The operator's own PostgreSQL image carries pgvector, so no image is named here. Precision is a matter of the column's
type (vector, halfvec, bit) and so of the user's schema; here it only sets the size.
"""

from composition_function import fleet, naming, objects
from composition_function.contract import Composed, Manifest, Request, at, text, whole
from composition_function.sizing import disk_gib_per_instance, instances, memory_mib_per_instance
from composition_function.suspension import Stopping
from composition_function.workloads import Built, Workload, all_ready

MAIN = "postgres"
BACKUP_SCHEDULE = "backup-schedule"
PORT = 5432
HEALTHY = "Cluster in healthy state"  # a cluster's phase is a sentence (api/v1/cluster_types.go, PhaseHealthy)
# The operator's webhook refuses longer names (internal/webhook/v1/cluster_webhook.go).
NAME_MAX = 50

READY_WHEN = (
    "has(object.status) && has(object.status.phase) && has(object.status.readyInstances) && "
    f'object.status.phase == "{HEALTHY}" && object.status.readyInstances >= object.spec.instances'
)
# Its documentation, "Declarative hibernation": the pods go, the primary's first; the volumes stay. It begins only once
# the cluster is healthy, and tells in a condition of the same name (pkg/reconciler/hibernation of v1.30.0, read
# 2026-12-01).
HIBERNATION = "cnpg.io/hibernation"
STOPPED_WHEN = (
    "has(object.status) && has(object.status.conditions) && "
    f'object.status.conditions.exists(c, c.type == "{HIBERNATION}" && c.status == "True")'
)
CONNECTION_KEYS = ("username", "password", "dbname", "host", "port", "uri")


def build(request: Request, target: objects.Target) -> Built:
    """The Cluster, its namespace and, if backups are kept, their schedule and store."""
    composite = request.composite
    retention = whole(composite, "spec", "backup", "retentionDays")
    store = _backup_store(request, target.slot.cluster) if retention else {}
    cluster = postgres_cluster(composite, store)
    resources = {
        MAIN: Composed(objects.wrap(composite, target, "pg", cluster, READY_WHEN, **_connection(composite, cluster))),
        "namespace": Composed(objects.namespace(composite, target, "pg-namespace")),
    }
    if retention:
        schedule = scheduled_backup(composite, cluster)
        resources[BACKUP_SCHEDULE] = Composed(objects.wrap(composite, target, "pg-backup", schedule))
    observed = request.observed.get(MAIN)
    waiting_for = objects.applied(observed, resources[MAIN].manifest) or _not_ready(objects.workload(observed))
    all_ready(resources, waiting_for)
    return Built(resources, waiting_for, observe(request))


def postgres_cluster(composite: Manifest, store: Manifest) -> Manifest:
    """The Cluster of a VectorDatabase; ``store`` is the backup store of its InferenceCluster, {} for no backups."""
    memory = memory_mib_per_instance(composite)
    spec: Manifest = {
        "instances": instances(composite),
        "bootstrap": {
            "initdb": {
                "database": "app",
                "owner": "app",
                "postInitApplicationSQL": ["CREATE EXTENSION IF NOT EXISTS vector"],
            }
        },
        # A quarter of the memory, as PostgreSQL's documentation advises ("shared_buffers", read 2026-12).
        "postgresql": {"parameters": {"shared_buffers": f"{memory // 4}MB"}},
        "resources": {"requests": {"memory": f"{memory}Mi"}, "limits": {"memory": f"{memory}Mi"}},
        "storage": {"size": f"{disk_gib_per_instance(composite)}Gi"},
    }
    if store:
        spec["backup"] = _backup(composite, store)
    return {
        "apiVersion": "postgresql.cnpg.io/v1",
        "kind": "Cluster",
        # Said although it is the default: provider-kubernetes merges, and would leave an "on" in place.
        "metadata": objects.metadata(
            composite, naming.short(composite["metadata"]["name"], NAME_MAX), {HIBERNATION: "off"}
        ),
        "spec": spec,
    }


def _backup(composite: Manifest, store: Manifest) -> Manifest:
    """Backups to the cluster's object store, kept for as many days as asked for."""
    secret = text(store, "credentialsSecretName")
    barman: Manifest = {
        # Names can come back after a deletion; a folder per claim keeps their backups apart.
        "destinationPath": "/".join((text(store, "destinationPath").rstrip("/"), _folder(composite))),
        "s3Credentials": {
            "accessKeyId": {"name": secret, "key": "ACCESS_KEY_ID"},
            "secretAccessKey": {"name": secret, "key": "ACCESS_SECRET_KEY"},
        },
    }
    endpoint = at(store, "endpointURL")
    if endpoint:
        barman["endpointURL"] = endpoint
    days = whole(composite, "spec", "backup", "retentionDays", minimum=1)
    return {"retentionPolicy": f"{days}d", "barmanObjectStore": barman}


def _folder(composite: Manifest) -> str:
    return str(at(composite, "metadata", "uid", default=composite["metadata"]["namespace"]))


def scheduled_backup(composite: Manifest, cluster: Manifest) -> Manifest:
    """One backup a day, and the first at once. The schedule has a field for seconds."""
    meta = cluster["metadata"]
    return {
        "apiVersion": "postgresql.cnpg.io/v1",
        "kind": "ScheduledBackup",
        "metadata": objects.metadata(composite, meta["name"]),
        "spec": {
            "schedule": "0 0 2 * * *",
            "immediate": True,
            "suspend": False,
            "backupOwnerReference": "cluster",
            "cluster": {"name": meta["name"]},
        },
    }


def _backup_store(request: Request, cluster: str) -> Manifest:
    for item in request.required[fleet.CLUSTERS.name]:
        if at(item, "metadata", "name") == cluster:
            found: Manifest = at(item, "spec", "vectorStorage", "backupStore", default={})
            return found
    return {}


def _connection(composite: Manifest, cluster: Manifest) -> Manifest:
    """Carry the credentials that the operator makes back into a Secret beside the claim."""
    meta = cluster["metadata"]
    secret = {"apiVersion": "v1", "kind": "Secret", "name": f"{meta['name']}-app", "namespace": meta["namespace"]}
    details = [{**secret, "fieldPath": f"data.{key}", "toConnectionSecretKey": key} for key in CONNECTION_KEYS]
    return {
        "connectionDetails": details,
        "writeConnectionSecretToRef": {"name": naming.child(composite, "connection")},
    }


def observe(request: Request) -> Manifest:
    """The Secret's name, always there once composed, and the endpoint once the operator has made its service."""
    observed = objects.workload(request.observed.get(MAIN))
    status: Manifest = {"connectionSecretName": naming.child(request.composite, "connection")}
    service = at(observed, "status", "writeService")
    if service:
        host = f"{service}.{request.composite['metadata']['namespace']}.svc"
        status["endpoint"] = {"host": host, "port": PORT, "scheme": "postgresql"}
    return status


def _not_ready(cluster: Manifest) -> str | None:
    if at(objects.condition(cluster, HIBERNATION), "status") == "True":
        return "CloudNativePG has not woken it yet"
    phase = at(cluster, "status", "phase", default="no phase yet")
    if phase != HEALTHY:
        why = at(cluster, "status", "phaseReason")
        return f"CloudNativePG: {phase}" + (f" ({why})" if why else "")
    ready, wanted = at(cluster, "status", "readyInstances", default=0), at(cluster, "spec", "instances", default=1)
    return None if ready >= wanted else f"{int(ready)} of {int(wanted)} instances are ready"


def _hibernate(cluster: Manifest) -> None:
    cluster["metadata"].setdefault("annotations", {})[HIBERNATION] = "on"


def _pause(schedule: Manifest) -> None:
    """The backups of a hibernated cluster fail (internal/controller/backup_controller.go)."""
    schedule["spec"]["suspend"] = True


def _still_runs(cluster: Manifest) -> str | None:
    hibernation = objects.condition(cluster, HIBERNATION)
    if at(hibernation, "status") == "True":
        return None
    return f"CloudNativePG: {at(hibernation, 'message', default='it has not begun to hibernate it yet')}"


def _is_stopped(cluster: Manifest) -> bool:
    return bool(at(cluster, "metadata", "annotations", HIBERNATION) == "on")


WORKLOAD = Workload(
    MAIN,
    build,
    observe,
    _not_ready,
    Stopping({MAIN: _hibernate, BACKUP_SCHEDULE: _pause}, _still_runs, STOPPED_WHEN, _is_stopped, keeps_slot=True),
)
