"""A composition function for tests, run as a process: what it does is named by the composite's spec.mode."""

from __future__ import annotations

import argparse
import time

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import crossplane.function.proto.v1.run_function_pb2_grpc as grpcv1
from crossplane.function import resource, response, runtime


class TinyFunction(grpcv1.FunctionRunnerServiceServicer):
    """Stateless, like any composition function."""

    async def RunFunction(self, req, context):
        rsp = response.to(req)
        xr = resource.struct_to_dict(req.observed.composite.resource)
        getattr(self, xr["spec"].get("mode", "plain"))(req, rsp, xr)
        return rsp

    def plain(self, req, rsp, xr):
        """`size` Objects, each ready once it is observed to be."""
        for number in range(int(xr["spec"]["size"])):
            name = f"part-{number}"
            resource.update(rsp.desired.resources[name], part(xr, name))
            observed = req.observed.resources[name].resource if name in req.observed.resources else None
            if resource.get_condition(observed, "Ready").status == "True":
                rsp.desired.resources[name].ready = fnv1.READY_TRUE
        resource.update_status(rsp.desired.composite, {"size": xr["spec"]["size"], "big": 2**40})

    def fatal(self, req, rsp, xr):
        response.fatal(rsp, "the tiny function refuses")
        rsp.conditions.append(
            fnv1.Condition(type="Looked", status=fnv1.STATUS_CONDITION_TRUE, reason="Looked", message="it did look")
        )

    def warned(self, req, rsp, xr):
        self.plain(req, rsp, xr)
        response.warning(rsp, "careful")
        rsp.conditions.append(
            fnv1.Condition(type="Placed", status=fnv1.STATUS_CONDITION_FALSE, reason="NoRoom", message="full")
        )

    def rounds(self, req, rsp, xr):
        """First asks for one Shelf, then for those with the label that it carries, then for all of them."""
        response.require_resources(rsp, "first", "test.example.org/v1", "Shelf", match_name="a")
        found = {
            name: [resource.struct_to_dict(i.resource) for i in r.items] for name, r in req.required_resources.items()
        }
        if "first" in found:
            color = found["first"][0]["metadata"]["labels"]["color"]
            response.require_resources(rsp, "alike", "test.example.org/v1", "Shelf", match_labels={"color": color})
        if "alike" in found:
            response.require_resources(rsp, "all", "test.example.org/v1", "Shelf")
            rsp.requirements.resources["all"].match_labels.SetInParent()  # no label: all of them
            response.require_resources(rsp, "missing", "test.example.org/v1", "Shelf", match_name="nobody")
        seen = {name: sorted(item["metadata"]["name"] for item in items) for name, items in found.items()}
        resource.update_status(rsp.desired.composite, {"seen": seen})

    def unstable(self, req, rsp, xr):
        number = len(req.required_resources) + 1
        for index in range(number):
            response.require_resources(rsp, f"r{index}", "test.example.org/v1", "Shelf", match_name="a")

    def slow(self, req, rsp, xr):
        time.sleep(3)

    def ticking(self, req, rsp, xr):
        """Asks to be called again at once; says when it was."""
        rsp.meta.ttl.FromMilliseconds(100)
        resource.update_status(rsp.desired.composite, {"calledAt": time.time()})

    def waiting(self, req, rsp, xr):
        """Composes nothing, and is not ready all the same."""
        rsp.desired.composite.ready = fnv1.READY_FALSE

    def nested(self, req, rsp, xr):
        """Another Widget, whose mode is the note; ready with it."""
        inner = {"apiVersion": xr["apiVersion"], "kind": "Widget", "spec": {"size": 1, "mode": xr["spec"]["note"]}}
        resource.update(rsp.desired.resources["inner"], inner)
        observed = req.observed.resources["inner"].resource if "inner" in req.observed.resources else None
        if resource.get_condition(observed, "Ready").status == "True":
            rsp.desired.resources["inner"].ready = fnv1.READY_TRUE

    def explicit(self, req, rsp, xr):
        """Ready although its part never is."""
        resource.update(rsp.desired.resources["part"], part(xr, "part"))
        rsp.desired.composite.ready = fnv1.READY_TRUE


REAL: list[str] = []  # the provider config of a workload cluster, when there is one


def part(xr, name):
    if REAL:  # nobody runs a StatefulSet there, and a ConfigMap is up once it is made
        return as_object(config_map(xr, name), REAL[0], "SuccessfulCreate")
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": f"{xr['metadata']['name']}-{name}", "namespace": "work"},
        "spec": {"replicas": 2},
    }
    return as_object(manifest, "cluster-a", "DeriveFromObject")


def config_map(xr, name):
    metadata = {"name": f"{xr['metadata']['name']}-{name}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"part": name}}


def as_object(manifest, provider_config, policy):
    return {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "spec": {
            "forProvider": {"manifest": manifest},
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": provider_config},
            "readiness": {"policy": policy},
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--tls-certs-dir")
    parser.add_argument("--provider-config", help="of a real workload cluster")
    given = parser.parse_args()
    REAL.extend([given.provider_config] if given.provider_config else [])
    credentials = runtime.load_credentials(given.tls_certs_dir) if given.tls_certs_dir else None
    runtime.serve(TinyFunction(), given.address, creds=credentials, insecure=credentials is None)
