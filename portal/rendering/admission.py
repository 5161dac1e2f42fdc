"""A ValidatingAdmissionPolicy per offering: what an API server refuses, so that nobody goes round the portal.

In charge of: the policy and its binding, with an offering's metering as CEL of the API server. Not in charge of: who
the people and accounts are (handed in), or what the composition function refuses (it verifies the signed approval).

    create          the portal and platform admins
    spec            the portal and platform admins; Crossplane its own part, spec.crossplane
    above ceilings  the portal alone: nobody grows a claim beyond what was approved for it
    marks           labels and annotations of the portal's prefix: the portal and platform admins;
                    those of Crossplane's: Crossplane too
    finalizers      are taken off by the above and the cluster's controllers; the two of a deletion's order by anybody
    delete          the portal, platform admins, Crossplane, the cluster's own controllers, and anybody who deletes the
                    whole namespace (that is for RBAC to allow); a claim that is not the portal's anybody may delete

All else (status, other labels and annotations) is left to RBAC. Rules speak of what a write changes and not of who the
garbage collector is, so that it and controllers of unknown names are never in the way.

CEL as the API server has it: kubernetes.io, "Validating Admission Policy" and "Common Expression Language in
Kubernetes" (1.30 to 1.35, read 2026-12-01). There an object of a custom resource is plain JSON after defaulting: its
fields have their own names and no types until they are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from portal.domain.offerings import Offering
from portal.rendering.approval_token import APPROVAL, CEILINGS
from portal.rendering.claim import MANAGED_BY
from portal.rendering.names import ANNOTATION_PREFIX

API_VERSION = "admissionregistration.k8s.io/v1"
CROSSPLANE_PREFIX = "crossplane.io/"
# The names that Kubernetes' own controllers have; without an account of their own they are the controller manager.
CLUSTER_CONTROLLERS = (
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:kube-controller-manager",
)

# A property whose name is no identifier, as the portal's CEL and that of schemas write it.
_ESCAPED = re.compile(r"\b__[a-z]+__\b|__(?:dot|dash|slash|underscores)__")


class AdmissionError(ValueError):
    """An offering whose metering can't be said in an admission policy; the message names the expression and why."""


@dataclass(frozen=True, slots=True)
class Actors:
    """Who is who at the API server, by user name or group."""

    portal: str = "system:serviceaccount:portal-system:portal"
    crossplane: tuple[str, ...] = ("system:serviceaccount:crossplane-system:crossplane",)
    admin_groups: tuple[str, ...] = ("platform-admins",)
    controllers: tuple[str, ...] = CLUSTER_CONTROLLERS


def admission_policy(
    offering: Offering, actors: Actors, portal_url: str, *, warn: bool = False
) -> list[dict[str, Any]]:
    """The policy and its binding. `warn`: what would be refused is let through, with a warning and an audit annotation.

    Raises AdmissionError.
    """
    name = f"portal-{offering.plural}.{offering.group}"
    policy = {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [offering.group],
                        "apiVersions": [offering.version],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": [offering.plural],
                    }
                ]
            },
            "variables": [
                {"name": key, "expression": expression} for key, expression in _variables(offering, actors).items()
            ],
            "validations": [*_ceilings(offering, portal_url), *_rules(offering, portal_url)],
        },
    }
    binding = {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Warn", "Audit"] if warn else ["Deny"]},
    }
    return [policy, binding]


def _variables(offering: Offering, actors: Actors) -> dict[str, str]:
    """Evaluated only where a rule uses them: some ask for an object that a creation or a deletion does not have."""
    return {
        "portal": f"request.userInfo.username == {_text(actors.portal)}",
        "admin": "has(request.userInfo.groups) && "
        f"request.userInfo.groups.exists(group, group in {_texts(actors.admin_groups)})",
        "trusted": "variables.portal || variables.admin",
        "crossplane": f"request.userInfo.username in {_texts(actors.crossplane)}",
        "controller": f"request.userInfo.username in {_texts(actors.controllers)}",
        **{
            key: f"has({where}) ? {where} : {{}}"
            for key, where in (
                ("labels", "object.metadata.labels"),
                ("oldLabels", "oldObject.metadata.labels"),
                ("annotations", "object.metadata.annotations"),
                ("oldAnnotations", "oldObject.metadata.annotations"),
                ("spec", "object.spec"),
                ("oldSpec", "oldObject.spec"),
            )
        },
        "sameSpec": _same("spec", "oldSpec", "key == 'crossplane'"),
        "sameMachinery": _same("spec", "oldSpec", "key != 'crossplane'"),
        **{
            key: f"{_same('labels', 'oldLabels', other)} && {_same('annotations', 'oldAnnotations', other)}"
            for key, other in (
                ("samePortalMarks", f"!key.startsWith({_text(ANNOTATION_PREFIX)})"),
                ("sameCrossplaneMarks", f"!key.startsWith({_text(CROSSPLANE_PREFIX)})"),
            )
        },
        "sameApproval": _same("annotations", "oldAnnotations", f"!(key in [{_text(APPROVAL)}, {_text(CEILINGS)}])"),
        "sameFinalizers": "!has(oldObject.metadata.finalizers) || oldObject.metadata.finalizers.all(name, "
        "name in ['foregroundDeletion', 'orphan'] || "
        "(has(object.metadata.finalizers) && name in object.metadata.finalizers))",
        "namespaceEnds": "namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)",
        "ours": f"{_text(MANAGED_BY)} in variables.oldLabels && variables.oldLabels[{_text(MANAGED_BY)}] == 'portal'",
        "limited": f"{_text(CEILINGS)} in variables.oldAnnotations",
        "ceilings": f"variables.oldAnnotations[{_text(CEILINGS)}].split(',')",
        **_metered(offering),
    }


def _metered(offering: Offering) -> dict[str, str]:
    """Per line of the offering's metering its dimension, amount, and the sum of all lines of that dimension.

    A list of one item gives its expressions the name `spec` that they speak of.
    """
    found = {}
    lines = range(len(offering.metering))
    for number, (dimension, amount) in enumerate(offering.metering):
        for key, expression in ((f"dimension{number}", dimension), (f"amount{number}", amount)):
            if escaped := _ESCAPED.search(expression):
                raise AdmissionError(
                    f"offering {offering.name}: the metering {expression!r} uses the escaped name {escaped.group()!r}, "
                    "which an admission policy does not know: rename that property, or guard this kind by RBAC alone"
                )
            found[key] = f"[variables.spec].map(spec, {expression})[0]"
    for number in lines:
        same = (
            f"(variables.dimension{other} == variables.dimension{number} ? variables.amount{other} : 0)"
            for other in lines
        )
        found[f"total{number}"] = " + ".join(same)
    return found


def _ceilings(offering: Offering, portal_url: str) -> list[dict[str, str]]:
    """An edit of the spec that takes more of a dimension than the claim's approval allows."""
    rules = []
    for number in range(len(offering.metering)):
        dimension, total = f"variables.dimension{number}", f"variables.total{number}"
        fits = (
            f"variables.ceilings.exists(line, line.startsWith({dimension} + '=') && "
            f"int(line.substring(size({dimension}) + 1)) >= {total})"
        )
        rules.append(
            {
                "expression": "request.operation != 'UPDATE' || variables.portal || variables.sameSpec || "
                f"!variables.limited || {total} == 0 || {fits}",
                "messageExpression": f"'this takes ' + string({total}) + ' of ' + {dimension} + '; approved: ' + "
                f"variables.ceilings.join(', ') + '. ' + {_text(_ask(offering, portal_url))}",
                "message": f"this takes more than was approved. {_ask(offering, portal_url)}",
                "reason": "Forbidden",
            }
        )
    return rules


def _rules(offering: Offering, portal_url: str) -> list[dict[str, str]]:
    ask = _ask(offering, portal_url)
    wanted = [
        (
            "request.operation != 'CREATE' || variables.trusted",
            f"a {offering.kind} is requested in the portal, which decides by quota, price and policy. {ask}",
        ),
        (
            "request.operation != 'UPDATE' || variables.trusted || "
            "(variables.sameSpec && (variables.sameMachinery || variables.crossplane))",
            f"the spec of a {offering.kind} changes by a request in the portal only. {ask}",
        ),
        (
            "request.operation != 'UPDATE' || variables.trusted || "
            "(variables.samePortalMarks && (variables.sameCrossplaneMarks || variables.crossplane))",
            f"labels and annotations {ANNOTATION_PREFIX}* are the portal's, {CROSSPLANE_PREFIX}* are Crossplane's. "
            f"{ask}",
        ),
        (
            "request.operation != 'UPDATE' || variables.portal || variables.sameApproval",
            f"what was approved for a {offering.kind}, and up to which ceilings, is written by the portal alone. {ask}",
        ),
        (
            "request.operation != 'UPDATE' || variables.trusted || variables.crossplane || variables.controller || "
            "variables.sameFinalizers",
            "a finalizer that is taken off by hand leaves behind what it waits for. The portal shows what a deletion "
            f"waits for; a platform admin can end it. {ask}",
        ),
        (
            "request.operation != 'DELETE' || !variables.ours || variables.trusted || variables.crossplane || "
            "variables.controller || variables.namespaceEnds",
            f"this {offering.kind} is deleted by a request in the portal, which gives its quota back. {ask}",
        ),
    ]
    return [{"expression": expression, "message": message, "reason": "Forbidden"} for expression, message in wanted]


def _ask(offering: Offering, portal_url: str) -> str:
    return f"Ask there: {portal_url}/offerings/{offering.name}/"


def _same(new: str, old: str, left_out: str) -> str:
    """Whether two maps are alike but for the keys that are left out (an expression over `key`)."""
    new, old = f"variables.{new}", f"variables.{old}"
    return (
        f"({new}.all(key, {left_out} || (key in {old} && {new}[key] == {old}[key])) && "
        f"{old}.all(key, {left_out} || key in {new}))"
    )


def _text(text: str) -> str:
    """A CEL literal. JSON's escapes are CEL's (language definition, "String and Bytes Values")."""
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: Sequence[str]) -> str:
    return f"[{', '.join(_text(text) for text in texts)}]"
