"""What a person or a machine hands in: the body of a submission, checked for its form.

In charge of: which members each kind of request has, their types and lengths. Not in charge of: whether team, offering
or instance exist (services), whether the spec fits its schema (offerings), or what policies say (governance).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import jsonschema_rs
import msgspec

from portal.domain.decision import RequestKind
from portal.domain.schema_messages import Problem, describe

MAX_REASON = 10_000
MAX_LABELS = 32
MAX_PROBLEMS = 50
SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"

_text = {"type": "string", "minLength": 1, "maxLength": 253}
_slug = {"type": "string", "pattern": SLUG}
_common: dict[str, Any] = {
    "reason": {"type": "string", "maxLength": MAX_REASON},
    "madeFor": {"type": "string", "minLength": 1, "maxLength": 150},
    "idempotencyKey": {"type": "string", "minLength": 1, "maxLength": 200},
}
_labels = {
    "type": "object",
    "maxProperties": MAX_LABELS,
    "propertyNames": {"pattern": r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"},
    "additionalProperties": {"type": "string", "pattern": r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"},
}
_instance = {"type": "string", "format": "uuid"}


def _of_instance(kind: str) -> dict[str, Any]:
    """What says all that there is to say by naming an instance."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["kind", "instance"],
        "properties": {"kind": {"const": kind}, "instance": _instance, **_common},
    }


BODIES: dict[str, dict[str, Any]] = {
    "Create": {
        "type": "object",
        "additionalProperties": False,
        "required": ["kind", "offering", "team", "environment", "name", "spec"],
        "properties": {
            "kind": {"const": "Create"},
            "offering": _text,
            "team": _slug,
            "environment": _slug,
            "name": {"type": "string", "minLength": 1, "maxLength": 253},
            "spec": {"type": "object"},
            "labels": _labels,
            **_common,
        },
    },
    "Change": {
        "type": "object",
        "additionalProperties": False,
        "required": ["kind", "instance", "spec"],
        "properties": {
            "kind": {"const": "Change"},
            "instance": _instance,
            "spec": {"type": "object", "description": "The whole new spec, not only what changes"},
            **_common,
        },
    },
    "Suspend": _of_instance("Suspend"),
    "Resume": _of_instance("Resume"),
    "Delete": _of_instance("Delete"),
    "Quota": {
        "type": "object",
        "additionalProperties": False,
        "required": ["kind", "team", "spec"],
        "properties": {
            "kind": {"const": "Quota"},
            "team": _slug,
            "spec": {
                "type": "object",
                "additionalProperties": False,
                "required": ["dimension", "limit"],
                "properties": {
                    "dimension": {"type": "string", "pattern": r"^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$"},
                    "limit": {"type": "integer", "minimum": 0, "maximum": 1_000_000_000},
                },
            },
            **_common,
        },
    },
}
_validators = {kind: jsonschema_rs.validator_for(body, validate_formats=True) for kind, body in BODIES.items()}


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A submission of good form. Which members are set depends on `kind`, see BODIES."""

    kind: RequestKind
    team: str = ""
    environment: str = ""
    offering: str = ""
    instance: str = ""
    name: str = ""
    spec: dict[str, Any] = {}
    labels: dict[str, str] = {}
    reason: str = ""
    made_for: str = msgspec.field(name="madeFor", default="")
    idempotency_key: str = msgspec.field(name="idempotencyKey", default="")


def parse_draft(body: object) -> Draft | list[Problem]:
    """The draft, or every problem of the body's form, each with a JSON pointer."""
    if not isinstance(body, dict):
        return [Problem("", "wrong-type", f"the body is {_name(body)}; send a JSON object")]
    kind = body.get("kind")
    if not isinstance(kind, str) or kind not in BODIES:
        shown = "missing" if "kind" not in body else repr(kind)[:80]
        return [Problem("/kind", "unknown-kind", f"kind is {shown}; it is one of {', '.join(BODIES)}")]
    if problem := _unfit_text(body):
        return [problem]
    labels = body.get("labels")
    if isinstance(labels, dict) and len(labels) > MAX_LABELS:
        # Looked at before all else: the validator's errors about keys copy the whole object, once per key.
        return [Problem("/labels", "too-many", f"{len(labels)} labels; at most {MAX_LABELS} are kept. Leave some out")]
    errors = islice(_validators[kind].iter_errors(body), MAX_PROBLEMS)
    problems = [each for error in errors for each in _problems(error, BODIES[kind])]
    return problems[:MAX_PROBLEMS] or msgspec.convert(body, Draft)


def _problems(error: jsonschema_rs.ValidationError, body: dict[str, Any]) -> Iterator[Problem]:
    keyword = str(error.schema_path[-1]) if error.schema_path else "invalid"
    holder: Any = body
    for step in list(error.schema_path)[:-1]:
        holder = holder[step]
    for found in describe(error, holder):
        yield Problem(found.pointer, _CODES.get(keyword, "invalid"), found.message)


_CODES = {
    "additionalProperties": "unknown-field",
    "required": "missing-field",
    "type": "wrong-type",
    "maxLength": "too-long",
    "minLength": "too-short",
    "pattern": "bad-format",
    "format": "bad-format",
    "minimum": "out-of-range",
    "maximum": "out-of-range",
}


def _name(value: object) -> Literal["null", "a list", "a string", "a number", "a boolean"]:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return "a string"
    return "a boolean" if isinstance(value, bool) else "a number"


def _unfit_text(value: object, pointer: str = "", depth: int = 0) -> Problem | None:
    """Text that no database or claim can hold (U+0000, half of a surrogate pair), or nesting past any schema's."""
    if depth > MAX_DEPTH:
        return Problem("", "too-deep", f"nested more than {MAX_DEPTH} levels deep; no offering needs that")
    if isinstance(value, str):
        bad = "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value)
        return Problem(pointer, "bad-text", "holds U+0000 or half a surrogate pair; remove it") if bad else None
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        step = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
        found = _unfit_text(str(key), step, depth + 1) or _unfit_text(item, step, depth + 1)
        if found:
            return found
    return None


MAX_DEPTH = 32
