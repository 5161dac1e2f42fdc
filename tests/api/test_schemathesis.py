"""Schemathesis over the whole API: what the OpenAPI document allows and what it doesn't, as somebody who may do much.

In charge of: that no input ends in a 500, that each answer is as described, that what is not described is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from schemathesis.specs.openapi.schemas import OpenApiSchema

from portal.wsgi import application
from tests.world import World

pytestmark = pytest.mark.slow
EVERYTHING = "ada, with every scope"
EXAMPLES = 200 if os.environ.get("SCHEMATHESIS") == "full" else 25


@pytest.fixture
def described(world: World) -> Iterator[OpenApiSchema]:
    """The API as it describes itself. Requests stay in the test's transaction, as with Django's own test client."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield schemathesis.openapi.from_wsgi("/api/v1/schema/", application)
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_operation(case: schemathesis.Case, world: World) -> None:
    """By somebody of a team who has every scope."""
    # What a cursor and a spec may be isn't said by the document: the list and the offering that they are of judge them.
    case.call_and_validate(
        headers={"Authorization": f"Bearer {_token(world)}"}, excluded_checks=[positive_data_acceptance]
    )


def _token(world: World) -> str:
    if EVERYTHING not in world.tokens:
        world.tokens[EVERYTHING] = world.token("ada", ["read", "request", "approve", "feed"])
    return world.tokens[EVERYTHING]
