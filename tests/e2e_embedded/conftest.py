"""In charge of: one portal of real processes for all tests of this folder, with a third offering from files.

The supervisor starts web, worker, beat, mirror and the embedded control plane; the tests own the broker and the
composition functions, to take them away. The database is one of its own on the test run's PostgreSQL.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from portal.running import supervisor
from portal.running.plan import ROOT, Options, running_portal
from tests.e2e_embedded.house import ENVIRONMENT, House
from tests.e2e_embedded.parts import Broker, composition_function, notebook_function
from tests.front import database_for

NOTEBOOKS = Path(__file__).parent / "notebookservers"
SAMPLE = ROOT / "portal" / "demo" / "sample.yaml"


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """Unix sockets need short paths."""
    folder = Path(tempfile.mkdtemp(prefix="pe-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def own_database(_database_server: str | None) -> Iterator[str]:
    """A database that nothing else uses, on the server of this test run."""
    with database_for(_database_server, "portal_e2e") as url:
        yield url


@pytest.fixture(scope="session")
def third_offering(short_folder: Path) -> Path:
    """A folder of offerings beside the shipped one."""
    folder = short_folder / "offerings"
    shutil.copytree(NOTEBOOKS, folder / "notebookservers")
    return folder


@pytest.fixture(scope="session")
def bootstrap_file(short_folder: Path) -> Path:
    """The sample world, with a policy, a price and a quota for the third offering."""
    folder = short_folder / "sample"
    folder.mkdir()
    sample: dict[str, Any] = yaml.safe_load(SAMPLE.read_text())
    sample["quotas"].append({"team": "search", "dimension": "notebook.cpus", "limit": 8})
    bundle: dict[str, Any] = yaml.safe_load((SAMPLE.parent / sample["bundle"]).read_text())
    bundle["spec"]["approvals"].append(
        {
            "code": "big-notebook",
            "appliesTo": {"offerings": ["notebookservers"], "kinds": ["Create"]},
            "when": "spec.cpus > 4",
            "messageExpression": '"up to 4 CPUs are approved at once; you asked for " + string(spec.cpus)',
            "field": "/spec/cpus",
            "group": "platform-approvers",
            "quorum": 1,
            "timeoutHours": 72,
        }
    )
    prices = (SAMPLE.parent / sample["prices"]).read_text().rstrip("\n")
    prices += "\nnotebook.cpu,month,7.50,USD,*,2026-01-01,a price of this test,2026-01-01\n"
    (folder / "bundle.yaml").write_text(yaml.safe_dump(bundle))
    (folder / "prices.csv").write_text(prices)
    own = {"bundle": "bundle.yaml", "prices": "prices.csv", "directory": str(SAMPLE.parent / sample["directory"])}
    (folder / "sample.yaml").write_text(yaml.safe_dump({**sample, **own}))
    return folder / "sample.yaml"


@pytest.fixture(scope="session")
def house(short_folder: Path, own_database: str, third_offering: Path, bootstrap_file: Path) -> Iterator[House]:
    """The portal, up and with people in it."""
    broker = Broker(short_folder / "broker")
    function = composition_function(short_folder / "function.sock")
    notebooks = notebook_function(short_folder / "notebooks.sock")
    parts = (broker, function, notebooks)
    options = Options(
        state=short_folder / "state",
        database_url=own_database,
        broker_url=broker.url,
        http_port=18_400,
        next_free_port=True,
        function_endpoints={"composition-function": function.address, "notebook-function": notebooks.address},
        environment={**ENVIRONMENT, "OFFERINGS_PATH": f"{ROOT / 'crossplane' / 'apis'}:{third_offering}"},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervisor, "FAST", 0.5)  # workers are killed here on purpose: that is no reason to give up
        try:
            for part in parts:
                part.start()
            with running_portal(options) as portal:
                found = House(portal, broker=broker, function=function)
                found.begin(bootstrap_file)
                yield found
        finally:
            for part in parts:
                part.kill()
