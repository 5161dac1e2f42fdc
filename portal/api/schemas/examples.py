"""One coherent example of everything, around an invented offering. A test holds each against its shape."""

from __future__ import annotations

from typing import Any

URL = "https://portal.example.org"
REQUEST_ID = "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"
INSTANCE_ID = "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c12"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
Json = dict[str, Any]

SPEC: Json = {"accelerator": {"class": "l4", "count": 1}, "idleHours": 8}
CREATE: Json = {
    "kind": "Create",
    "offering": "notebookservers",
    "team": "search",
    "environment": "dev",
    "name": "ranking",
    "spec": SPEC,
    "labels": {"purpose": "ranking-study"},
    "reason": "Ranking study until the end of June.",
    "idempotencyKey": "ranking-1",
}
CHANGE: Json = {
    "kind": "Change",
    "instance": INSTANCE_ID,
    "spec": {"accelerator": {"class": "l4", "count": 2}, "idleHours": 8},
    "reason": "It trains on two by now.",
}
SUSPEND: Json = {"kind": "Suspend", "instance": INSTANCE_ID, "reason": "Nobody needs it until July."}
RESUME: Json = {"kind": "Resume", "instance": INSTANCE_ID}
DELETE: Json = {"kind": "Delete", "instance": INSTANCE_ID, "reason": "The study is done."}
QUOTA: Json = {
    "kind": "Quota",
    "team": "search",
    "spec": {"dimension": "gpu.l4", "limit": 8},
    "reason": "Two more studies begin in July.",
}
INVALID: Json = {
    "pointer": "/spec/accelerator/count",
    "code": "out-of-range",
    "message": "16 is more than the maximum of 8",
}
_COST: Json = {
    "sku": "gpu.l4",
    "quantity": 1,
    "unit": "hour",
    "unitPrice": "0.800000",
    "region": "eu-central",
    "monthly": "584.00",
    "source": "contract 2026-17",
    "problem": None,
}
_QUOTE: Json = {
    "currency": "EUR",
    "monthly": "584.00",
    "region": "eu-central",
    "validUntil": "2026-06-30",
    "lines": [_COST],
}
_MONTHLY: Json = {"currency": "EUR", "before": "0.00", "after": "584.00", "delta": "584.00"}
_USAGE: Json = {"team": "search", "dimension": "gpu.l4", "before": 3, "after": 4, "limit": 4}
_BUDGET: Json = {
    "team": "search",
    "currency": "EUR",
    "before": "1752.00",
    "after": "2336.00",
    "soft": "4000.00",
    "hard": "6000.00",
}
_REASON: Json = {
    "code": "gpu-count",
    "effect": "approve",
    "message": "Notebooks with an accelerator are looked at by a person.",
    "field": "/spec/accelerator/count",
}
_DECISION: Json = {
    "id": 42,
    "moment": "submission",
    "outcome": "NeedsApproval",
    "reasons": [_REASON],
    "usage": [_USAGE],
    "quote": _QUOTE,
    "budgets": [_BUDGET],
    "decidedAt": "2026-06-01T09:30:00Z",
}
_STAGE: Json = {
    "code": "gpu-count",
    "group": "platform-approvers",
    "quorum": 1,
    "approvals": 0,
    "message": _REASON["message"],
    "dueAt": "2026-06-04T09:30:00Z",
    "round": 1,
    "votes": [],
}
REQUEST: Json = {
    "id": REQUEST_ID,
    "kind": "Create",
    "state": "Waiting",
    "team": "search",
    "environment": "dev",
    "offering": "notebookservers",
    "instance": INSTANCE_ID,
    "name": "ranking",
    "spec": SPEC,
    "old": None,
    "difference": [],
    "labels": {"purpose": "ranking-study"},
    "reason": CREATE["reason"],
    "requester": "dana",
    "madeFor": None,
    "decision": _DECISION,
    "stages": [_STAGE],
    "waitsFor": {"group": "platform-approvers", "missing": 1},
    "quote": {"monthly": "584.00", "currency": "EUR", "validUntil": "2026-06-30"},
    "cost": _MONTHLY,
    "failure": None,
    "appliedAt": None,
    "generation": None,
    "createdAt": "2026-06-01T09:30:00Z",
    "changedAt": "2026-06-01T09:30:00Z",
    "links": {
        "self": f"{URL}/api/v1/requests/{REQUEST_ID}/",
        "page": f"{URL}/requests/{REQUEST_ID}/",
        "instance": f"{URL}/api/v1/instances/{INSTANCE_ID}/",
    },
}
PREVIEW: Json = {
    "outcome": "NeedsApproval",
    "reasons": [_REASON],
    "stages": [
        {
            "code": "gpu-count",
            "group": "platform-approvers",
            "quorum": 1,
            "timeoutHours": 72,
            "message": _REASON["message"],
        }
    ],
    "usage": [_USAGE],
    "quote": _QUOTE,
    "budgets": [_BUDGET],
    "cost": _MONTHLY,
    "difference": [],
    "spec": SPEC,
    "controlPlane": {
        "accepted": True,
        "code": "",
        "message": "it would be taken",
        "claim": "apiVersion: example.org/v1\nkind: NotebookServer\n",
        "difference": [{"pointer": "/spec/accelerator/count", "old": 1, "new": 2}],
    },
    "claim": "apiVersion: example.org/v1\nkind: NotebookServer\n",
}
EVENT: Json = {
    "id": 1207,
    "at": "2026-06-01T09:30:00Z",
    "verb": "request.ask",
    "actor": "dana",
    "system": "",
    "team": "search",
    "request": REQUEST_ID,
    "instance": INSTANCE_ID,
    "data": {"from": "Draft", "to": "Waiting", "decision": 42},
}
INSTANCE_SUMMARY: Json = {
    "id": INSTANCE_ID,
    "name": "ranking",
    "team": "search",
    "environment": "dev",
    "offering": "notebookservers",
    "offeringDigest": DIGEST,
    "phase": "Ready",
    "message": "",
    "since": "2026-06-01T11:02:00Z",
    "condition": "Ready",
    "conditionSince": "2026-06-01T11:02:00Z",
    "advice": "",
    "typicalSeconds": None,
    "spec": SPEC,
    "endpoint": {"url": "https://ranking.notebooks.example.org"},
    "monthly": {"amount": "584.00", "currency": "EUR"},
    "controlPlane": "embedded: simulated, no cluster behind it",
    "observedAt": "2026-06-01T11:02:00Z",
    "createdAt": "2026-06-01T09:30:00Z",
    "links": {
        "self": f"{URL}/api/v1/instances/{INSTANCE_ID}/",
        "page": f"{URL}/instances/{INSTANCE_ID}/",
    },
}
INSTANCE: Json = {
    **INSTANCE_SUMMARY,
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "url": "https://ranking.notebooks.example.org"},
    "claim": {"apiVersion": "example.org/v1", "kind": "NotebookServer", "metadata": {"name": "ranking"}, "spec": SPEC},
    "claimYaml": PREVIEW["claim"],
    "composed": [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "namespace": "search-dev",
            "name": "ranking",
            "ready": True,
            "message": "",
        }
    ],
    "events": [
        {
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": "no node has an L4 free",
            "about": "Pod ranking-0",
            "count": 3,
            "lastSeen": "2026-06-01T11:00:00Z",
        }
    ],
    "drift": [
        {
            "field": "/spec/idleHours",
            "approved": 8,
            "live": 72,
            "manager": "kubectl-edit",
            "at": "2026-06-01T12:00:00Z",
            "metered": False,
        }
    ],
}
REVISION: Json = {
    "number": 1,
    "request": REQUEST_ID,
    "kind": "Create",
    "state": "Done",
    "current": True,
    "spec": SPEC,
    "offeringDigest": DIGEST,
    "compositionRevision": "notebookservers-standard-4b7f1a2",
    "requester": "dana",
    "reason": CREATE["reason"],
    "monthly": {"amount": "584.00", "currency": "EUR"},
    "appliedAt": "2026-06-01T11:00:00Z",
    "generation": 1,
    "links": {"request": f"{URL}/api/v1/requests/{REQUEST_ID}/"},
}
TEAM: Json = {"slug": "search", "title": "Search", "parent": "products", "role": "owner"}
QUOTA_LINE: Json = {"team": "search", "dimension": "gpu.l4", "limit": 4, "reserved": 1, "used": 3}
BUDGET: Json = {
    "team": "search",
    "currency": "EUR",
    "soft": "4000.00",
    "hard": "6000.00",
    "committed": "2336.00",
}
PRICE: Json = {
    "sku": "gpu.h100",
    "unit": "hour",
    "price": None,
    "currency": "EUR",
    "region": "eu-west",
    "effectiveFrom": "2026-01-01",
    "source": "catalogue of a cloud",
    "asOf": "2026-01-01",
    "problem": "needs review: a price of 0 is no price",
}
ENVIRONMENT: Json = {
    "slug": "dev",
    "title": "Development",
    "labels": {"tier": "dev"},
    "controlPlane": "embedded: simulated, no cluster behind it",
}
OFFERING: Json = {
    "name": "notebookservers",
    "title": "Notebook server",
    "description": "A notebook with an accelerator.",
    "owner": "platform-team",
    "kind": "NotebookServer",
    "apiVersion": "example.org/v1",
    "digest": DIGEST,
    "schema": {
        "type": "object",
        "properties": {"idleHours": {"type": "integer", "minimum": 1, "maximum": 72}},
    },
    "catalog": {"kind": "Component", "type": "notebook", "lifecycle": "production", "api": None},
    "deprecation": None,
}
_ENTITY: Json = {
    "apiVersion": "backstage.io/v1alpha1",
    "kind": "Component",
    "metadata": {"name": "ranking.search.dev.notebooks", "namespace": "default"},
    "spec": {"type": "notebook", "lifecycle": "production", "owner": "group:default/search"},
}
_FEED = "0b6f2a0e-93d1-4f43-9f57-0d8f6d3a6f10"
ENTITIES: Json = {
    "entities": [_ENTITY],
    "cursor": "WyJjaGFuZ2VzIiwxMl0",
    "next": None,
    "complete": True,
    "feed": _FEED,
}
CHANGES: Json = {
    "upserted": [_ENTITY],
    "removed": ["component:default/old.search.dev.notebooks", "api:default/old.search.dev.notebooks"],
    "cursor": "WyJjaGFuZ2VzIiwxNF0",
    "more": False,
    "feed": _FEED,
}
FLEET: Json = {
    "items": [
        {
            "controlPlane": "production",
            "name": "eu-west-1",
            "region": "eu-west",
            "state": "Ready",
            "since": "2026-12-01T12:00:00Z",
            "message": "some don't count: l4-3: it is cordoned",
            "pools": [{"name": "l4", "resource": "l4", "capacity": 12, "used": 9, "free": 3}],
        }
    ],
    "next": None,
    "previous": None,
    "totals": [{"resource": "l4", "capacity": 12, "used": 9, "free": 3}],
    "problems": [],
}
