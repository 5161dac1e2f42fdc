"""Asks a control plane what it would make of a claim, before anybody delivers it: defaults, its own rules, what differs
from what runs there. Writes nothing anywhere.

In charge of: never being in the way. A control plane that is away, slow or unknown is said to be so, and what the
portal itself knows stands without it. Not in charge of: what the policies say (submitting.preview).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from portal.domain.difference import Difference, differences
from portal.models import Environment, Request
from portal.ports import ControlPlane, DryRun, RetryableError, TerminalError
from portal.rendering.claim import without_machinery
from portal.services import loading
from portal.services.drafting_change import REVISION, pinned_revision
from portal.services.sketching import sketch_claim, sketch_request
from portal.services.submitting import Preview

Planes = Callable[[str], ControlPlane]


@dataclass(frozen=True)
class Rehearsal:
    """What a control plane says. `accepted` None: it was not asked, and `message` says why. `claim` has the control
    plane's defaults; `difference` is from what is live there, empty where nothing is."""

    accepted: bool | None
    code: str = ""
    message: str = ""
    claim: dict[str, Any] | None = None
    difference: tuple[Difference, ...] = ()


def rehearse(preview: Preview, planes: Planes) -> Rehearsal | None:
    """What the control plane would make of a previewed request; None for what makes no claim."""
    proposal = preview.proposal
    claim = sketch_claim(preview)
    if claim is None or proposal.environment is None:
        return None
    schema = proposal.offering.spec_schema if proposal.offering else {}
    return _ask(claim, proposal.environment, schema, planes)


def rehearse_request(request: Request, planes: Planes) -> Rehearsal | None:
    """The same for a stored request that is not delivered yet."""
    claim = sketch_request(request)
    if claim is None or request.environment is None or request.document is None:
        return None
    return _ask(claim, request.environment, loading.offering(request.document).spec_schema, planes)


def _ask(claim: dict[str, Any], environment: Environment, schema: Mapping[str, Any], planes: Planes) -> Rehearsal:
    try:
        found = planes(environment.control_plane).dry_run(claim)
    except TerminalError as error:
        if error.code == "namespace-missing" and environment.creates_namespaces:
            return Rehearsal(None, error.code, "not asked: its namespace is made with the first delivery")
        return Rehearsal(False, error.code, error.message)
    except RetryableError as error:
        return Rehearsal(None, error.code, f"not asked: {error.message}")
    except ValueError as error:  # an environment that names a control plane which isn't set up
        return Rehearsal(None, "control-plane-unknown", f"not asked: {error}")
    return Rehearsal(True, "", "it would be taken", _shown(found), _difference(found, schema))


def _shown(found: DryRun) -> dict[str, Any]:
    """Without what changes at each look."""
    metadata = {key: found.claim["metadata"][key] for key in ("name", "namespace") if key in found.claim["metadata"]}
    claim = {"apiVersion": found.claim["apiVersion"], "kind": found.claim["kind"], "metadata": metadata}
    return {**claim, "spec": found.claim.get("spec", {})}


def _difference(found: DryRun, schema: Mapping[str, Any]) -> tuple[Difference, ...]:
    if found.live is None:
        return ()
    old, new = without_machinery(found.live.get("spec", {})), without_machinery(found.claim.get("spec", {}))
    made = [Difference(f"/spec{each.pointer}", each.old, each.new) for each in differences(old, new, schema)]
    before, after = pinned_revision(found.live), pinned_revision(found.claim)
    if before != after:
        made.append(Difference(REVISION, before, after))
    return tuple(made)
