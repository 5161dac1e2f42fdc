"""provider-kubernetes' Objects: whether what was composed for a claim is ready, and what it says.

In charge of: a picture of all of them, for a mirror: one list in pages, then kept up by a watch, so that neither a
list of thousands of claims nor each of their events asks for each Object. Not in charge of: claims (observe), or
composed resources of other kinds, of which only the reference is known: the portal may not read them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from portal.adapters.composed import readiness, without_secrets
from portal.adapters.kubernetes import paths
from portal.adapters.kubernetes.claims import references
from portal.adapters.kubernetes.client import Client
from portal.adapters.kubernetes.paging import ATTEMPTS, pages
from portal.adapters.kubernetes.refusals import Action
from portal.ports import ComposedObject, RetryableError

API_VERSION, KIND, PLURAL = "kubernetes.m.crossplane.io/v1alpha1", "Object", "objects"
GROUP = API_VERSION.partition("/")[0]
PATH = paths.of_kind(API_VERSION, PLURAL)
COMPOSITE_LABEL = "crossplane.io/composite"
LIST_AGAIN_SECONDS = 600.0  # the watch keeps the picture; this is for what a watch could have missed

Key = tuple[str, str]  # namespace, name


class Packed(Mapping[str, Any]):
    """A manifest that is read seldom, as JSON: tens of thousands of them are kept."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        self._text = text

    @classmethod
    def of(cls, manifest: dict[str, Any]) -> Packed:
        """The manifest without secrets."""
        text = orjson.dumps(manifest)
        return cls(orjson.dumps(without_secrets(manifest)) if b'"Secret"' in text else text)

    def __getitem__(self, key: str) -> Any:
        return orjson.loads(self._text)[key]

    def __iter__(self) -> Iterator[str]:
        return iter(orjson.loads(self._text))

    def __len__(self) -> int:
        return len(orjson.loads(self._text))


class Owner(NamedTuple):
    """The composite that an Object was composed for."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str


class Known(NamedTuple):
    """What is kept of an Object."""

    version: int
    owner: Owner | None
    composed: ComposedObject


Found = dict[Key, ComposedObject]


class Objects:
    """The picture, shared by a plane's list and watch."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._known: dict[Key, Known] = {}
        self._listed_at: float | None = None
        self.version = ""  # where the watch goes on; empty: the kind is not served there

    def refresh(self) -> None:
        """List them, unless that was done a short time ago."""
        if self._listed_at is None or time.monotonic() - self._listed_at > LIST_AGAIN_SECONDS:
            self._list()

    def forget(self) -> None:
        """The next `refresh` lists."""
        self._listed_at = None

    def take(self, gone: bool, manifest: dict[str, Any]) -> Owner | None:
        """One event of the watch; gives whose Object it is, None when it says nothing new."""
        key = _key(manifest)
        now = known(manifest)
        with self._lock:
            before = self._known.get(key)
            if before is not None and before.version >= now.version:
                return None
            if gone:
                self._known.pop(key, None)
            else:
                self._known[key] = now
        said = before is not None and not gone and _says(before.composed) == _says(now.composed)
        return None if said else now.owner

    def composed_for(self, manifest: dict[str, Any]) -> tuple[ComposedObject, ...]:
        """What was composed for a claim, by this picture."""
        with self._lock:
            return composed(manifest, {key: self._known[key].composed for key in _keys(manifest) if key in self._known})

    def composed_now(self, manifest: dict[str, Any]) -> tuple[ComposedObject, ...]:
        """The same, asked for now: one list of this claim's Objects."""
        if not _keys(manifest):
            return composed(manifest, {})
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "")
        action = _action(self._client, namespace)
        query = {"labelSelector": f"{COMPOSITE_LABEL}={_label(metadata)}"}
        path = paths.of_kind(API_VERSION, PLURAL, namespace)
        try:
            items = [item for page in pages(self._client, action, path, query) for item in page.get("items") or ()]
        except RetryableError as error:
            if error.code != "offering-not-installed":
                raise
            items = []
        return composed(manifest, {_key(item): known(item).composed for item in items})

    def _list(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._take_all()
            except RetryableError as error:
                if error.code == "offering-not-installed":
                    self._known, self.version = {}, ""
                elif error.code == "cursor-expired" and attempt < ATTEMPTS:
                    continue
                else:
                    raise
            self._listed_at = time.monotonic()
            return

    def _take_all(self) -> None:
        found: dict[Key, Known] = {}
        version = ""
        for page in pages(self._client, _action(self._client, ""), PATH, {}):
            found.update((_key(item), known(item)) for item in page.get("items") or ())
            version = str(page["metadata"]["resourceVersion"])
        with self._lock:
            self._known, self.version = found, version


def known(manifest: dict[str, Any]) -> Known:
    """What is kept of an Object: without who set its fields, and without the mirrored workload."""
    metadata = manifest["metadata"]
    ready, message = readiness(manifest.get("status") or {})
    shown = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {key: value for key, value in metadata.items() if key not in ("managedFields", "resourceVersion")},
        "spec": manifest.get("spec") or {},
        "status": {"conditions": (manifest.get("status") or {}).get("conditions") or []},
    }
    made = ComposedObject(
        api_version=API_VERSION,
        kind=KIND,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        ready=ready,
        message=message,
        manifest=Packed.of(shown),
    )
    return Known(int(metadata["resourceVersion"]), _owner(metadata), made)


def composed(manifest: dict[str, Any], found: Found) -> tuple[ComposedObject, ...]:
    """What a claim refers to, in its order; what is not an Object, or not there (yet), does not say whether it is
    ready."""
    return tuple(
        (found.get((namespace, name)) if _is_object(api_version, kind) else None)
        or ComposedObject(api_version, kind, namespace, name, None, "")
        for api_version, kind, namespace, name in references(manifest)
    )


def _keys(manifest: dict[str, Any]) -> list[Key]:
    return [(ns, name) for api_version, kind, ns, name in references(manifest) if _is_object(api_version, kind)]


def _is_object(api_version: str, kind: str) -> bool:
    return kind == KIND and api_version.startswith(f"{GROUP}/")


def _key(manifest: dict[str, Any]) -> Key:
    return manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]


def _says(one: ComposedObject) -> tuple[object, ...]:
    metadata = one.manifest["metadata"]
    return one.ready, one.message, metadata.get("deletionTimestamp"), metadata.get("finalizers")


def _owner(metadata: dict[str, Any]) -> Owner | None:
    references: Iterable[dict[str, Any]] = metadata.get("ownerReferences") or ()
    for ref in references:
        if ref.get("controller"):
            group = str(ref["apiVersion"]).rpartition("/")[0]
            return Owner(group, ref["kind"], metadata.get("namespace", ""), ref["name"], ref["uid"])
    return None


def _label(metadata: dict[str, Any]) -> str:
    """The composite's name as the core writes it into the label: at most 63 characters of it."""
    return str((metadata.get("labels") or {}).get(COMPOSITE_LABEL) or metadata["name"])[:63]


def _action(client: Client, namespace: str) -> Action:
    return Action(client.plane, "list", f"{KIND}s of {GROUP}", namespace)
