"""A whole portal of real processes, and ways to act on it: over HTTP as a person, on its database, as an operator.

In charge of: what every test with a running portal needs. Not in charge of: how it was started, or any outcome.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg

from portal.running.plan import ROOT, Portal

FINAL_BAD = {"Denied", "Rejected", "Withdrawn", "Expired", "Superseded", "Failed"}


def database(name: str, **changes: Any) -> dict[str, Any]:
    """A body that creates a small vector database in dev, which is approved at once."""
    spec = {
        "engine": "qdrant",
        "vectors": 100_000,
        "dimensions": 384,
        "precision": "float32",
        "highAvailability": False,
        "backup": {"retentionDays": 0},
        "dataClassification": "internal",
    }
    body = {"kind": "Create", "offering": "vectordatabases", "team": "search", "environment": "dev", "name": name}
    return {**body, "spec": spec, **changes}


@contextmanager
def database_for(server: str | None, name: str) -> Iterator[str]:
    """The address of a database of one's own for a while, on this test run's server (None: on DATABASE_URL's)."""
    server, name = server or os.environ["DATABASE_URL"], f"{name}_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@dataclass
class Front:
    """The portal and its people."""

    portal: Portal
    tokens: dict[str, str] = field(default_factory=dict)

    # --- over HTTP ----------------------------------------------------------------------------------------------------

    def call(self, who: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        return httpx.request(method, f"{self.portal.url}/api/v1/{path}", headers=headers, timeout=30, **more)

    def get(self, who: str, path: str, **params: str) -> dict[str, Any]:
        return dict(self.call(who, "GET", path, params=params).raise_for_status().json())

    def submit(self, who: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.call(who, "POST", "requests/", json=body)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def request(self, request_id: str) -> dict[str, Any]:
        return self.get("olivia", f"requests/{request_id}/")

    def instance(self, instance_id: str) -> dict[str, Any]:
        return self.get("olivia", f"instances/{instance_id}/")

    def done(self, request: dict[str, Any], seconds: float = 60.0) -> dict[str, Any]:
        """Wait until the request is Done; fails at once when it ends otherwise."""
        deadline = time.monotonic() + seconds
        while (now := self.request(request["id"]))["state"] != "Done":
            assert now["state"] not in FINAL_BAD, (now["state"], now["failure"], now["decision"]["reasons"])
            assert time.monotonic() < deadline, f"still {now['state']} after {seconds:g} s: {now}"
            time.sleep(0.1)
        return now

    def delete(self, who: str, instance_id: str) -> dict[str, Any]:
        """Ask for its deletion and wait until it is gone."""
        done = self.done(self.submit(who, {"kind": "Delete", "instance": instance_id}))
        assert self.instance(instance_id)["phase"] == "Gone"
        return done

    def steps(self, request_id: str) -> list[str]:
        """The verbs of a request's audit events, in order."""
        found = self.get("olivia", "audit/", request=request_id, limit="200")["items"]
        return [event["verb"] for event in sorted(found, key=lambda event: event["id"])]

    def entities(self) -> dict[str, dict[str, Any]]:
        """The whole catalog feed, by entity name."""
        found: dict[str, dict[str, Any]] = {}
        path: str | None = "catalog/entities/"
        while path:
            page = self.call("catalog-service", "GET", path.removeprefix(f"{self.portal.url}/api/v1/"))
            found |= {entity["metadata"]["name"]: entity for entity in page.raise_for_status().json()["entities"]}
            path = page.json()["next"]
        return found

    # --- on its database ----------------------------------------------------------------------------------------------

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.portal.database_url, autocommit=True) as connection:
            return connection.execute(query, values).fetchall()

    def holds(self, instance_id: str) -> tuple[int, int]:
        """How many reservations and commitments of an instance are not given back."""
        reservations = "SELECT 1 FROM portal_reservation WHERE instance_id = %s AND state <> 'released'"
        commitments = "SELECT 1 FROM portal_commitment WHERE instance_id = %s AND NOT released"
        return len(self.rows(reservations, instance_id)), len(self.rows(commitments, instance_id))

    @contextmanager
    def holding(self, query: str) -> Iterator[None]:
        """A transaction of the test's own that holds the row locks which the query takes."""
        with psycopg.connect(self.portal.database_url) as connection:
            locked = connection.execute(query).fetchall()
            assert locked, f"nothing to hold: {query}"
            yield
            connection.rollback()

    # --- as an operator ----------------------------------------------------------------------------------------------

    def manage(self, *arguments: str) -> str:
        """A management command, as an operator would run it beside the portal."""
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.portal.environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def begin(self, sample: Path) -> None:
        """Load the people and their ceilings, and get everybody a token."""
        self.manage("bootstrap", str(sample))
        accounts = json.loads(self.manage("demo_accounts"))
        self.tokens = {account["username"]: account["token"] for account in accounts}
