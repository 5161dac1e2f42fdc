"""The claims of the shipped offerings' examples, as the portal renders them; both sides of the contract get them.

Not in charge of golden files (goldens) or of what is asserted (the tests).
"""

import functools
from decimal import Decimal
from pathlib import Path
from typing import Any

from portal.domain import strict_yaml
from portal.domain.offerings import Offering, parse_offering
from portal.rendering.claim import ClaimFacts, render_claim

CROSSPLANE = Path(__file__).parents[2] / "crossplane"
APIS = CROSSPLANE / "apis"
EXAMPLES = {
    f"{file.parents[1].name}/{file.stem}": file
    for file in sorted(APIS.glob("*/examples/*.yaml"))
    if (file.parents[1] / "offering.yaml").is_file()
}


@functools.cache
def offering_named(name: str) -> Offering:
    """The offering as the portal reads it."""
    texts = [(APIS / name / file).read_text(encoding="utf-8") for file in ("definition.yaml", "offering.yaml")]
    return parse_offering(name, *texts)


def claim_of(example: str) -> dict[str, Any]:
    """The claim of an example's spec, for an instance with that example's name and namespace."""
    offering = offering_named(example.split("/")[0])
    written = strict_yaml.parse(EXAMPLES[example].read_text(encoding="utf-8"), example)
    team, _, environment = written["metadata"]["namespace"].partition("-")
    facts = ClaimFacts(
        api_version=offering.api_version,
        kind=offering.kind,
        composition=offering.composition,
        composition_revision=offering.composition + "-0000001",
        offering=offering.name,
        offering_digest="0" * 64,  # not the real one: the claim would change with every comment in the file
        instance_id="5a4f2f0e-7f6d-4c0e-9a53-0d8a4a3d2b11",
        instance_name=written["metadata"]["name"],
        name=written["metadata"]["name"],
        namespace=written["metadata"]["namespace"],
        team=team,
        team_title=team.title(),
        environment=environment,
        environment_labels={"stage": environment},
        request_id="1c9b7f6e-33a1-4be7-8a54-1f8ad0b6a0d3",
        requester="ada",
        owner="ada",
        quote_monthly=Decimal("584.00"),
        quote_currency="EUR",
        spec=written["spec"],
    )
    return render_claim(facts)
