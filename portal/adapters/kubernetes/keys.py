"""The public keys that approvals are verified with, where the composition function asks for them: a ConfigMap.

It ships empty with the portal's role, which allows to change this one and no other. Not in charge of: which keys
(services.signing).
"""

from __future__ import annotations

from portal.adapters.kubernetes.client import APPLY, Client
from portal.adapters.kubernetes.refusals import Action
from portal.ports import TerminalError
from portal.rendering.approval_token import KEYS_NAME, KEYS_NAMESPACE, keys_manifest

_PATH = f"/api/v1/namespaces/{KEYS_NAMESPACE}/configmaps/{KEYS_NAME}"
_WAY_OUT = "apply crossplane/rbac/portal.yaml to this control plane: it holds this ConfigMap and the role to write it"


_QUERY = {"fieldManager": "portal", "fieldValidation": "Strict"}
_MERGE = "application/merge-patch+json"


def publish_approval_keys(client: Client, keys: dict[str, str]) -> None:
    """See ports.Deliver. Nobody else hands out keys: what others have set there is taken over or removed."""
    action = Action(client.plane, "apply", f"ConfigMap {KEYS_NAMESPACE}/{KEYS_NAME}", KEYS_NAMESPACE)
    manifest = keys_manifest(keys)
    try:
        query = {**_QUERY, "force": "true"}
        found = client.write(action, "PATCH", _PATH, manifest, query=query, content_type=APPLY).body
        strangers = sorted((found.get("data") or {}).keys() - manifest["data"].keys())
        if strangers:
            body = {"data": dict.fromkeys(strangers)}
            client.write(action, "PATCH", _PATH, body, query=_QUERY, content_type=_MERGE)
    except TerminalError as error:
        # Where it is absent, an apply would create it, which the role does not allow: forbidden stands for both.
        raise TerminalError(error.code, f"{error.message}; {_WAY_OUT}") from error
