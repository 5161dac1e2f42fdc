"""The embedded control plane with the shipped XRDs and Compositions in it, and nothing that reconciles them."""

from __future__ import annotations

from django.conf import settings
from django.core.management import call_command

from portal.adapters.embedded import EmbeddedControlPlane
from portal.ports import ClaimRef

NAME = "embedded"


def embedded_plane() -> EmbeddedControlPlane:
    """What `manage.py serve` begins with, in the test database."""
    call_command(
        "embedded_apply", *[str(path) for path in settings.OFFERINGS_PATH], str(settings.FLEET_PATH), verbosity=0
    )
    return EmbeddedControlPlane(NAME)


def model_kind() -> ClaimRef:
    """The kind of claim that the sample drafts become."""
    return ClaimRef("aiplatform.example.org/v1alpha1", "ModelDeployment", "modeldeployments", "", "")
