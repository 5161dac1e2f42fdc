"""The pages are tested with the sample world, signed in as its people."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.world import World, build_world

SignIn = Callable[[str], Client]


@pytest.fixture
def world(db: None) -> World:
    """The sample world, in a transaction that is rolled back."""
    return build_world()


@pytest.fixture
def sign_in(world: World) -> SignIn:
    """A client that is signed in as a person of the sample world."""

    def as_person(username: str) -> Client:
        client = Client()
        client.force_login(User.objects.get(username=username))
        return client

    return as_person
