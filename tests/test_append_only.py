"""What was written once stays: the database refuses to change, remove or empty it, for the portal's own role too."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest
from django.db import DatabaseError, connection, transaction

from tests.sample import actor, load_sample, model_body
from tests.tampering import APPEND_ONLY
from tests.world import submit

pytestmark = pytest.mark.django_db

MIGRATION = import_module("portal.migrations.0002_append_only_audit")

CHANGES = [
    pytest.param("portal_auditevent", "verb = 'x'", id="audit event"),
    pytest.param("portal_decisionrecord", "outcome = 'Allowed'", id="decision"),
    pytest.param("portal_vote", "answer = 'approve'", id="vote"),
    pytest.param("portal_document", "name = 'x'", id="document"),
]


@pytest.fixture(autouse=True)
def _written() -> None:
    """A row in each table."""
    from portal.services import approving

    load_sample()
    request = submit("ada", model_body(environment="prod"))
    approving.vote(request.pk, "approve", acting=actor("frank"))


def run(sql: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.fixture
def as_shipped() -> Iterator[None]:
    """The triggers against TRUNCATE as the migration makes them: test databases have them taken away."""
    for table in APPEND_ONLY:
        [statement] = [s for s in MIGRATION.TRIGGERS.format(table=table).split(";") if "TRUNCATE" in s]
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(statement)
    yield


@pytest.mark.parametrize(("table", "change"), CHANGES)
def test_rows_are_not_changed(table: str, change: str) -> None:
    with pytest.raises(DatabaseError, match=f"{table} is append-only: UPDATE is refused"):
        run(f"UPDATE {table} SET {change}")  # noqa: S608


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_rows_are_not_removed(table: str) -> None:
    with pytest.raises(DatabaseError, match=f"{table} is append-only: DELETE is refused"):
        run(f"DELETE FROM {table}")  # noqa: S608


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize("setting", ["", "SET LOCAL portal.audit_may_be_truncated = 'on';"])
def test_tables_are_not_emptied(as_shipped: None, table: str, setting: str) -> None:
    """Not by a setting either: whoever may TRUNCATE may set anything."""
    with pytest.raises(DatabaseError, match="is append-only: TRUNCATE is refused"):
        run(f"{setting} TRUNCATE {table} CASCADE")


def test_every_table_of_the_migration_is_tested() -> None:
    assert set(APPEND_ONLY) == set(MIGRATION.TABLES) == {case.values[0] for case in CHANGES}
