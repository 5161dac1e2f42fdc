"""A caller for every person of the world, and proof that a refusal wrote nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from django.apps import apps
from django.db import connection, transaction
from pytest_django.plugin import DjangoDbBlocker

from tests.api.calls import Caller
from tests.world import World, build_world

As = Callable[..., Caller]
Unwritten = Callable[[], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def _world_of_module(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Built once for the tests of a module, in a transaction around them; `db` makes a savepoint for each."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield build_world()
        transaction.set_rollback(True)


@pytest.fixture
def world(_world_of_module: World, db: None) -> World:
    return _world_of_module


@pytest.fixture
def call_as(world: World) -> As:
    """call_as("ada") calls with ada's token; call_as("ada", ["read"]) with a new one of that scope."""

    def caller(username: str, scopes: list[str] | None = None) -> Caller:
        return Caller(world.tokens[username] if scopes is None else world.token(username, scopes))

    return caller


@pytest.fixture
def nothing_written() -> Unwritten:
    """A block after which every row of every table is as it was before."""

    @contextmanager
    def block() -> Iterator[None]:
        before = _contents()
        yield
        assert _contents() == before

    return block


def _contents() -> dict[str, tuple[int, str]]:
    """Number of rows and a checksum over all of them, of every table, in one statement."""
    tables = sorted({model._meta.db_table for model in apps.get_models(include_auto_created=True)})
    each = "SELECT '{0}', count(*), md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM \"{0}\" t"
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(each.format(table) for table in tables))
        return {table: (count, checksum) for table, count, checksum in cursor.fetchall()}
