"""Kind -> what composes it, and which other objects it has to see. To add a kind: its module, and a row here."""

from collections.abc import Callable
from dataclasses import dataclass

from composition_function import approvals, fleet
from composition_function.contract import Manifest, Outcome, Request, Selector
from composition_function.fleet_kinds import compose_accelerator_class, compose_cluster, nodes_selector
from composition_function.modeldeployment import compose_model
from composition_function.objects import own_selector
from composition_function.vectordatabase import compose_database


@dataclass(frozen=True)
class Kind:
    """How one kind of claim is handled."""

    compose: Callable[[Request], Outcome]
    requires: tuple[Selector, ...]  # one that asks for approval keys needs an approval
    # What depends on the claim itself. Raises SpecError.
    requires_for: Callable[[Manifest], tuple[Selector, ...]] = lambda composite: ()

    def selectors(self, composite: Manifest) -> tuple[Selector, ...]:
        """All that this claim has to see. Raises SpecError."""
        return self.requires + self.requires_for(composite)


KINDS = {
    "ModelDeployment": Kind(
        compose_model,
        (approvals.KEYS, fleet.ACCELERATOR_CLASSES, fleet.CLUSTERS, fleet.MODELS),
        lambda composite: (own_selector(composite),),
    ),
    "VectorDatabase": Kind(
        compose_database,
        (approvals.KEYS, fleet.CLUSTERS, fleet.DATABASES),
        lambda composite: (own_selector(composite),),
    ),
    "AcceleratorClass": Kind(compose_accelerator_class, ()),
    "InferenceCluster": Kind(
        compose_cluster,
        (fleet.ACCELERATOR_CLASSES, fleet.MODELS, fleet.DATABASES),
        lambda composite: (nodes_selector(composite),),
    ),
}
