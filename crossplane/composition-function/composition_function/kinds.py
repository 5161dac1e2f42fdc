"""Kind -> what composes it, and which other objects it has to see. To add a kind: its module, and a row here."""

from collections.abc import Callable
from dataclasses import dataclass

from composition_function import fleet
from composition_function.contract import Outcome, Request, Selector
from composition_function.modeldeployment import compose_model


@dataclass(frozen=True)
class Kind:
    """How one kind of claim is handled."""

    compose: Callable[[Request], Outcome]
    requires: tuple[Selector, ...]


KINDS = {
    "ModelDeployment": Kind(compose_model, (fleet.ACCELERATOR_CLASSES, fleet.CLUSTERS, fleet.MODELS)),
}
