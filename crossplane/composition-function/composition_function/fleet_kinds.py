"""AcceleratorClass and InferenceCluster: the fleet as the platform team writes it.

An InferenceCluster becomes the provider configuration that reaches it, and a probe that tells whether its API answers.
"""

from composition_function import fleet, naming, objects
from composition_function.contract import (
    TTL_PENDING,
    TTL_SETTLED,
    Composed,
    Condition,
    Manifest,
    Outcome,
    Request,
    text,
)
from composition_function.slots import Slot

PROBE = "probe"
PROVIDER_CONFIG = "provider-config"


def compose_accelerator_class(request: Request) -> Outcome:
    """A class is only read by others: ready once its fields can be read."""
    text(request.composite, "spec", "resourceName")
    return Outcome(ready=True)


def compose_cluster(request: Request) -> Outcome:
    """An InferenceCluster: ready when its API answers. What is held of it is in the status."""
    composite = request.composite
    cluster = fleet.read_cluster(composite)
    held, complaints = _held(request)
    probe = request.observed.get(PROBE)
    reachable = _reachable(probe)
    status: Manifest = {
        "pools": [
            {"name": p.name, "capacity": p.capacity, "used": used, "free": p.capacity - used}
            for p in cluster.pools
            for used in [held.get(Slot(cluster.name, p.name), 0)]
        ]
    }
    if reachable is not None:
        status["reachable"] = reachable
    message = {
        None: "the probe has not reported yet",
        True: "",
        False: objects.problem(probe) or "",
    }[reachable]
    reason = {None: "Unknown", True: "Reachable", False: "Unreachable"}[reachable]
    return Outcome(
        ready=reachable is True,
        resources={
            # Provider configurations have no status to be ready by.
            PROVIDER_CONFIG: Composed(provider_config(composite), ready=True),
            PROBE: Composed(probe_object(composite), ready=reachable is True),
        },
        status=status,
        conditions=[Condition("Reachable", reachable is True, reason, message)],
        warnings=complaints,
        ttl=TTL_SETTLED if reachable else TTL_PENDING,
    )


def _held(request: Request) -> tuple[dict[Slot, int], list[str]]:
    """Units that claims hold, at their maximum, by slot."""
    held: dict[Slot, int] = {}
    complaints: list[str] = []
    for selector in (fleet.MODELS, fleet.DATABASES):
        claims, unreadable = fleet.read_all(request.required.get(selector.name, ()), fleet.read_claim)
        complaints += unreadable
        for claim in claims:
            if claim.held is not None:
                held[claim.held] = held.get(claim.held, 0) + claim.need.units
    return held, complaints


def provider_config(composite: Manifest) -> Manifest:
    """provider-kubernetes' cluster-wide configuration, with the kubeconfig that the InferenceCluster points to."""
    reference = {key: text(composite, "spec", "kubeconfigSecretRef", key) for key in ("namespace", "name", "key")}
    return {
        "apiVersion": objects.API_VERSION,
        "kind": "ClusterProviderConfig",
        "metadata": {"name": text(composite, "spec", "providerConfigName")},
        "spec": {"credentials": {"source": "Secret", "secretRef": reference}},
    }


def probe_object(composite: Manifest) -> Manifest:
    """An Object that only looks at the cluster's kube-system namespace, which every cluster has."""
    return {
        "apiVersion": objects.API_VERSION,
        "kind": "Object",
        "metadata": {
            "name": naming.child(composite, PROBE),
            "namespace": text(composite, "spec", "kubeconfigSecretRef", "namespace"),
        },
        "spec": {
            "providerConfigRef": {
                "kind": "ClusterProviderConfig",
                "name": text(composite, "spec", "providerConfigName"),
            },
            "managementPolicies": ["Observe"],
            "readiness": {"policy": "SuccessfulCreate"},
            "forProvider": {
                "manifest": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
            },
        },
    }


def _reachable(probe: Manifest | None) -> bool | None:
    synced = objects.condition(probe, "Synced").get("status")
    return {"True": True, "False": False}.get(str(synced))
