"""The public keys that approvals are verified with, where the composition function asks for them: a ConfigMap.

Not in charge of: which keys (services.signing).
"""

from __future__ import annotations

from portal.adapters.embedded import deliver, store
from portal.adapters.embedded.names import PORTAL_MANAGER
from portal.rendering.approval_token import KEYS_NAME, KEYS_NAMESPACE, keys_manifest


def publish_approval_keys(keys: dict[str, str]) -> None:
    """See ports.Deliver. What is there is not written again: each worker process asks at its first delivery."""
    wanted = keys_manifest(keys)
    with store.port_errors():
        there = store.objects().filter(kind="ConfigMap", namespace=KEYS_NAMESPACE, name=KEYS_NAME).first()
    if there is not None and there.body.get("data") == wanted["data"]:
        return
    deliver.ensure_namespace(KEYS_NAMESPACE, True, {})
    deliver.apply_object(wanted, PORTAL_MANAGER)
