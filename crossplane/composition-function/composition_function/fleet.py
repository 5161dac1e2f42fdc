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
    """An InferenceCluster. It counts as reachable until its status says otherwise."""
    pools = [
        Pool(
            name=text({**item, "pool": pool}, "pool", "name"),
            resource=text({**item, "pool": pool}, "pool", "acceleratorClass"),
            capacity=whole({**item, "pool": pool}, "pool", "accelerators"),
            per_node=whole({**item, "pool": pool}, "pool", "acceleratorsPerNode", minimum=1),
        )
        for pool in at(item, "spec", "pools", default=[])
    ]
    if at(item, "spec", "vectorStorage"):
        per_node = at(item, "spec", "vectorStorage", "memoryGiBPerNode")
        pools.append(
            Pool(
                name=VECTOR_POOL,
                resource=VECTOR_MEMORY,
                capacity=whole(item, "spec", "vectorStorage", "memoryGiB"),
                per_node=whole(item, "spec", "vectorStorage", "memoryGiBPerNode", minimum=1) if per_node else None,
            )
        )
    return Cluster(
        name=text(item, "metadata", "name"),
        region=text(item, "spec", "region"),
        classifications=frozenset(at(item, "spec", "dataClassifications", default=[])),
        pools=tuple(pools),
        cordoned=at(item, "spec", "cordoned", default=False) is True,
        reachable=at(item, "status", "reachable", default=True) is not False,
        backups=bool(at(item, "spec", "vectorStorage", "backupStore")),
    )


def read_claim(item: Manifest) -> Claim:
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
    )
