"""Services are tested on a real PostgreSQL with the sample world; `world` commits, so that other connections see it."""

from __future__ import annotations

import pytest

from tests.sample import load_sample


@pytest.fixture
def world(transactional_db: None) -> None:
    """The sample world, committed."""
    load_sample()


@pytest.fixture
def sample(db: None) -> None:
    """The sample world, in a transaction that is rolled back."""
    load_sample()
