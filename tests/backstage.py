"""A real Backstage backend in front of a running portal, and ways to act on it as a person.

In charge of: what every test with a Backstage needs, and the fixtures, which tests/conftest.py takes in. Not in charge
of: the portal (tests/front.py), or any outcome.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psycopg
import pytest
import yaml
from django.conf import settings

from portal.rendering.names import ANNOTATION_PREFIX
from portal.running import supervisor
from portal.running.backstage import plan
from portal.running.plan import ROOT, Options, Portal, running_portal
from tests.front import Front, database, database_for
from tests.wire import Wire

SAMPLE = ROOT / "portal" / "demo" / "sample.yaml"
BY_HAND = ROOT / "tests" / "e2e_backstage" / "by_hand.yaml"
ENVIRONMENT = {
    "PORTAL_DEMO": "true",  # for tokens of everybody
    "OUTBOX_SWEEP_SECONDS": "0.3",
    "OUTBOX_LEASE_SECONDS": "5",
    "OUTBOX_BACKOFF_LIMIT_SECONDS": "2",
    "SIMULATOR_DELAY": "0.2",
    "EMBEDDED_FAULTS": "fail:unlucky,hang:sleepy,keep:sticky",
}
TASK_SECONDS = 60.0
SERVICE = "catalog-service"
Object = dict[str, Any]
T = TypeVar("T")


def until(condition: Callable[[], T], what: str, seconds: float = 30.0) -> T:
    """Wait for it and return it; fails with `what` when it does not come in time."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)
    return found


def _values(name: str, spec: Object) -> Object:
    """What a person fills into a template that requests something for team search in dev."""
    return {"team": "group:default/search", "environment": "dev", "name": name, "reason": "a test", **spec}


MODEL: Object = yaml.safe_load((SAMPLE.parent / "requests.yaml").read_text(encoding="utf-8"))["small-model"]["spec"]
# By offering: what its template is filled in with, for a name.
VALUES: dict[str, Callable[[str], Object]] = {
    "modeldeployments": lambda name: _values(name, {"regions": [], **MODEL}),
    "vectordatabases": lambda name: _values(name, {"regions": [], **database(name)["spec"]}),
}


@dataclass(frozen=True)
class Task:
    """A task of the scaffolder that has ended."""

    id: str
    status: str  # completed, failed, cancelled
    log: str
    output: Object

    @property
    def links(self) -> dict[str, str]:
        """The URLs of its output by their titles."""
        return {link["title"]: link.get("url") or link.get("entityRef") for link in self.output.get("links", [])}

    @property
    def text(self) -> str:
        """All that the person sees at its end."""
        return "\n".join([str(each.get("content")) for each in self.output.get("text", [])])


@dataclass
class Backend:
    """A Backstage that can be ended and started again, and what people do with it over HTTP."""

    options: plan.Options
    at: plan.Address
    running: plan.Backstage | None = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _tokens: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.at.url

    def start(self) -> None:
        self.running = self._stack.enter_context(plan.running_backstage(self.options, self.at, print))

    def stop(self) -> None:
        self._stack.close()
        self._tokens.clear()
        self.running = None

    # --- people ---------------------------------------------------------------------------------------------------

    def token(self, who: str) -> str:
        """A person's token of the real auth backend, from now on kept."""
        if who not in self._tokens:
            self._tokens[who] = self.new_token(who)
        return self._tokens[who]

    def new_token(self, who: str) -> str:
        answer = httpx.get(f"{self.url}/api/auth/local/refresh", headers={"x-local-user": who}, timeout=30)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["backstageIdentity"]["token"])

    def call(self, who: str, method: str, path: str, **more: Any) -> httpx.Response:
        """`who` is a person, or "portal" for the portal's own static token."""
        token = self.at.token if who == "portal" else self.token(who)
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.request(method, f"{self.url}/api/{path}", headers=headers, timeout=30, **more)

    def get(self, who: str, path: str, **params: Any) -> Any:
        return self.call(who, "GET", path, params=params).raise_for_status().json()

    # --- scaffolder -----------------------------------------------------------------------------------------------

    def start_task(self, who: str, template: str, values: Object) -> str:
        body = {"templateRef": f"template:default/{template}", "values": values}
        answer = self.call(who, "POST", "scaffolder/v2/tasks", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def task(self, task_id: str, who: str = "ada", seconds: float = TASK_SECONDS) -> Task:
        """Waits for its end."""
        events = partial(self.get, who, f"scaffolder/v2/tasks/{task_id}/events")
        ended = lambda: any(event["type"] == "completion" for event in events())  # noqa: E731
        until(ended, f"task {task_id} ends", seconds)
        found = events()
        last = next(event["body"] for event in found if event["type"] == "completion")
        log = "\n".join(str(event["body"].get("message", "")) for event in found)
        status = self.get(who, f"scaffolder/v2/tasks/{task_id}")["status"]
        return Task(task_id, status, log, last.get("output") or {})

    def run(self, who: str, template: str, values: Object, seconds: float = TASK_SECONDS) -> Task:
        """A template, to its end."""
        return self.task(self.start_task(who, template, values), who, seconds)

    def template(self, name: str) -> Object:
        """A template's entity, as the catalog has it."""
        return dict(self.get("portal", f"catalog/entities/by-name/template/default/{name}"))

    def dry_run(self, who: str, template: str, values: Object) -> httpx.Response:
        body = {"template": self.template(template), "values": values, "directoryContents": []}
        return self.call(who, "POST", "scaffolder/v2/dry-run", json=body)

    # --- catalog --------------------------------------------------------------------------------------------------

    def entities(self, *filters: str, who: str = "portal") -> list[Object]:
        """All that match every one of `key=value`."""
        found: list[Object] = []
        params: dict[str, Any] = {"limit": 500, **({"filter": ",".join(filters)} if filters else {})}
        while True:
            page = self.get(who, "catalog/entities/by-query", **params)
            found += page["items"]
            cursor = page["pageInfo"].get("nextCursor")
            if not cursor:
                return found
            params = {"limit": 500, "cursor": cursor}

    def of_instance(self, instance: str, kind: str = "") -> list[Object]:
        """The entities that belong to an instance of the portal."""
        more = [f"kind={kind}"] if kind else []
        return self.entities(f"metadata.labels.{ANNOTATION_PREFIX}instance={instance}", *more)

    def main_entity(self, instance: str) -> Object | None:
        """The entity of an instance that says how it is."""
        found = [entity for entity in self.of_instance(instance) if entity["kind"] in ("Component", "Resource")]
        return found[0] if found else None

    def state(self, instance: str) -> str | None:
        """What the catalog says of its state; None when it is not there."""
        entity = self.main_entity(instance)
        return entity["metadata"]["annotations"].get(f"{ANNOTATION_PREFIX}state") if entity else None

    def refs(self) -> set[str]:
        """Everything in it that came from the portal."""
        found = self.entities(f"metadata.labels.{ANNOTATION_PREFIX}instance")
        return {f"{it['kind']}:{it['metadata']['namespace']}/{it['metadata']['name']}".lower() for it in found}

    def notifications(self, who: str) -> list[Object]:
        """What came for a person."""
        return list(self.get(who, "notifications", limit=100)["notifications"])


@dataclass
class Town(Front):
    """A portal on the embedded control plane, a Backstage, and a wire between them that can be cut."""

    backend: Backend = field(kw_only=True)
    wire: Wire = field(kw_only=True)
    portal_options: Options = field(kw_only=True)
    stack: contextlib.ExitStack = field(kw_only=True)

    def made(self, name: str, who: str = "ada") -> str:
        """A small database, Ready: the id of its instance."""
        return str(self.done(self.submit(who, database(name)))["instance"])

    def in_catalog(self, instance: str, state: str = "Ready", seconds: float = 30.0) -> Object:
        """Waits until Backstage has the instance in this state; its entity."""
        until(lambda: self.backend.state(instance) == state, f"the catalog says {state}", seconds)
        entity = self.backend.main_entity(instance)
        assert entity is not None
        return entity

    @contextlib.contextmanager
    def standing_still(self, program: str) -> Iterator[None]:
        """A program of the portal that does not get on."""
        pid = self.portal.supervisor.pids()[program]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def stop_portal(self) -> None:
        self.stack.close()

    def start_portal(self, database_url: str | None = None) -> None:
        """The portal again, on the same port; with another database if that is wanted."""
        options = self.portal_options
        if database_url is not None:
            options = Options(**{**options.__dict__, "database_url": database_url})
        self.portal = self.stack.enter_context(running_portal(options))


@contextlib.contextmanager
def backend_for(
    portal: Portal, state: Path, at: plan.Address, portal_url: str, feed_token: str, prefix: str
) -> Iterator[Backend]:
    """A Backstage wired with the portal, with databases of its own for as long as the block runs."""
    options = plan.Options(
        state=state,
        cache=settings.CACHE_DIR,
        portal_url=portal_url,
        portal_token=feed_token,
        database_url=portal.database_url,
        sample=SAMPLE,
        database_prefix=f"{prefix}_{os.getpid()}_",
        catalog_files=(BY_HAND,),
        config_files=(_config(state, portal_url),),
    )
    backend = Backend(options, at)
    try:
        backend.start()
        yield backend
    finally:
        backend.stop()
        _drop(portal.database_url, options.database_prefix)


def _config(state: Path, portal_url: str) -> Path:
    """A plugin `elsewhere` that is the portal's API too: calls to it carry tokens that are not meant for the portal."""
    path = state / "tests-config.yaml"
    path.write_text(f"discovery: {{endpoints: [{{target: '{portal_url}/api/v1', plugins: [elsewhere]}}]}}\n")
    return path


def _drop(server: str, prefix: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        for (name,) in connection.execute("SELECT datname FROM pg_database").fetchall():
            if name.startswith(prefix):
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def town(_database_server: str | None) -> Iterator[Town]:
    """Both up, with people in them."""
    folder = Path(tempfile.mkdtemp(prefix="pb-"))  # Unix sockets need short paths
    stack = contextlib.ExitStack()
    at = plan.address(folder / "backstage")
    with pytest.MonkeyPatch.context() as patch, database_for(_database_server, "portal_backstage") as database_url:
        patch.setattr(supervisor, "FAST", 0.5)  # what is ended here on purpose is no reason to give up
        options = Options(
            state=folder / "portal",
            database_url=database_url,
            http_port=free_port(),
            environment={**ENVIRONMENT, **at.settings},
        )
        try:
            portal = stack.enter_context(running_portal(options))
            wire = Wire(portal.url)
            front = Front(portal)
            front.begin(SAMPLE)
            feed = front.tokens[SERVICE]
            with backend_for(portal, folder / "backstage", at, wire.url, feed, "backstage") as backend:
                yield Town(portal, front.tokens, backend=backend, wire=wire, portal_options=options, stack=stack)
                wire.close()
        finally:
            stack.close()
            shutil.rmtree(folder, ignore_errors=True)
