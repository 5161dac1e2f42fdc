"""VectorDatabase -> its engine. In charge of what both engines share: size and connection Secret in the status."""

from composition_function import pgvector, qdrant
from composition_function.contract import Outcome, Request, SpecError, describe, text
from composition_function.sizing import memory_gib
from composition_function.workloads import compose

ENGINES = {"pgvector": pgvector, "qdrant": qdrant}


def compose_database(request: Request) -> Outcome:
    """A VectorDatabase: placed by memory, run by the engine that its spec names."""
    name = text(request.composite, "spec", "engine")
    engine = ENGINES.get(name)
    if engine is None:
        raise SpecError(
            f"{describe(request.composite)}: /spec/engine is {name!r}; it must be one of {', '.join(sorted(ENGINES))}"
        )
    outcome = compose(request, engine.WORKLOAD)
    outcome.status.setdefault("memoryGiB", memory_gib(request.composite))
    return outcome
