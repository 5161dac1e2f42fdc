"""The tests' own database is a real PostgreSQL."""

import pytest
from django.db import connection


@pytest.mark.django_db
def test_it_is_postgresql() -> None:
    assert connection.vendor == "postgresql"
    assert str(connection.settings_dict["NAME"]).startswith("test_")
