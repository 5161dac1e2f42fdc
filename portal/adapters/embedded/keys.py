"""The public keys that approvals are verified with, where the composition function asks for them: a ConfigMap.

Not in charge of: which keys (services.signing).
"""

from __future__ import annotations

from portal.adapters.embedded import deliver
from portal.adapters.embedded.names import PORTAL_MANAGER
from portal.rendering.approval_token import KEYS_NAMESPACE, keys_manifest


def publish_approval_keys(keys: dict[str, str]) -> None:
    """See ports.Deliver."""
    deliver.ensure_namespace(KEYS_NAMESPACE, True, {})
    deliver.apply_object(keys_manifest(keys), PORTAL_MANAGER)
