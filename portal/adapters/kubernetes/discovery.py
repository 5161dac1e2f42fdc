"""Which plural a kind has on a control plane: asked once, and again when it is not known.

Not in charge of: whether the portal may use it.
"""

from __future__ import annotations

import threading

from portal.adapters.kubernetes import meanings, paths
from portal.adapters.kubernetes.client import Client
from portal.adapters.kubernetes.refusals import Action


class Kinds:
    """The plurals that were asked for. A kind whose plural changes is another CRD: the process is started anew then."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._plurals: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def plural(self, action: Action, api_version: str, kind: str) -> str:
        """RetryableError `offering-not-installed` for a kind that is not served."""
        with self._lock:
            known = self._plurals.get((api_version, kind))
        if known is not None:
            return known
        asked = Action(action.plane, "discover", f"{kind} of {api_version}")
        listed = self._client.get(asked, paths.of_version(api_version))
        found = {item["kind"]: item["name"] for item in listed.get("resources", ()) if "/" not in item["name"]}
        if kind not in found:
            raise meanings.not_installed(asked)
        with self._lock:
            self._plurals[api_version, kind] = found[kind]
        return str(found[kind])
