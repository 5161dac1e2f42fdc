"""`make demo CONTROL_PLANE=crossplane ONCE=1` as a person runs it: the same table as on the embedded control plane."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.running import addresses, leftovers, postgres
from tests.e2e_embedded.test_demo import EXPECTED, run, unexpected

# Who and what of each line, and its outcome: those of the embedded demo, whose scenario checks price and reason too.
TABLE = [
    ("ada", "Llama-3.1-8B on one L4, dev", "Ready"),
    ("erin", "Llama-3.1-70B on H100s, prod", "Waiting"),
    ("erin", "approves her own request", "Refused"),
    ("frank, heidi", "approve the 70B model", "Ready"),
    ("ben", "Qdrant, 5M x 1536, dev", "Ready"),
    ("carol", "two L4, quota of one", "Denied"),
    ("dave", "two H100s, budget of 1500", "Denied"),
    ("carol, grace", "raise ads' quota to two L4", "Done"),
    ("carol", "two L4 again", "Ready"),
    ("catalog-service", "reads the catalog feed", "Complete"),
]


@pytest.fixture
def state() -> Iterator[Path]:
    """A short path, for Unix sockets; nothing of it stays."""
    folder = Path(tempfile.mkdtemp(prefix="pc-"))
    yield folder
    for each in (folder / "demo", folder / "demo" / "crossplane"):
        leftovers.end(each)
    data = addresses.postgres_folder(folder / "demo")
    if postgres.has_data(data):
        postgres.stop(data)
    shutil.rmtree(folder, ignore_errors=True)


def test_the_same_table_on_a_real_crossplane(state: Path) -> None:
    status, lines, figures = run(state, CONTROL_PLANE="crossplane")
    assert unexpected(lines) == []
    assert {key: figures[key] for key in EXPECTED} == EXPECTED, lines
    assert status == 0
    rows = [line for line in lines if line.startswith(tuple(f"{row[0]:16}" for row in TABLE))]
    assert len(rows) == len(TABLE), lines
    for line, (who, what, outcome) in zip(rows, TABLE, strict=True):
        assert line.startswith(f"{who:16}  {what:30}  {outcome}"), line
    assert leftovers.find(state / "demo") == [], "nothing of the portal runs on"
    assert leftovers.find(state / "demo" / "crossplane") == [], "nothing of the control plane runs on"
