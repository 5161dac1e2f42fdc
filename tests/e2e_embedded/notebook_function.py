"""A composition function for the third offering, run as a process: a Deployment per notebook, and its address."""

from __future__ import annotations

import argparse

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import crossplane.function.proto.v1.run_function_pb2_grpc as grpcv1
from crossplane.function import resource, response, runtime


class NotebookFunction(grpcv1.FunctionRunnerServiceServicer):
    """Stateless, like any composition function."""

    async def RunFunction(self, req, context):
        rsp = response.to(req)
        composite = resource.struct_to_dict(req.observed.composite.resource)
        resource.update(rsp.desired.resources["server"], server(composite))
        observed = req.observed.resources["server"].resource if "server" in req.observed.resources else None
        ready = resource.get_condition(observed, "Ready").status == "True"
        rsp.desired.resources["server"].ready = fnv1.READY_TRUE if ready else fnv1.READY_FALSE
        rsp.desired.composite.ready = fnv1.READY_TRUE if ready else fnv1.READY_FALSE
        if ready:
            name, namespace = composite["metadata"]["name"], composite["metadata"]["namespace"]
            url = f"https://{name}.{namespace}.notebooks.example.org"
            resource.update(rsp.desired.composite, {"status": {"address": {"url": url}}})
        return rsp


def server(composite):
    """The Deployment, in the namespace of the claim."""
    metadata, spec = composite["metadata"], composite["spec"]
    labels = {"notebook": metadata["name"]}
    container = {"name": "notebook", "image": spec["image"], "resources": {"limits": {"cpu": str(spec["cpus"])}}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{metadata['name']}-notebook", "namespace": metadata["namespace"]},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    return {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "spec": {
            "forProvider": {"manifest": manifest},
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "notebooks"},
            "readiness": {"policy": "DeriveFromObject"},
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    runtime.serve(NotebookFunction(), parser.parse_args().address, creds=None, insecure=True)
