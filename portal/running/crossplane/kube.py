"""In charge of: the little of the Kubernetes API that setting up a control plane and the actor need.

Not in charge of: what the portal writes and reads; it has a client of its own (portal/adapters).
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

import httpx

from portal.running.crossplane.access import Server
from portal.running.errors import ApiError, NotReady

Object = dict[str, Any]
T = TypeVar("T")
FIELD_MANAGER = "portal-local"
TIMEOUT = httpx.Timeout(30, connect=5)


class Api:
    """A client of one API server for one user; may be used by several threads. A context manager."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}
        self._lock = threading.Lock()
        self._http = httpx.Client(
            base_url=server.url,
            headers={"Authorization": f"Bearer {server.token}", "Accept": "application/json"},
            verify=ssl.create_default_context(cadata=server.authority),
            timeout=TIMEOUT,
            trust_env=False,
        )

    def __enter__(self) -> Api:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def apply(self, manifest: Object, *, manager: str = FIELD_MANAGER, status: bool = False) -> Object:
        """Server-side apply; with `status` to the status subresource. What others have set is taken over."""
        path = self.path(manifest) + ("/status" if status else "")
        parameters = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"}
        content = json.dumps(manifest)
        return self.call("PATCH", path, content, "application/apply-patch+yaml", parameters)

    def merge_status(self, found: Object, status: Object, *, manager: str) -> Object:
        """Sets members of an object's status, if the object is still the one that was found."""
        patch = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "status": status}
        content = json.dumps(patch)
        parameters = {"fieldManager": manager, "fieldValidation": "Strict"}
        return self.call("PATCH", self.path(found) + "/status", content, "application/merge-patch+json", parameters)

    def create(self, path: str, body: Object) -> Object:
        """POST to a path."""
        return self.call("POST", path, json.dumps(body), "application/json", {})

    def replace(self, manifest: Object) -> Object:
        """PUT of a whole object; with metadata.resourceVersion only if it is still that one."""
        return self.call("PUT", self.path(manifest), json.dumps(manifest))

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """An object, None if it is not there."""
        try:
            return self.call("GET", self._path(api_version, kind, name, namespace))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, api_version: str, kind: str, namespace: str | None = None) -> list[Object]:
        """All objects of a kind. Those of a list don't carry their kind: it is added."""
        listed = self.listed(api_version, kind, namespace)
        return [{"apiVersion": api_version, "kind": kind, **item} for item in listed["items"]]

    def listed(self, api_version: str, kind: str, namespace: str | None = None) -> Object:
        """A list as the API server gives it: metadata.resourceVersion and items."""
        return self.call("GET", self._path(api_version, kind, None, namespace))

    def delete(self, manifest: Object, propagation: str = "Background") -> None:
        """Asks for the object's deletion; nothing if it is not there."""
        try:
            self.call("DELETE", self.path(manifest), parameters={"propagationPolicy": propagation})
        except ApiError as error:
            if error.status != 404:
                raise

    def watch(self, api_version: str, kind: str, version: str, seconds: int) -> Iterator[Object]:
        """Events {type, object} of all objects of a kind after a resourceVersion, for at most `seconds`."""
        parameters = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(seconds)}
        path = self._path(api_version, kind, None, None)
        try:
            with self._http.stream("GET", path, params=parameters, timeout=httpx.Timeout(seconds + 10)) as response:
                if response.status_code != 200:
                    raise _error("GET", path, response.status_code, response.read())
                for line in response.iter_lines():
                    yield json.loads(line)
        except httpx.HTTPError as error:
            raise ApiError(f"{self.server.name}: watching {path}: {error}") from error

    def serves(self, api_version: str, kind: str) -> bool:
        """Whether objects of a kind can be had by now."""
        try:
            self._resource(api_version, kind)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def path(self, manifest: Object) -> str:
        """Where an object is."""
        meta = manifest["metadata"]
        return self._path(manifest["apiVersion"], manifest["kind"], meta["name"], meta.get("namespace"))

    def call(
        self,
        method: str,
        path: str,
        content: str | None = None,
        content_type: str = "application/json",
        parameters: dict[str, str] | None = None,
    ) -> Object:
        """One request. Raises ApiError."""
        headers = {"Content-Type": content_type} if content is not None else {}
        try:
            response = self._http.request(method, path, content=content, headers=headers, params=parameters or {})
        except httpx.HTTPError as error:
            raise ApiError(f"{self.server.name}: {method} {path}: {error}") from error
        if response.status_code >= 400:
            raise _error(method, f"{self.server.name}{path}", response.status_code, response.content)
        answer: Object = response.json()
        return answer

    def _path(self, api_version: str, kind: str, name: str | None, namespace: str | None) -> str:
        plural, namespaced = self._resource(api_version, kind)
        parts = ["/api" if "/" not in api_version else "/apis", api_version]
        if namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        return "/".join([*parts, plural, *([name] if name is not None else [])])

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        """Plural and whether it has namespaces, asked once. ApiError 404 if the kind is not served (yet)."""
        with self._lock:
            if (api_version, kind) not in self._paths:
                prefix = "/api" if "/" not in api_version else "/apis"
                for item in self.call("GET", f"{prefix}/{api_version}")["resources"]:
                    if "/" not in item["name"]:
                        self._paths[api_version, item["kind"]] = (item["name"], item["namespaced"])
            if (api_version, kind) not in self._paths:
                raise ApiError(f"{self.server.name} does not serve {kind} of {api_version}", 404)
            return self._paths[api_version, kind]


def eventually(what: str, action: Callable[[], T | None], seconds: float, every: float = 0.1) -> T:
    """The first result that is something. Errors of the API are waited out. Raises NotReady after `seconds`."""
    deadline = time.monotonic() + seconds
    last: ApiError | None = None
    while True:
        try:
            found = action()
            if found is not None and found is not False:
                return found
            last = None
        except ApiError as error:
            last = error
        if time.monotonic() > deadline:
            raise NotReady(f"{what}: not within {seconds:g} s" + (f". The last answer: {last}" if last else "."))
        time.sleep(every)


def condition(found: Object | None, kind: str) -> Object:
    """A condition of an object, {} if absent."""
    conditions = ((found or {}).get("status") or {}).get("conditions") or []
    return next((entry for entry in conditions if entry.get("type") == kind), {})


def is_true(found: Object | None, *kinds: str) -> bool:
    """Whether all of these conditions are True, and the object is not being deleted."""
    if found is None or found["metadata"].get("deletionTimestamp"):
        return False
    return all(condition(found, kind).get("status") == "True" for kind in kinds)


def _error(method: str, path: str, status: int, content: bytes) -> ApiError:
    try:
        message = str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        message = content[:500].decode(errors="replace")
    return ApiError(f"{method} {path}: {status}: {message}", status)
