"""In charge of: how much is measured, and what it is measured in.

Small sizes are part of `make test`. BENCHMARK=full, which `python -m tests.benchmarks` sets, is what README shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.test import override_settings

from tests.benchmarks import filling


@dataclass(frozen=True)
class Size:
    """`rows` of requests, `rounds` of each call, `seconds` of contention."""

    rows: int
    rounds: int
    seconds: float
    full: bool = False


@pytest.fixture(scope="session")
def size() -> Size:
    return Size(10_000, 300, 8, full=True) if os.environ.get("BENCHMARK") == "full" else Size(400, 30, 1)


@pytest.fixture
def open_world(transactional_db: None) -> None:
    """The sample world without ceilings, committed."""
    filling.open_world()


@pytest.fixture
def application() -> Iterator[WSGIHandler]:
    """The portal with the bare view beside it."""
    with override_settings(ROOT_URLCONF="tests.benchmarks.beside"):
        yield WSGIHandler()
