"""In charge of: what is on the control plane and the workload clusters, seen by an administrator."""

from __future__ import annotations

import contextlib

from portal.running.crossplane.kube import Api, Object
from portal.running.crossplane.plan import LocalControlPlane

CONTROL_PLANE_KINDS = (
    ("aiplatform.example.org/v1alpha1", "ModelDeployment"),
    ("aiplatform.example.org/v1alpha1", "VectorDatabase"),
    ("kubernetes.m.crossplane.io/v1alpha1", "Object"),
    ("kubernetes.m.crossplane.io/v1alpha1", "ProviderConfigUsage"),
    ("v1", "Secret"),
)
WORKLOAD_KINDS = (
    ("serving.kserve.io/v1alpha2", "LLMInferenceService"),
    ("postgresql.cnpg.io/v1", "Cluster"),
    ("postgresql.cnpg.io/v1", "ScheduledBackup"),
    ("apps/v1", "StatefulSet"),
    ("v1", "Service"),
    ("v1", "Secret"),
)


class Clusters(contextlib.ExitStack):
    """Clients of all API servers, by name."""

    def __init__(self, plane: LocalControlPlane) -> None:
        super().__init__()
        self.apis: dict[str, Api] = {name: self.enter_context(Api(server)) for name, server in plane.servers.items()}
        self._control_plane = next(iter(plane.servers))

    def objects_in(self, namespace: str) -> dict[str, str]:
        """uid by `server kind name` of what is in a namespace on any of them."""
        found = {}
        for server, api in self.apis.items():
            kinds = CONTROL_PLANE_KINDS if server == self._control_plane else WORKLOAD_KINDS
            for api_version, kind in kinds:
                for item in api.items(api_version, kind, namespace):
                    found[f"{server} {kind} {item['metadata']['name']}"] = item["metadata"]["uid"]
        return found

    def workload(self, cluster: str, api_version: str, kind: str, namespace: str) -> Object:
        """The only object of a kind in a namespace of a workload cluster."""
        (found,) = self.apis[cluster].items(api_version, kind, namespace)
        return found
