"""Makes stored decisions again from their stored inputs, and compares. Reads only.

A decision that can't be made again as it was says that its inputs, its texts or its result were altered, or that the
rules in code have changed since: each difference is shown with its path. Whether the rows are those that the audit log
tells of is for `attesting` to say.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import msgspec

from portal.domain.decision import Decision, Inputs, digest, from_json, to_json
from portal.models import DecisionRecord, Document
from portal.services import deciding, loading
from portal.services.attesting import Difference
from portal.services.errors import ServiceError


@dataclass(frozen=True)
class Explanation:
    """One stored decision, and where making it again differs (nowhere, if all is well)."""

    record: DecisionRecord
    decision: Decision | None
    differences: list[Difference]


def explain(request_id: uuid.UUID) -> list[Explanation]:
    """Every decision of a request, oldest first, made again."""
    records = DecisionRecord.objects.filter(request=request_id).order_by("id")
    return [_explain(record) for record in records]


def _explain(record: DecisionRecord) -> Explanation:
    differences = []
    if digest(record.inputs) != record.inputs_digest:
        differences.append(Difference("/inputsDigest", record.inputs_digest, digest(record.inputs)))
    try:
        inputs = from_json(Inputs, record.inputs)
        _check_texts(inputs)
        decision = deciding.decide(inputs)
    except (msgspec.ValidationError, Document.DoesNotExist, ServiceError, ValueError) as error:
        return Explanation(record, None, [*differences, Difference("/inputs", "as stored", str(error))])
    if record.decided_at != inputs.at:
        differences.append(Difference("/decidedAt", record.decided_at.isoformat(), inputs.at.isoformat()))
    differences += compare(record.result, to_json(decision), "/result")
    if record.outcome != decision.outcome:
        differences.append(Difference("/outcome", record.outcome, decision.outcome))
    return Explanation(record, decision, differences)


def _check_texts(inputs: Inputs) -> None:
    """Hash the stored texts again, even those that this process has parsed before. ServiceError: altered."""
    if inputs.offering_digest:
        loading.stored_texts(Document.Kind.OFFERING, inputs.offering_digest)
    loading.stored_texts(Document.Kind.BUNDLE, inputs.bundle_digest)


def compare(stored: Any, again: Any, path: str) -> list[Difference]:
    """Where two JSON values differ, by path."""
    if isinstance(stored, dict) and isinstance(again, dict):
        keys = sorted(set(stored) | set(again))
        return [d for key in keys for d in compare(stored.get(key), again.get(key), f"{path}/{key}")]
    if isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        pairs = enumerate(zip(stored, again, strict=True))
        return [d for place, (one, two) in pairs for d in compare(one, two, f"{path}/{place}")]
    return [] if stored == again else [Difference(path, stored, again)]
