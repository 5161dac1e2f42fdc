"""Finds claims of known offerings on a control plane that no instance is known for, and whose they would be.

    owner    by the portal's label, else by the namespace (as environments would name it, or as an instance there has
             it), else the default that is given

In charge of: what is there and why it can't be imported. Reads only. Not in charge of: importing (adopting).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from portal.domain.offerings import Offering
from portal.models import ActiveDocument, Document, Environment, Instance, Team
from portal.ports import ClaimRef, ControlPlane, ObservedClaim
from portal.rendering.claim import MANAGED_BY, ClaimError, ClaimFacts, facts_from_claim, without_machinery
from portal.rendering.names import ANNOTATION_PREFIX, NamingError, namespace
from portal.services import loading, pausing


@dataclass(frozen=True)
class Defaults:
    """Whose a claim is of which neither a label nor its namespace says so."""

    team: Team | None = None
    environment: Environment | None = None


@dataclass(frozen=True)
class Found:
    """A claim that no instance is known for. `facts` None: it was not made by a portal. `signed`: what an approval of
    ours says of it. `problems`: why it can't be imported as it is."""

    control_plane: str
    claim: ObservedClaim
    offering: Offering
    document: Document
    facts: ClaimFacts | None
    signed: dict[str, Any] | None
    team: Team | None
    environment: Environment | None
    owner_by: str  # label, namespace, default; empty: nobody's
    problems: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """namespace/name."""
        return f"{self.claim.ref.namespace}/{self.claim.ref.name}"

    @property
    def spec(self) -> dict[str, Any]:
        """What was approved, where that is proven; else what is there."""
        return dict(self.signed["spec"]) if self.signed else without_machinery(self.claim.spec)

    @property
    def name(self) -> str:
        """Of the instance."""
        return self.facts.instance_name if self.facts else self.claim.ref.name


def manifest_of(claim: ObservedClaim) -> dict[str, Any]:
    """The claim as a control plane's client would show it, without status."""
    ref = claim.ref
    metadata = {"name": ref.name, "namespace": ref.namespace, "labels": claim.labels, "annotations": claim.annotations}
    return {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": claim.spec}


def kinds() -> list[ClaimRef]:
    """The kinds of the offerings that govern now."""
    offerings = [loading.offering(row.document) for row in loading.active_documents(Document.Kind.OFFERING)]
    found = {(each.api_version, each.kind, each.plural) for each in offerings}
    return [ClaimRef(*kind, namespace="", name="") for kind in sorted(found)]


def all_claims(plane: ControlPlane) -> list[ObservedClaim]:
    """Every claim of these kinds. Raises PortError: a list that can't be complete is none."""
    wanted = kinds()
    return plane.list(wanted)[0] if wanted else []


def unknown_claims(
    plane: ControlPlane, defaults: Defaults, claims: Sequence[ObservedClaim] | None = None
) -> list[Found]:
    """Those that no instance is known for, by namespace and name. Raises PortError."""
    listed = all_claims(plane) if claims is None else claims
    unknown = [claim for claim in listed if _known(claim) is None]
    owners = _Owners(plane.name, defaults)
    found = [_found(plane.name, claim, owners) for claim in unknown]
    return sorted(found, key=lambda each: (each.place, each.claim.ref.kind))


def _known(claim: ObservedClaim) -> Instance | None:
    """The instance whose claim this is."""
    labelled = pausing.uuid_of(claim.labels.get(f"{ANNOTATION_PREFIX}instance"))
    instance = Instance.objects.filter(pk=labelled).first() if labelled else None
    if instance is not None and instance.claim_uid in {"", claim.uid} and instance.phase != "Gone":
        return instance
    return Instance.objects.filter(claim_uid=claim.uid).exclude(phase="Gone").first()


def _found(control_plane: str, claim: ObservedClaim, owners: _Owners) -> Found:
    facts, problem = _facts(claim)
    document = _document(claim, facts)
    team, environment, owner_by = owners.of(claim, facts)
    found = Found(
        control_plane=control_plane,
        claim=claim,
        offering=loading.offering(document),
        document=document,
        facts=facts,
        signed=pausing.approval_of(claim),
        team=team,
        environment=environment,
        owner_by=owner_by,
    )
    problems = [*([problem] if problem else []), *_problems(found)]
    return replace(found, problems=tuple(problems))


def _facts(claim: ObservedClaim) -> tuple[ClaimFacts | None, str]:
    if claim.labels.get(MANAGED_BY) != "portal":
        return None, ""
    try:
        return facts_from_claim(manifest_of(claim)), ""
    except ClaimError as error:
        return None, f"it is labelled as the portal's, but can't be read as that: {error}"


def _document(claim: ObservedClaim, facts: ClaimFacts | None) -> Document:
    """The offering that it was made with, where it is known; else the one of its kind that governs now."""
    if facts is not None:
        made_with = Document.objects.filter(kind=Document.Kind.OFFERING, digest=facts.offering_digest).first()
        if made_with is not None:
            return made_with
    rows = ActiveDocument.objects.filter(kind=Document.Kind.OFFERING, name=claim.ref.plural).select_related("document")
    return rows.get().document


def _problems(found: Found) -> list[str]:
    """Why it can't be imported, each with what would help."""
    claim, problems = found.claim, []
    if claim.deletion_requested_at is not None:
        problems.append("it is being deleted")
    if found.team is None:
        problems.append("nobody's: give --default-team, or label it " + f"{ANNOTATION_PREFIX}team")
    if found.environment is None:
        problems.append(f"no environment of {found.control_plane} is known for it: give --default-environment")
    problems += [f"name: {each.message}" for each in found.offering.check_name(found.name, claim.ref.namespace)]
    problems += [
        f"its spec does not fit the offering: {each.pointer or '/'}: {each.message}"
        for each in found.offering.validate(found.spec)
    ]
    return problems + _taken(found)


def _taken(found: Found) -> list[str]:
    facts = found.facts
    named = pausing.uuid_of(facts.instance_id) if facts else None
    instance = Instance.objects.filter(pk=named).first() if named else None
    if instance is not None:
        told = "is Gone" if instance.phase == "Gone" else f"has a claim with uid {instance.claim_uid}"
        return [
            f"it carries the label of instance {instance.pk}, which {told}: remove the label, or delete one of both"
        ]
    if facts is not None and named is None:
        return [f"its label names the instance {facts.instance_id!r}, which is no id"]
    same_name = Instance.objects.filter(
        environment=found.environment,
        namespace=found.claim.ref.namespace,
        offering=found.offering.name,
        name=found.name,
    ).exclude(phase="Gone")
    return [f"{found.place} is the name of another living instance"] if same_name.exists() else []


class _Owners:
    """Teams and environments by label and by namespace, looked up once for a control plane."""

    def __init__(self, control_plane: str, defaults: Defaults) -> None:
        self._teams = {team.slug: team for team in Team.objects.all()}
        here = list(Environment.objects.filter(control_plane=control_plane))
        self._environments = {each.slug: each for each in here}
        self._defaults = defaults
        self._by_namespace = self._as_instances_have_it(control_plane)
        for environment in here:
            for team in self._teams.values():
                place = _place(team, environment)
                if place:
                    self._by_namespace.setdefault(place, (team, environment))

    def of(self, claim: ObservedClaim, facts: ClaimFacts | None) -> tuple[Team | None, Environment | None, str]:
        """(team, environment, how the team was found)."""
        by_place = self._by_namespace.get(claim.ref.namespace)
        labelled = facts.team if facts else claim.labels.get(f"{ANNOTATION_PREFIX}team", "")
        named = facts.environment if facts else claim.labels.get(f"{ANNOTATION_PREFIX}environment", "")
        environment = (
            self._environments.get(named) or (by_place[1] if by_place else None) or self._default_environment()
        )
        if labelled in self._teams:
            return self._teams[labelled], environment, "label"
        if by_place is not None:
            return by_place[0], environment, "namespace"
        if self._defaults.team is not None:
            return self._defaults.team, environment, "default"
        return None, environment, ""

    def _default_environment(self) -> Environment | None:
        if self._defaults.environment is not None:
            return self._environments.get(self._defaults.environment.slug)
        return next(iter(self._environments.values())) if len(self._environments) == 1 else None

    def _as_instances_have_it(self, control_plane: str) -> dict[str, tuple[Team, Environment]]:
        rows = Instance.objects.filter(environment__control_plane=control_plane).exclude(phase="Gone")
        found: dict[str, tuple[Team, Environment]] = {}
        for instance in rows.select_related("team", "environment").order_by("created_at"):
            found.setdefault(instance.namespace, (instance.team, instance.environment))
        return found


def _place(team: Team, environment: Environment) -> str:
    try:
        return namespace(environment.namespace_rule, team.slug, environment.slug)
    except NamingError:
        return ""
