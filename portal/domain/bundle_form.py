"""The form of a policy bundle, as a schema.

In charge of: which members a bundle has, their types and bounds. Not in charge of: whether its rules mean something
(bundle).
"""

from __future__ import annotations

from typing import Any

KINDS = ("Create", "Change", "Suspend", "Resume", "Delete", "Quota")
REQUEST_FIELDS = ("team", "environment", "name", "labels", "reason")  # what a rule's `field` may name beside /spec/…

QUOTA_SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["dimension", "limit"],
    "properties": {"dimension": {"type": "string"}, "limit": {"type": "integer"}},
}
"""The spec of a request of kind Quota."""

_GROUP = {"type": "string", "minLength": 1, "maxLength": 150}
_QUORUM = {"type": "integer", "minimum": 1, "maximum": 20}
_TIMEOUT = {"type": "integer", "minimum": 1, "maximum": 24 * 365}
_CEL = {"type": "string", "minLength": 1, "maxLength": 2_048}
_MESSAGE = {"type": "string", "minLength": 1, "maxLength": 1_000}

_APPROVERS = {
    "type": "object",
    "required": ["group", "quorum", "timeoutHours"],
    "properties": {"group": _GROUP, "quorum": _QUORUM, "timeoutHours": _TIMEOUT},
}
_RULE = {
    "code": {"type": "string", "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$", "maxLength": 63},
    "appliesTo": {
        "type": "object",
        "properties": {
            "offerings": {"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 253}},
            "kinds": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(KINDS)}},
        },
    },
    "when": _CEL,
    "message": _MESSAGE,
    "messageExpression": _CEL,
    "field": {"type": "string", "pattern": "^/", "maxLength": 500},
}

BUNDLE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"type": "string", "enum": ["portal.aiplatform.example.org/v1"]},
        "kind": {"type": "string", "enum": ["PolicyBundle"]},
        "metadata": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "maxLength": 63}},
        },
        "spec": {
            "type": "object",
            "required": [
                *("currency", "quote", "guardrails", "approvals"),
                *("budgetApprovers", "priceReviewers", "quotaApprovers"),
            ],
            "properties": {
                "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "quote": {
                    "type": "object",
                    "required": ["validDays"],
                    "properties": {"validDays": {"type": "integer", "minimum": 1, "maximum": 365}},
                },
                "guardrails": {
                    "type": "array",
                    "maxItems": 500,
                    "items": {"type": "object", "required": ["code", "when"], "properties": _RULE},
                },
                "approvals": {
                    "type": "array",
                    "maxItems": 500,
                    "items": {
                        "type": "object",
                        "required": ["code", "when", "group", "quorum", "timeoutHours"],
                        "properties": {**_RULE, "group": _GROUP, "quorum": _QUORUM, "timeoutHours": _TIMEOUT},
                    },
                },
                "budgetApprovers": _APPROVERS,
                "priceReviewers": _APPROVERS,
                "quotaApprovers": _APPROVERS,
            },
        },
    },
}
