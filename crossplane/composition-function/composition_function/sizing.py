"""Memory and disk of a vector database, in whole GiB. Integer arithmetic throughout, so that the same formula in CEL
(``offering.yaml`` of VectorDatabase) gives the same number.

Bytes of a vector as stored: 4 per dimension as float32, 2 as float16, 1 as int8, 1/8 as binary; pgvector adds 8 bytes
to each (pgvector's README, "Vector Types", read 2026-12). The index and bookkeeping make it 1.5 times as much (Qdrant's
documentation, "Capacity planning", read 2026-12); the same factor for pgvector is a rule of ours.
"""

from composition_function.contract import Manifest, SpecError, at, describe, text, whole

GIB = 1 << 30
# Disk that logs, snapshots in the making and the system itself need beside the data. A rule of ours.
DISK_BASE_GIB = 10

# Copies of the data when highAvailability is set: a CloudNativePG standby, a Qdrant replication factor of 2.
COPIES = 2
# Qdrant agrees by Raft: with two nodes the loss of one stops changes to collections, so it gets three for two copies.
QDRANT_HA_NODES = 3


def memory_gib(claim: Manifest) -> int:
    """Memory of all instances together."""
    one_copy = -(-_stored_bytes(claim) * 3 // (2 * GIB))
    return one_copy * copies(claim)


def copies(claim: Manifest) -> int:
    """How often each vector is kept."""
    return COPIES if at(claim, "spec", "highAvailability", default=False) else 1


def instances(claim: Manifest) -> int:
    """How many pods share the memory."""
    if copies(claim) == 1:
        return 1
    return QDRANT_HA_NODES if text(claim, "spec", "engine") == "qdrant" else COPIES


def memory_mib_per_instance(claim: Manifest) -> int:
    """The memory limit of one pod; rounded down, so that together they stay within ``memory_gib``."""
    return memory_gib(claim) * 1024 // instances(claim)


def disk_gib_per_instance(claim: Manifest) -> int:
    """Twice the data (the index, and room to rebuild it) over the instances, and a base.

    Qdrant keeps full float32 vectors on disk beside quantized ones.
    """
    data = _stored_bytes(claim)
    if text(claim, "spec", "engine") == "qdrant":
        data = whole(claim, "spec", "vectors", minimum=1) * whole(claim, "spec", "dimensions", minimum=1) * 4
    return DISK_BASE_GIB + -(-2 * data * copies(claim) // (GIB * instances(claim)))


def _stored_bytes(claim: Manifest) -> int:
    """All vectors, once."""
    dimensions = whole(claim, "spec", "dimensions", minimum=1)
    precision = text(claim, "spec", "precision")
    sizes = {"float32": 4 * dimensions, "float16": 2 * dimensions, "int8": dimensions, "binary": (dimensions + 7) // 8}
    if precision not in sizes:
        raise SpecError(f"{describe(claim)}: /spec/precision is {precision!r}; it must be one of {', '.join(sizes)}")
    header = 8 if text(claim, "spec", "engine") == "pgvector" else 0
    return whole(claim, "spec", "vectors", minimum=1) * (sizes[precision] + header)
