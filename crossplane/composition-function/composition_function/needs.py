"""How much of the fleet a claim takes: spec -> ``placement.Need``, per kind.

The amounts are also what the governance side meters (``offering.yaml`` beside each XRD says it in CEL); a contract test
holds the two together.
"""

from dataclasses import replace

from composition_function.contract import Manifest, at, text, whole
from composition_function.sizing import instances, memory_gib
from composition_function.slots import VECTOR_MEMORY, Need

NOT_APPROVED = "NotApproved"  # reason of the condition Placed


def suspended(claim: Manifest) -> bool:
    """Whether a claim asks to be stopped."""
    return at(claim, "spec", "suspend", default=False) is True


def metered(claim: Manifest) -> dict[str, int]:
    """What a claim's spec takes of each dimension that quota counts, as ``offering.yaml`` says it in CEL.

    Raises SpecError. A suspended database keeps its memory, since its data keeps its place; a suspended model
    takes no accelerators.
    """
    if claim.get("kind") == "VectorDatabase":
        return {"vectordb.memory_gib": memory_gib(claim)}
    count = whole(claim, "spec", "accelerator", "count", minimum=1)
    replicas = whole(claim, "spec", "replicas", "max", minimum=1)
    return {f"gpu.{text(claim, 'spec', 'accelerator', 'class')}": 0 if suspended(claim) else count * replicas}


def need_of(claim: Manifest) -> Need:
    """What a ModelDeployment or VectorDatabase takes of the fleet, as others see it. Raises SpecError.

    A suspended ModelDeployment takes nothing from when it was seen at zero: its function then takes ``status.replicas``
    away. What asks to be stopped and still runs still takes what it took. What has no slot and was refused one for want
    of an approval waits for none either, or it would stand in the way of those that may have one.
    """
    need = full_need(claim)
    status = claim.get("status")
    at_zero = suspended(claim) and claim.get("kind") == "ModelDeployment" and at(status, "replicas") is None
    refused = at(status, "placement", "cluster") is None and any(
        at(condition, "type") == "Placed" and at(condition, "reason") == NOT_APPROVED
        for condition in at(status, "conditions", default=[])
    )
    return replace(need, units=0) if at_zero or refused else need


def full_need(claim: Manifest) -> Need:
    """What a claim takes at its maximum, whatever has come of it. Raises SpecError for a spec that can't be read."""
    regions = frozenset(at(claim, "spec", "regions", default=[]))
    classification = text(claim, "spec", "dataClassification")
    if claim.get("kind") == "VectorDatabase":
        total, pieces = memory_gib(claim), instances(claim)
        backups = whole(claim, "spec", "backup", "retentionDays") > 0
        return Need(VECTOR_MEMORY, total, -(-total // pieces), pieces, regions, classification, backups)
    count = whole(claim, "spec", "accelerator", "count", minimum=1)
    replicas = whole(claim, "spec", "replicas", "max", minimum=1)
    return Need(text(claim, "spec", "accelerator", "class"), count * replicas, count, replicas, regions, classification)
