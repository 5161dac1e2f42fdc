"""What the database's owner can do, and the portal's own words can't: takes triggers off tables that are append-only.

In charge of: letting tests alter and remove what was written once, on purpose. No part of the portal does this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from portal.services import loading

APPEND_ONLY = ("portal_auditevent", "portal_decisionrecord", "portal_vote", "portal_document")


def let_tables_be_emptied() -> None:
    """Take away the triggers against TRUNCATE, for good: for a test database alone."""
    with connection.cursor() as cursor:
        for table in APPEND_ONLY:
            cursor.execute(f"DROP TRIGGER IF EXISTS portal_no_truncate ON {table}")


@contextmanager
def owner_of_tables() -> Iterator[None]:
    """Inside the block rows of these tables can be changed and removed."""
    _turn("DISABLE")
    try:
        yield
    finally:
        if not connection.needs_rollback:
            _turn("ENABLE")


def tamper(sql: str, parameters: list[object]) -> int:
    """Run one statement as the owner would. Returns how many rows it touched; it must touch some."""
    with owner_of_tables(), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        assert cursor.rowcount > 0, sql
        return cursor.rowcount


def forget_what_was_parsed() -> None:
    """As a new process begins: nothing is in the caches of loading."""
    for cached in (loading.offering_by_digest, loading.bundle_by_digest, loading.price_rows, loading._price_list):
        cached.cache_clear()  # type: ignore[attr-defined]  # each is an lru_cache


def _turn(word: str) -> None:
    with connection.cursor() as cursor:
        # Checks of foreign keys that wait for the end of the transaction stand in the way of ALTER TABLE.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        for table in APPEND_ONLY:
            cursor.execute(f"ALTER TABLE {table} {word} TRIGGER portal_no_change")
