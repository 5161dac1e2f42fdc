"""The kinds that the adapters' tests use: a namespaced Widget that the tiny function composes, and Shelves as its
fleet."""

from __future__ import annotations

import copy
from typing import Any

from portal.ports import ClaimRef

API_VERSION = "test.example.org/v1"
NAMESPACE = "search-dev"
INSTANCE = "portal.aiplatform.example.org/instance"


# Crossplane takes over only the properties of a status: that it may hold anything else would be lost.
STATUS = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "big": {"type": "integer", "format": "int64"},
        "calledAt": {"type": "number"},
        "seen": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def xrd(kind: str, plural: str, scope: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{plural}.test.example.org"},
        "spec": {
            "scope": scope,
            "group": "test.example.org",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "referenceable": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {
                                "spec": spec,
                                "status": STATUS,
                            },
                        }
                    },
                }
            ],
        },
    }


WIDGET_XRD = xrd(
    "Widget",
    "widgets",
    "Namespaced",
    {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 10},
            "most": {"type": "integer", "minimum": 0, "maximum": 10},
            "mode": {"type": "string"},
            "note": {"type": "string", "maxLength": 100},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
            "kept": {
                "type": "string",
                "maxLength": 10,
                "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "kept is for life"}],
            },
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.most) || self.size <= self.most",
                "message": "size must be at most most; lower size or raise most",
                "fieldPath": ".size",
            }
        ],
    },
)
SHELF_XRD = xrd("Shelf", "shelves", "Cluster", {"type": "object", "properties": {"rows": {"type": "integer"}}})


def composition(name: str, kind: str, steps: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {
            "compositeTypeRef": {"apiVersion": API_VERSION, "kind": kind},
            "mode": "Pipeline",
            "pipeline": [{"step": f"step-{number}", "functionRef": {"name": "tiny"}} for number in range(steps)],
        },
    }


def shelf(name: str, color: str) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Shelf",
        "metadata": {"name": name, "labels": {"color": color}},
        "spec": {"rows": 1},
    }


def widget(name: str = "one", instance: str = "i-1", namespace: str = NAMESPACE, **spec: Any) -> dict[str, Any]:
    """A claim as the portal writes them. `size` is 1 if not given."""
    return copy.deepcopy(
        {
            "apiVersion": API_VERSION,
            "kind": "Widget",
            "metadata": {"name": name, "namespace": namespace, "labels": {INSTANCE: instance}},
            "spec": {"size": 1, **spec},
        }
    )


def ref(name: str = "one", namespace: str = NAMESPACE) -> ClaimRef:
    return ClaimRef(API_VERSION, "Widget", "widgets", namespace, name)


KINDS = [ref("", "")]
