"""In charge of: a real PostgreSQL and a real broker for the tests that ask for them.

DATABASE_URL and BROKER_URL point at servers to use instead. Without them a PostgreSQL starts with the first test that
needs one, in a folder of its own, shared by the processes of one run (each has its own database in it), and ends with
the last.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker

from portal.running import postgres
from portal.running.postgres import UNSAFE_AND_FAST, embedded_postgres
from portal.running.valkey import embedded_valkey
from tests.backstage import town  # noqa: F401 - a fixture
from tests.control_plane import (  # noqa: F401 - fixtures
    clusters,
    control_plane_database,
    control_plane_folder,
    front,
    plane,
    portal,
    scratch,
)

# A machine with other work takes longer, and proves nothing by it. In CI, Hypothesis has a profile of its own that says
# so too, and whose examples are the same each time.
if os.environ.get("CI") != "true":
    hypothesis_settings.register_profile("portal", deadline=None)
    hypothesis_settings.load_profile("portal")

# How the processes of one pytest-xdist run learn where their shared server is.
_SHARED = "PORTAL_TEST_SERVERS"
_PREFIX = "portal-tests-"


def pytest_configure(config: pytest.Config) -> None:
    """The first process makes the folder; workers inherit its name."""
    if not hasattr(config, "workerinput"):
        _remove_what_killed_runs_left()
        os.environ[_SHARED] = tempfile.mkdtemp(prefix=_PREFIX)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The first process removes it, after the workers have gone."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(_SHARED), ignore_errors=True)


def _remove_what_killed_runs_left() -> None:
    """Their PostgreSQL still runs, and nobody holds its lock."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/postgres"):
        if (folder / "users.lock").exists() and os.access(folder, os.W_OK) and postgres.stop_unused(folder):
            shutil.rmtree(folder.parent, ignore_errors=True)


# Marker -> what has to be there for it.
TOOLS = {"go": ("go",), "node": ("node", "npm"), "backstage": ("node", "npm"), "browser": ("chromium",)}
ALONE = (*TOOLS, "slow", "demo")
CROSSPLANE, BACKSTAGE = "crossplane", "backstage"


@pytest.hookimpl(tryfirst=True)  # before xdist's own, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start real parts stay together: under `--dist loadgroup` one process runs them one after the other,
    another those of the real control plane, which wait more than they work, and another those with a Backstage."""
    for item in items:
        if item.get_closest_marker(CROSSPLANE):
            item.add_marker(pytest.mark.xdist_group(CROSSPLANE))
        elif item.get_closest_marker(BACKSTAGE):
            item.add_marker(pytest.mark.xdist_group(BACKSTAGE))
        elif any(item.get_closest_marker(name) for name in ALONE):
            item.add_marker(pytest.mark.xdist_group("alone"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups that xdist did not take in would start a control plane in each of its processes."""
    if session.config.getoption("loadgroup", False):
        lost = [item for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        if lost:
            raise pytest.UsageError(f"pytest-xdist has not taken in the group of {lost[0].nodeid}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A tool that is missing skips its tests; in CI it fails them."""
    for marker, programs in TOOLS.items():
        missing = [name for name in programs if item.get_closest_marker(marker) and not shutil.which(name)]
        if missing and os.environ.get("CI") == "true":
            pytest.fail(f"{missing[0]} is not installed", pytrace=False)
        if missing:
            pytest.skip(f"{missing[0]} is not installed")


@pytest.fixture(scope="session")
def _database_server() -> Iterator[str | None]:
    """The address of the server that this run started, None when DATABASE_URL names one."""
    if os.environ.get("DATABASE_URL"):
        yield None
        return
    with embedded_postgres(Path(os.environ[_SHARED]) / "postgres", UNSAFE_AND_FAST) as url:
        yield url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    _database_server: str | None, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """Points Django at that server, before pytest-django makes the test database."""
    from django.db import connections

    options = connections.databases["default"]["OPTIONS"]
    # Fifty people at once must be fifty connections, not a queue for a few.
    options["pool"] = {**options["pool"], "max_size": 60}
    if _database_server is None:
        return

    # The dictionary is changed in place: connections keep a reference to it.
    connections.databases["default"]["HOST"] = parse_qs(urlsplit(_database_server).query)["host"][0]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """A test database is emptied between tests: there, and nowhere else, TRUNCATE is let through."""
    from tests.tampering import let_tables_be_emptied

    with django_db_blocker.unblock():
        let_tables_be_emptied()


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """The test database's address, for processes that a test starts. What they should see must be committed."""
    from django.db import connection

    settings: dict[str, Any] = connection.settings_dict
    if settings["HOST"].startswith("/"):
        return f"postgresql://{settings['USER']}@/{settings['NAME']}?host={settings['HOST']}"
    return "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**settings)


@pytest.fixture(scope="session")
def broker_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker's address: BROKER_URL, or an embedded Valkey of this process."""
    given = os.environ.get("BROKER_URL")
    if given:
        yield given
        return
    with embedded_valkey(tmp_path_factory.mktemp("valkey")) as url:
        yield url
