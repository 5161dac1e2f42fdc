"""Bundles and offerings for tests of what governs: the shipped files, and bundles made of a few rules."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from portal.domain import strict_yaml
from portal.domain.bundle import Bundle, parse_bundle
from portal.domain.offerings import Offering, parse_offering

ROOT = Path(__file__).parents[2]
APPROVERS = {"group": "platform-approvers", "quorum": 1, "timeoutHours": 72}


@cache
def shipped(name: str) -> Offering:
    """An offering as it is in crossplane/apis."""
    folder = ROOT / "crossplane" / "apis" / name
    return parse_offering(name, (folder / "definition.yaml").read_text(), (folder / "offering.yaml").read_text())


def offerings() -> list[Offering]:
    return [shipped("modeldeployments"), shipped("vectordatabases")]


@cache
def default_bundle() -> Bundle:
    """The bundle that ships."""
    return parse_bundle((ROOT / "portal" / "policies" / "default.yaml").read_text(), offerings())


def guardrail(code: str = "no", when: str = "true", **more: Any) -> dict[str, Any]:
    return {"code": code, "when": when, "message": "it is not wanted", **more}


def stage(code: str = "ask", when: str = "true", **more: Any) -> dict[str, Any]:
    return {**guardrail(code, when), **APPROVERS, **more}


def text_of(
    guardrails: list[dict[str, Any]] | None = None, approvals: list[dict[str, Any]] | None = None, **spec: Any
) -> str:
    """The YAML of a bundle with these rules."""
    value = {
        "apiVersion": "portal.aiplatform.example.org/v1",
        "kind": "PolicyBundle",
        "metadata": {"name": "test"},
        "spec": {
            "currency": "USD",
            "quote": {"validDays": 30},
            "guardrails": guardrails or [],
            "approvals": approvals or [],
            "budgetApprovers": {**APPROVERS, "group": "finance-approvers"},
            "priceReviewers": {**APPROVERS, "group": "finance-approvers"},
            "quotaApprovers": {**APPROVERS, "group": "platform-admins"},
            **spec,
        },
    }
    return strict_yaml.dump(value)


def bundle_of(
    guardrails: list[dict[str, Any]] | None = None, approvals: list[dict[str, Any]] | None = None, **spec: Any
) -> Bundle:
    return parse_bundle(text_of(guardrails, approvals, **spec), offerings())
