"""Other objects, as dicts, -> what placement needs to know of them.

In charge of tolerating what is missing or malformed in objects that are not the claim being composed: an unreadable
cluster or claim is left out and named, it never stops anybody else.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from composition_function.contract import Manifest, Selector, SpecError, at, text, whole
from composition_function.needs import need_of
from composition_function.slots import VECTOR_MEMORY, Claim, Cluster, Pool, Slot

API_VERSION = "aiplatform.example.org/v1alpha1"
ACCELERATOR_CLASSES = Selector("accelerator-classes", API_VERSION, "AcceleratorClass")
CLUSTERS = Selector("inference-clusters", API_VERSION, "InferenceCluster")
MODELS = Selector("model-deployments", API_VERSION, "ModelDeployment")
DATABASES = Selector("vector-databases", API_VERSION, "VectorDatabase")

VECTOR_POOL = "vector-storage"
VECTOR_RESOURCE = "memory_gib"  # what a cluster's status calls VECTOR_MEMORY

T = TypeVar("T")


def read_all(objects: Iterable[Manifest], read: Callable[[Manifest], T]) -> tuple[list[T], list[str]]:
    """Each object through ``read``; what can't be read is returned as complaints instead."""
    found: list[T] = []
    complaints: list[str] = []
    for item in objects:
        try:
            found.append(read(item))
        except SpecError as error:
            complaints.append(f"left out: {error}")
    return found, complaints


def read_cluster(item: Manifest) -> Cluster:
    """An InferenceCluster. Capacity is what its status counted; it counts as reachable until its status says not."""
    pools = at(item, "status", "pools")
    return Cluster(
        name=text(item, "metadata", "name"),
        region=text(item, "spec", "region"),
        classifications=frozenset(at(item, "spec", "dataClassifications", default=[])),
        pools=tuple(_pool(item, pool) for pool in pools or []),
        cordoned=at(item, "spec", "cordoned", default=False) is True,
        reachable=at(item, "status", "reachable", default=True) is not False,
        backups=bool(at(item, "spec", "vectorStorage", "backupStore")),
        counted=pools is not None,
    )


def _pool(cluster: Manifest, pool: Manifest) -> Pool:
    document = {**cluster, "pool": pool}
    resource = text(document, "pool", "resource")
    sizes = [
        (whole({**cluster, "node": node}, "node", "size"), whole({**cluster, "node": node}, "node", "count"))
        for node in at(pool, "nodes", default=[])
    ]
    return Pool(
        name=text(document, "pool", "name"),
        resource=VECTOR_MEMORY if resource == VECTOR_RESOURCE else resource,
        capacity=whole(document, "pool", "capacity"),
        nodes=tuple(sizes) if "nodes" in pool else None,
    )


_READ: dict[str, tuple[str, Claim]] = {}
_MANY = 20_000


def read_claim(item: Manifest) -> Claim:
    """A claim, each version of it only once. Raises SpecError."""
    uid, version = at(item, "metadata", "uid"), at(item, "metadata", "resourceVersion")
    if not uid or not version:
        return _claim(item)
    kept = _READ.get(uid)
    if kept is not None and kept[0] == version:
        return kept[1]
    if len(_READ) > _MANY:
        _READ.clear()
    claim = _claim(item)
    _READ[uid] = (version, claim)
    return claim


def _claim(item: Manifest) -> Claim:
    """A ModelDeployment or VectorDatabase. Bound is what its function wrote when it composed the workload."""
    cluster = at(item, "status", "placement", "cluster")
    pool = at(item, "status", "placement", "pool")
    name = text(item, "metadata", "name")
    namespace = at(item, "metadata", "namespace", default="")
    marker = "replicas" if item.get("kind") == "ModelDeployment" else "connectionSecretName"
    return Claim(
        uid=at(item, "metadata", "uid", default=f"{namespace}/{name}"),
        name=f"{namespace}/{name}",
        created=at(item, "metadata", "creationTimestamp", default="~"),  # none yet: after all that have one
        need=need_of(item),
        held=Slot(cluster, pool) if cluster and pool else None,
        bound=at(item, "status", marker) is not None,
        movable=item.get("kind") == "ModelDeployment",
        deleting=at(item, "metadata", "deletionTimestamp") is not None,
        composed=int(at(item, "status", "placement", "units", default=0)),
        leaving=tuple(
            (Slot(text({"l": left}, "l", "cluster"), text({"l": left}, "l", "pool")), whole({"l": left}, "l", "units"))
            for left in at(item, "status", "placement", "leaving", default=[])
        ),
    )
