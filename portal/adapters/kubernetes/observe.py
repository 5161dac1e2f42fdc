"""The reading half: get and list, read raw; `watching` has the watch.

A list is asked for with resourceVersion 0, which the API server answers from its own memory and not out of etcd; it
ignores `limit` then, so the answer comes in one piece: claims are few (thousands) next to what is composed for them,
which is read in pages (paging). The second list asks for no older state than was seen of that kind (as client-go's
reflector does, tools/cache/reflector.go, read 2026-12-01): another API server that lags can't take the mirror back in
time. Not in charge of: which claims are anybody's.
"""

from __future__ import annotations

import threading
from typing import Any

from portal.adapters.kubernetes import cursors, paths
from portal.adapters.kubernetes.claims import observed_claim
from portal.adapters.kubernetes.client import Client
from portal.adapters.kubernetes.objects import Objects
from portal.adapters.kubernetes.refusals import Action
from portal.ports import ClaimRef, ObservedClaim, RetryableError


class Seen:
    """The newest resourceVersion that was seen of each kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[str, int] = {}

    def note(self, key: str, version: str) -> None:
        """A version of this kind, from a write, a list or a watch."""
        if version.isdigit():
            with self._lock:
                self._newest[key] = max(int(version), self._newest.get(key, 0))

    def newest(self, key: str) -> int:
        """0: nothing was seen yet."""
        with self._lock:
            return self._newest.get(key, 0)

    def forget(self, key: str) -> None:
        """The control plane does not know this state (any more): it was restored from a backup."""
        with self._lock:
            self._newest.pop(key, None)


class Observer:
    """See ports.Observe: `get` and `list`."""

    def __init__(self, client: Client, objects: Objects, seen: Seen) -> None:
        self._client, self._objects, self._seen = client, objects, seen

    def get(self, ref: ClaimRef) -> ObservedClaim | None:
        """RetryableError `offering-not-installed`: that its kind is not served does not say that it is gone."""
        found = self.manifest(ref)
        return None if found is None else observed_claim(found, ref, self._objects.composed_now(found))

    def manifest(self, ref: ClaimRef) -> dict[str, Any] | None:
        """The claim as it is now, by the newest state (not from the API server's memory)."""
        action = Action(self._client.plane, "get", f"{ref.kind} {ref.name!r}", ref.namespace)
        return self._client.find(action, paths.of_claim(ref))

    def list_claims(self, kinds: list[ClaimRef]) -> tuple[list[ObservedClaim], str]:
        """See ports.Observe. A kind that is not served has no claims; its cursor says so."""
        if kinds:
            self._objects.refresh()
        claims: list[ObservedClaim] = []
        position: cursors.Position = {}
        for ref in once_per_kind(kinds).values():
            key = cursors.key_of(ref.plural, ref.api_version)
            listed = self._listed(ref, key)
            position[key] = cursors.NOT_SERVED if listed is None else str(listed["metadata"]["resourceVersion"])
            items = [] if listed is None else listed.get("items") or []
            claims += [observed_claim(item, ref, self._objects.composed_for(item)) for item in items]
            self._seen.note(key, position[key])
        return claims, cursors.written(position)

    def _listed(self, ref: ClaimRef, key: str) -> dict[str, Any] | None:
        action = Action(self._client.plane, "list", f"{ref.plural} of {ref.api_version}")
        path = paths.of_kind(ref.api_version, ref.plural)
        newest = self._seen.newest(key)
        query = {"resourceVersion": str(newest)}
        if newest:
            query["resourceVersionMatch"] = "NotOlderThan"
        try:
            return self._client.get(action, path, query)
        except RetryableError as error:
            if error.code == "offering-not-installed":
                return None
            if error.code != "cursor-expired":
                raise
            # What was seen is not known there: restored from a backup, or another etcd. All that is there counts.
            self._seen.forget(key)
            return self._client.get(action, path, {"resourceVersion": "0"})


def once_per_kind(kinds: list[ClaimRef]) -> dict[tuple[str, str], ClaimRef]:
    """One ref of each kind, whatever versions there are."""
    return {paths.group_kind(ref.api_version, ref.kind): ref for ref in kinds}
