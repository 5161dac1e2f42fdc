"""In charge of: bringing up a Backstage backend on this machine, in front of a portal that runs, and taking it down.

Its address and the portal's way in are settled before either starts, since each has to know the other. Its databases
are its own, on the server that the portal uses; they outlive the end.

Not in charge of: the portal (portal/running/plan.py).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from psycopg.conninfo import conninfo_to_dict

from portal.running import folders, leftovers
from portal.running.backstage import install, people
from portal.running.backstage.node import node_in
from portal.running.crossplane import ports, probes
from portal.running.crossplane.authority import write_private
from portal.running.program import Program
from portal.running.supervisor import Supervisor

NAME = "backstage"
PORT = 7007  # Backstage's own; another one when it is taken
TEMPLATES = install.ROOT / "scaffolder-templates"
HEALTH = "/.backstage/health/v1/readiness"
DATABASES = "backstage_plugin_"
SECONDS = 2.0  # for one answer while it starts
Say = Callable[[str], None]


@dataclass(frozen=True)
class Address:
    """Where a Backstage of a state folder listens, and with which token the portal comes to it."""

    port: int
    token: str

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """What the portal has to be told."""
        return {"BACKSTAGE_URL": self.url, "BACKSTAGE_TOKEN": self.token}


@dataclass(frozen=True)
class Options:
    """What is started. `state` is a folder of its own."""

    state: Path
    cache: Path  # where packages are kept
    portal_url: str  # without a path
    portal_token: str  # of the portal, scope `feed`
    database_url: str  # libpq; any database of the server: Backstage makes its own
    sample: Path  # bootstrap file whose people and teams are the catalog's
    database_prefix: str = DATABASES
    catalog_files: tuple[Path, ...] = ()  # beside the people and the repository's templates
    config_files: tuple[Path, ...] = ()  # on top of app-config.yaml
    verbose: bool = False


@dataclass(frozen=True)
class Backstage:
    """A backend that runs."""

    url: str  # without a path
    token: str  # the portal's
    supervisor: Supervisor


def address(state: Path) -> Address:
    """Of the Backstage with that state folder; chosen at the first call, and the same later where that is possible."""
    folders.make_private(state / "run")
    port = ports.choose(state / "run" / "ports.json", [NAME], first={NAME: PORT})[NAME]
    path = state / "run" / "portal-token"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32).encode())
    return Address(port, path.read_text())


@contextlib.contextmanager
def running_backstage(options: Options, at: Address, say: Say = lambda line: None) -> Iterator[Backstage]:
    """A Backstage backend for the time of the block; what is missing is installed first. Raises RunningError."""
    folder = install.built(options.cache, say)
    state = options.state.resolve()
    folders.make_private(state)
    with leftovers.own_folder(state, "a Backstage", say):
        environment = {**os.environ, **leftovers.mark(state), **environment_of(options, at)}
        configs = [option for path in ("app-config.yaml", *options.config_files) for option in ("--config", str(path))]
        command = [str(node_in(folder.parent)), "--no-node-snapshot", "index.mjs", *configs]
        ready = partial(_ready, at, len(people.entities(options.sample)))
        program = Program(NAME, command, ready, stage=0, folder=folder, start_seconds=180, stop_seconds=15)
        with Supervisor(state, [program], environment, say, verbose=options.verbose) as supervisor:
            yield Backstage(at.url, at.token, supervisor)


def template_files(folder: Path = TEMPLATES) -> list[Path]:
    """The templates that the repository brings."""
    found = [path for path in sorted(folder.rglob("*.yaml")) if install.MODULE not in path.parents]
    return [path for path in found if "\nkind: Template\n" in path.read_text(encoding="utf-8")]


def environment_of(options: Options, at: Address) -> dict[str, str]:
    """Whatever app-config.yaml names; the catalog files among it are written."""
    state = options.state.resolve()
    people.write(options.sample, state / "catalog" / "people.yaml")
    _write_location(state / "catalog" / "templates.yaml", [*template_files(), *options.catalog_files])
    return {
        "NODE_ENV": "production",
        "BACKSTAGE_URL": at.url,
        "BACKSTAGE_PORT": str(at.port),
        "BACKSTAGE_TOKEN": at.token,
        "BACKSTAGE_DATABASE_PREFIX": options.database_prefix,
        **_database(options.database_url),
        "BACKSTAGE_PEOPLE_FILE": str(state / "catalog" / "people.yaml"),
        "BACKSTAGE_TEMPLATES_FILE": str(state / "catalog" / "templates.yaml"),
        "PORTAL_URL": options.portal_url,
        "PORTAL_TOKEN": options.portal_token,
    }


def _write_location(path: Path, targets: list[Path]) -> None:
    location = {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": "portal-templates"},
        "spec": {"type": "file", "targets": [str(target) for target in targets]},
    }
    path.write_text(yaml.safe_dump(location, sort_keys=False), encoding="utf-8")


def _database(url: str) -> Mapping[str, str]:
    parts = conninfo_to_dict(url)
    return {
        "BACKSTAGE_DATABASE_HOST": str(parts.get("host") or "localhost"),
        "BACKSTAGE_DATABASE_PORT": str(parts.get("port") or 5432),
        "BACKSTAGE_DATABASE_USER": str(parts.get("user") or ""),
        "BACKSTAGE_DATABASE_PASSWORD": str(parts.get("password") or ""),
    }


def _ready(at: Address, wanted: int, pid: int) -> bool:
    """Whether it serves, and its catalog has taken in the people: nobody can sign in before."""
    return probes.healthy(at.port, HEALTH) and _people(at) >= wanted


def _people(at: Address) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", at.port, timeout=SECONDS)
    try:
        path = "/api/catalog/entity-facets?facet=kind"
        connection.request("GET", path, headers={"Authorization": f"Bearer {at.token}"})
        counts = json.loads(connection.getresponse().read())["facets"]["kind"]
        return sum(row["count"] for row in counts if row["value"] in ("User", "Group"))
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return 0
    finally:
        connection.close()
