"""How much of the fleet a claim takes: spec -> ``placement.Need``, per kind.

The amounts are also what the governance side meters (``offering.yaml`` beside each XRD says it in CEL); a contract test
holds the two together.
"""

from composition_function.contract import Manifest, at, text, whole
from composition_function.sizing import instances, memory_gib
from composition_function.slots import VECTOR_MEMORY, Need


def need_of(claim: Manifest) -> Need:
    """What a ModelDeployment or VectorDatabase takes at its maximum. Raises SpecError for a spec that can't be read."""
    regions = frozenset(at(claim, "spec", "regions", default=[]))
    classification = text(claim, "spec", "dataClassification")
    if claim.get("kind") == "VectorDatabase":
        total, pieces = memory_gib(claim), instances(claim)
        backups = whole(claim, "spec", "backup", "retentionDays") > 0
        return Need(VECTOR_MEMORY, total, -(-total // pieces), pieces, regions, classification, backups)
    count = whole(claim, "spec", "accelerator", "count", minimum=1)
    replicas = whole(claim, "spec", "replicas", "max", minimum=1)
    return Need(text(claim, "spec", "accelerator", "class"), count * replicas, count, replicas, regions, classification)
