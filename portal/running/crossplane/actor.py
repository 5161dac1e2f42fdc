"""`python -m portal.running.crossplane.actor --state DIR CLUSTER…`: a test-only actor on workload clusters.

It writes the status that KServe, CloudNativePG and the StatefulSet controller would, since nothing here can run a
model or a database. It touches workload objects only, never a claim nor an Object: on the workload clusters its role
allows no more (actor-role.yaml), on the control plane it has no account. What it writes says so (reports.NOTE), and its
field manager is `test-only-workload-actor`.

<state>/workload-faults.json, {name: "fail" | "hang"}, says which objects fail, and which get no status any more; it is
read again when it changes. CloudNativePG's Secret of an application's user is made too: claims carry it back.

Not in charge of: what each kind reports (reports.py).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import threading
import time
from pathlib import Path

from portal.running.crossplane.access import server_from
from portal.running.crossplane.controllers import ACTOR
from portal.running.crossplane.kube import Api, Object
from portal.running.crossplane.layout import Layout
from portal.running.crossplane.reports import NOTE, WORKLOADS, Workload
from portal.running.errors import ApiError
from portal.running.ready import announce

MANAGER = "test-only-workload-actor"
WATCH_SECONDS = 300
FAULTS_EVERY = 0.5  # seconds between looks at the file
AGAIN_AFTER = 1.0  # seconds, when an API server is away


class Faults:
    """Names of objects that fail or hang, from a file that may change; `changed` counts its changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[float, dict[str, str]] = (-1.0, {})
        self.changed = 0

    def of(self, name: str) -> str | None:
        """fail, hang or None."""
        return self._read[1].get(name)

    def look(self) -> None:
        """Reads the file again if it is another one."""
        modified, found = 0.0, {}
        with contextlib.suppress(FileNotFoundError, ValueError):
            modified = self._path.stat().st_mtime
            if modified == self._read[0]:
                return
            found = json.loads(self._path.read_text())
        if found != self._read[1]:
            self.changed += 1
        self._read = (modified, found)


class Player:
    """Plays the operator of one kind on one cluster."""

    def __init__(self, api: Api, cluster: str, workload: Workload, faults: Faults) -> None:
        self._api, self._cluster, self._workload, self._faults = api, cluster, workload, faults
        self.listed = threading.Event()

    def play(self) -> None:
        """For ever: list, then watch."""
        while True:
            try:
                version = self._all()
                self.listed.set()
                for event in self._api.watch(self._workload.api_version, self._workload.kind, version, WATCH_SECONDS):
                    if event["type"] == "ERROR":  # compacted, most likely: list again
                        break
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._one(event["object"])
                    elif event["type"] == "DELETED" and self._workload.kind == "Cluster":
                        # A garbage collector would; workload clusters have none here.
                        self._api.delete(_application_secret(event["object"]))
            except ApiError as error:
                print(f"{self._cluster}: {error}", flush=True)
                time.sleep(AGAIN_AFTER)

    def again(self) -> None:
        """Every object once more: what should fail has changed."""
        try:
            self._all()
        except ApiError as error:
            print(f"{self._cluster}: {error}", flush=True)

    def _all(self) -> str:
        listed = self._api.listed(self._workload.api_version, self._workload.kind)
        for item in listed["items"]:
            self._one({"apiVersion": self._workload.api_version, "kind": self._workload.kind, **item})
        return str(listed["metadata"]["resourceVersion"])

    def _one(self, found: Object) -> None:
        fault = self._faults.of(found["metadata"]["name"])
        if found["metadata"].get("deletionTimestamp") or fault == "hang":
            return
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        report = self._workload.report(found, self._cluster, fault == "fail", now)
        before = found.get("status", {})
        try:
            if self._workload.kind == "Cluster" and fault is None:
                self._make_once(_application_secret(found))
            if any(before.get(key) != value for key, value in report.items()):
                self._api.merge_status(found, report, manager=MANAGER)
        except ApiError as error:
            if error.status not in (404, 409):  # gone, or changed since: its next event comes
                raise

    def _make_once(self, manifest: Object) -> None:
        meta = manifest["metadata"]
        if self._api.get(manifest["apiVersion"], manifest["kind"], meta["name"], meta["namespace"]) is None:
            self._api.apply(manifest, manager=MANAGER)


def _application_secret(cluster: Object) -> Object:
    """CloudNativePG makes <cluster>-app for the application's user, and the cluster owns it."""
    meta = cluster["metadata"]
    owner = {"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "name": meta["name"], "uid": meta["uid"]}
    host = f"{meta['name']}-rw"
    values = {"username": "app", "password": NOTE, "dbname": "app", "host": host, "port": "5432"}
    values["uri"] = f"postgresql://app@{host}:5432/app"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{meta['name']}-app",
            "namespace": meta["namespace"],
            "ownerReferences": [{**owner, "controller": True}],
        },
        "type": "kubernetes.io/basic-auth",
        "stringData": values,
    }


def main() -> None:
    """Plays until it is ended."""
    parser = argparse.ArgumentParser(prog=ACTOR)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("clusters", nargs="+")
    given = parser.parse_args()
    layout = Layout(given.state)
    faults = Faults(layout.faults)
    faults.look()
    players = []
    for cluster in given.clusters:
        api = Api(server_from(layout.kubeconfig(cluster, ACTOR)))
        players += [Player(api, cluster, workload, faults) for workload in WORKLOADS]
    for player in players:
        threading.Thread(target=player.play, daemon=True).start()
    for player in players:
        player.listed.wait()
    announce(layout.state, ACTOR, os.getpid())
    seen = faults.changed
    while True:
        time.sleep(FAULTS_EVERY)
        faults.look()
        if faults.changed != seen:
            seen = faults.changed
            for player in players:
                player.again()


if __name__ == "__main__":
    main()
