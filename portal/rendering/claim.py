"""The claim of an Instance: the object that the portal applies, and the facts that it was made of, read back from it.

In charge of: the claim's form, its labels and annotations (enough to rebuild the portal's row), the pinned composition
revision. Not in charge of: names (rendering.names), whether the spec is valid (domain), or applying it (adapters).

The approved spec arrives as it is: no text in it is evaluated, no value changes its type. A claim is a namespaced XR on
Crossplane v2 (its machinery under `spec.crossplane`) or the claim of an XRD of v1 (machinery directly under `spec`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from portal.domain import strict_yaml
from portal.rendering.entity_crossplane import EXCLUDE
from portal.rendering.names import ANNOTATION_PREFIX, label_value

Style = Literal["v2", "v1"]

MANAGED_BY = ANNOTATION_PREFIX + "managed-by"
INSTANCE = ANNOTATION_PREFIX + "instance"
# Of an object that was there before the portal knew it: its uid. A control plane's adapter takes over that one alone.
ADOPTED_UID = ANNOTATION_PREFIX + "adopted-uid"
MAX_DEPTH = 100  # of a spec; deeper ones are refused at the door already

# What the core itself keeps in a claim. v2: one object. v1: CompositeResourceClaimSpecProps in Crossplane's
# internal/xcrd/schemas.go (v1.20, read 2026-12-01).
_MACHINERY: Mapping[Style, frozenset[str]] = {
    "v2": frozenset({"crossplane"}),
    "v1": frozenset(
        {
            "compositionRef",
            "compositionSelector",
            "compositionRevisionRef",
            "compositionRevisionSelector",
            "compositionUpdatePolicy",
            "compositeDeletePolicy",
            "resourceRef",
            "publishConnectionDetailsTo",
            "writeConnectionSecretToRef",
        }
    ),
}


class ClaimError(ValueError):
    """A claim can't be made of these facts, or these facts can't be read from that claim. `field` is a JSON pointer."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """Everything that a claim is made of, and that can be read back from it.

    `name` is the claim's name (`names.claim_name`), `instance_name` the instance's as people see it; `owner` is the
    person it is made for. `spec` is the approved one with its defaults. `quote_monthly` None: its price was unknown.
    """

    api_version: str
    kind: str
    composition: str
    composition_revision: str
    offering: str
    offering_digest: str
    instance_id: str
    instance_name: str
    name: str
    namespace: str
    team: str
    team_title: str
    environment: str
    request_id: str
    requester: str
    owner: str
    quote_monthly: Decimal | None
    quote_currency: str
    spec: dict[str, Any]
    environment_labels: dict[str, str] = field(default_factory=dict)
    style: Style = "v2"


def render_claim(facts: ClaimFacts) -> dict[str, Any]:
    """The claim as plain JSON, the same for the same facts. Raises ClaimError, naming the field, for a spec that holds
    what is not JSON or what the core keeps there itself."""
    _refuse_machinery(facts)
    spec = _plain(facts.spec, "/spec", 0)
    machinery = {
        "compositionRef": {"name": facts.composition},
        "compositionRevisionRef": {"name": facts.composition_revision},
        "compositionUpdatePolicy": "Manual",
    }
    spec.update({"crossplane": machinery} if facts.style == "v2" else machinery)
    return {
        "apiVersion": facts.api_version,
        "kind": facts.kind,
        "metadata": {
            "name": facts.name,
            "namespace": facts.namespace,
            "labels": _prefixed(_labels(facts)),
            "annotations": {**_prefixed(_annotations(facts)), EXCLUDE: "true"},  # the portal has an entry for it
        },
        "spec": spec,
    }


def claim_yaml(claim: Mapping[str, Any]) -> str:
    """The claim for people to read: YAML whose reader gets the same strings and numbers back."""
    return strict_yaml.dump(dict(claim))


def without_machinery(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A claim's spec as people asked for it: without what Crossplane keeps there itself."""
    style: Style = "v2" if "crossplane" in spec else "v1"
    return {key: value for key, value in spec.items() if key not in _MACHINERY[style]}


def machinery_of(spec: Mapping[str, Any]) -> frozenset[str]:
    """The members of a claim's spec that Crossplane keeps there."""
    return frozenset(spec) - frozenset(without_machinery(spec))


def facts_from_claim(claim: Mapping[str, Any]) -> ClaimFacts:
    """The facts again, from a claim as rendered or as a control plane returns it (with what the core added).

    Raises ClaimError for a claim that isn't the portal's, that misses what rendering wrote, or where it is unreadable.
    """
    metadata = _mapping(claim, "metadata", "/metadata")
    labels = _unprefixed(_mapping(metadata, "labels", "/metadata/labels"))
    annotations = _unprefixed(_mapping(metadata, "annotations", "/metadata/annotations"))
    if labels.get("managed-by") != "portal":
        raise ClaimError(_pointer("labels", "managed-by"), "is not 'portal': this claim was not made by the portal")
    originals = {**labels, **annotations}  # an original that is no label value stands in the annotations
    spec = dict(_mapping(claim, "spec", "/spec"))
    style: Style = "v2" if "crossplane" in spec else "v1"
    machinery = _mapping(spec, "crossplane", "/spec/crossplane") if style == "v2" else spec
    at = "/spec/crossplane" if style == "v2" else "/spec"
    return ClaimFacts(
        api_version=_text(claim, "apiVersion", "/apiVersion"),
        kind=_text(claim, "kind", "/kind"),
        composition=_reference(machinery, "compositionRef", at),
        composition_revision=_reference(machinery, "compositionRevisionRef", at),
        offering=_original(originals, "offering"),
        offering_digest=_original(originals, "offering-digest"),
        instance_id=_original(originals, "instance"),
        instance_name=_original(originals, "instance-name"),
        name=_text(metadata, "name", "/metadata/name"),
        namespace=_text(metadata, "namespace", "/metadata/namespace"),
        team=_original(originals, "team"),
        team_title=_original(originals, "team-title"),
        environment=_original(originals, "environment"),
        request_id=_original(originals, "request"),
        requester=_original(originals, "requester"),
        owner=_original(originals, "owner"),
        quote_monthly=_money(originals),
        quote_currency=_original(originals, "quote-currency"),
        spec=without_machinery(spec),
        environment_labels=_environment_labels(originals),
        style=style,
    )


def _labels(facts: ClaimFacts) -> dict[str, str]:
    """What claims are selected by. The instance label tells the portal's own claim from a stranger's of that name."""
    return {
        "managed-by": "portal",
        "instance": label_value(facts.instance_id),
        "team": label_value(facts.team),
        "environment": label_value(facts.environment),
        "offering": label_value(facts.offering),
    }


def _annotations(facts: ClaimFacts) -> dict[str, str]:
    """What can't be selected by, and every original that its label could not hold."""
    annotations = {
        "request": facts.request_id,
        "requester": facts.requester,
        "owner": facts.owner,
        "instance-name": facts.instance_name,
        "team-title": facts.team_title,
        "environment-labels": json.dumps(facts.environment_labels, sort_keys=True, ensure_ascii=False),
        "offering-digest": facts.offering_digest,
        "quote-currency": facts.quote_currency,
    }
    if facts.quote_monthly is not None:
        annotations["quote-monthly"] = _wire_money(facts.quote_monthly)
    originals = {
        "instance": facts.instance_id,
        "team": facts.team,
        "environment": facts.environment,
        "offering": facts.offering,
    }
    return annotations | {key: text for key, text in originals.items() if label_value(text) != text}


def _refuse_machinery(facts: ClaimFacts) -> None:
    taken = sorted(_MACHINERY[facts.style] & facts.spec.keys())
    if taken:
        raise ClaimError(f"/spec/{taken[0]}", "belongs to Crossplane and is written by the portal; remove it")


def _plain(value: Any, pointer: str, depth: int) -> Any:
    """A copy of a JSON value with the same types throughout; the caller's own is never shared."""
    if depth > MAX_DEPTH:
        raise ClaimError(pointer, f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise ClaimError(pointer, f"has the key {odd[0]!r}, which is not a string")
        return {key: _plain(item, f"{pointer}/{_escape(key)}", depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, f"{pointer}/{index}", depth + 1) for index, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ClaimError(pointer, f"holds {value!r}, which is not a JSON value")


def _wire_money(amount: Decimal) -> str:
    if not amount.is_finite() or amount < 0:
        raise ClaimError(_pointer("annotations", "quote-monthly"), f"{amount} is not an amount of money")
    return format(amount, "f")


def _money(annotations: Mapping[str, str]) -> Decimal | None:
    if "quote-monthly" not in annotations:
        return None
    text = annotations["quote-monthly"]
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise ClaimError(_pointer("annotations", "quote-monthly"), f"{text!r} is not an amount of money")
    return amount


def _environment_labels(annotations: Mapping[str, str]) -> dict[str, str]:
    text = _original(annotations, "environment-labels")
    try:
        labels = json.loads(text)
    except ValueError:
        labels = None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise ClaimError(_pointer("annotations", "environment-labels"), f"{text!r} is not a JSON object of strings")
    return labels


def _original(texts: Mapping[str, str], key: str) -> str:
    if key not in texts:
        raise ClaimError(_pointer("annotations", key), "is missing: the portal's row can't be rebuilt without it")
    return texts[key]


def _reference(machinery: Mapping[str, Any], key: str, at: str) -> str:
    return _text(_mapping(machinery, key, f"{at}/{key}"), "name", f"{at}/{key}/name")


def _mapping(parent: Mapping[str, Any], key: str, pointer: str) -> Mapping[str, Any]:
    value = parent.get(key)
    if not isinstance(value, Mapping):
        raise ClaimError(pointer, "is missing or not an object")
    return value


def _text(parent: Mapping[str, Any], key: str, pointer: str) -> str:
    value = parent.get(key)
    if not isinstance(value, str) or not value:
        raise ClaimError(pointer, "is missing or not a text")
    return value


def _prefixed(values: Mapping[str, str]) -> dict[str, str]:
    return {ANNOTATION_PREFIX + key: value for key, value in values.items()}


def _unprefixed(values: Mapping[str, Any]) -> dict[str, str]:
    """The portal's own among the labels or annotations of an object; those of others are left out."""
    return {
        key.removeprefix(ANNOTATION_PREFIX): value
        for key, value in values.items()
        if key.startswith(ANNOTATION_PREFIX) and isinstance(value, str)
    }


def _pointer(kind: Literal["labels", "annotations"], key: str) -> str:
    return f"/metadata/{kind}/{_escape(ANNOTATION_PREFIX + key)}"


def _escape(key: str) -> str:
    """One step of a JSON pointer (RFC 6901, section 3)."""
    return key.replace("~", "~0").replace("/", "~1")
