"""The watch of several kinds at once, as claims with what was composed for them.

In charge of: putting the streams of claims and of provider-kubernetes' Objects together. A claim's own events come as
they are; when only an Object changed, its claim is read and comes again, so that "ready" never rests on an old look.
Not in charge of: the wire (streams), or listing again, which a caller does on any error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from portal.adapters.kubernetes import cursors, objects, paths
from portal.adapters.kubernetes.claims import observed_claim
from portal.adapters.kubernetes.client import Client
from portal.adapters.kubernetes.objects import Objects, Owner
from portal.adapters.kubernetes.observe import Observer, Seen, once_per_kind
from portal.adapters.kubernetes.streams import Ended, Kind, Read, Watcher, new_queue, take
from portal.ports import ClaimEvent, ClaimRef, ObservedClaim

# An Object's change usually comes with its claim's own; so long is waited for that before the claim is read for it.
SETTLE_SECONDS = 0.3
_OBJECTS = "objects"


class Watching:
    """See ports.Observe: `watch`. One at a time per plane."""

    def __init__(self, client: Client, observer: Observer, objects: Objects, seen: Seen) -> None:
        self._client, self._observer, self._objects, self._seen = client, observer, objects, seen
        # By kind: after its event at the first version there was nothing up to the second, which a bookmark said.
        self._quiet: dict[str, tuple[str, str]] = {}

    def watch(self, kinds: list[ClaimRef], cursor: str, timeout: float) -> Iterator[ClaimEvent]:
        refs = {cursors.key_of(ref.plural, ref.api_version): ref for ref in once_per_kind(kinds).values()}
        position = cursors.read(cursor, list(refs), self._client.plane)
        served = {key: ref for key, ref in refs.items() if position[key] != cursors.NOT_SERVED}
        if served:
            self._objects.refresh()
            yield from _Run(self._client, self._observer, self._objects, self._seen, self._quiet, served).events(
                position, timeout
            )
        elif refs:
            time.sleep(timeout)  # nothing to watch: as long as a watch without events


class _Run:
    """One watch."""

    def __init__(
        self,
        client: Client,
        observer: Observer,
        objects: Objects,
        seen: Seen,
        quiet: dict[str, tuple[str, str]],
        refs: dict[str, ClaimRef],
    ) -> None:
        self._client, self._observer, self._objects, self._seen, self._quiet = client, observer, objects, seen, quiet
        self._refs = refs
        self._by_kind = {paths.group_kind(ref.api_version, ref.kind): ref for ref in refs.values()}
        self._due: dict[Owner, float] = {}  # whose Objects changed, and when their claim is to be read
        self._newest: dict[str, int] = {}  # by uid: the version of a claim that was read for its Objects

    def events(self, position: cursors.Position, timeout: float) -> Iterator[ClaimEvent]:
        out = new_queue()
        deadline = time.monotonic() + timeout
        watchers = [
            Watcher(self._client, self._kind(key), self._resumed(key, position[key]), timeout, out)
            for key in self._refs
        ]
        if self._objects.version:
            kind = Kind(_OBJECTS, objects.PATH, f"{objects.KIND}s of {objects.GROUP}")
            watchers.append(Watcher(self._client, kind, self._objects.version, timeout, out))
        try:
            while (left := deadline - time.monotonic()) > 0:
                read = take(out, min(left, self._wait()))
                if isinstance(read, Ended):
                    self._ended(read)
                elif read is not None:
                    yield from self._event(read, position)
                yield from self._settled(position)
        finally:
            for watcher in watchers:
                watcher.stop()

    def _kind(self, key: str) -> Kind:
        ref = self._refs[key]
        return Kind(key, paths.of_kind(ref.api_version, ref.plural), f"{ref.plural} of {ref.api_version}")

    def _resumed(self, key: str, version: str) -> str:
        after, quiet_until = self._quiet.get(key, ("", ""))
        return quiet_until if after == version else version

    def _ended(self, ended: Ended) -> None:
        if ended.error is not None:
            if ended.key == _OBJECTS:
                self._objects.forget()
            raise ended.error

    def _event(self, read: Read, position: cursors.Position) -> Iterator[ClaimEvent]:
        version = str(read.manifest["metadata"]["resourceVersion"])
        if read.key == _OBJECTS:
            self._object(read, version)
            return
        self._seen.note(read.key, version)
        if read.type == "BOOKMARK":
            self._quiet[read.key] = (position[read.key], version)
            return
        position[read.key] = version
        self._quiet.pop(read.key, None)
        claim = self._claim(read.manifest, self._refs[read.key], gone=read.type == "DELETED")
        if int(version) >= self._newest.get(claim.uid, 0):
            self._due = {owner: due for owner, due in self._due.items() if owner.uid != claim.uid}
            yield ClaimEvent(read.type == "DELETED", claim, cursors.written(position))

    def _claim(self, manifest: dict[str, Any], ref: ClaimRef, gone: bool) -> ObservedClaim:
        return observed_claim(manifest, ref, () if gone else self._objects.composed_for(manifest))

    def _object(self, read: Read, version: str) -> None:
        if read.type != "BOOKMARK":
            owner = self._objects.take(read.type == "DELETED", read.manifest)
            if owner is not None and (owner.group, owner.kind) in self._by_kind:
                self._due.setdefault(owner, time.monotonic() + SETTLE_SECONDS)
        self._objects.version = version

    def _wait(self) -> float:
        return max(0.0, min(self._due.values()) - time.monotonic()) if self._due else 1.0

    def _settled(self, position: cursors.Position) -> Iterator[ClaimEvent]:
        """The claims whose Objects changed a moment ago, without an event of their own since."""
        now = time.monotonic()
        for owner in [owner for owner, due in self._due.items() if due <= now]:
            self._due.pop(owner, None)
            kind = self._by_kind[owner.group, owner.kind]
            ref = ClaimRef(kind.api_version, kind.kind, kind.plural, owner.namespace, owner.name)
            manifest = self._observer.manifest(ref)
            if manifest is not None and manifest["metadata"]["uid"] == owner.uid:
                claim = self._claim(manifest, kind, gone=False)
                self._newest[claim.uid] = int(claim.resource_version)
                yield ClaimEvent(False, claim, cursors.written(position))
