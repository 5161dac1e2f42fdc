"""The scratch spaces' composition function, run as a process: a ConfigMap each, or the trouble that `spec.behave`
names."""

from __future__ import annotations

import argparse

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import crossplane.function.proto.v1.run_function_pb2_grpc as grpcv1
from crossplane.function import resource, response, runtime


class ScratchFunction(grpcv1.FunctionRunnerServiceServicer):
    """Stateless, like any composition function."""

    async def RunFunction(self, req, context):
        rsp = response.to(req)
        xr = resource.struct_to_dict(req.observed.composite.resource)
        behave = xr["spec"].get("behave", "well")
        if behave == "fatal":
            response.fatal(rsp, "the scratch function refuses")
            return rsp
        space = rsp.desired.resources["space"]
        resource.update(space, config_map(xr, "no key" if behave == "invalid" else "size"))
        space.ready = fnv1.READY_FALSE if behave == "waiting" else fnv1.READY_TRUE
        if behave == "custom":
            condition = fnv1.Condition(type="Backed", status=fnv1.STATUS_CONDITION_FALSE, reason="NoBackup")
            condition.message = "no backup store is set"
            condition.target = fnv1.TARGET_COMPOSITE
            rsp.conditions.append(condition)
        url = f"https://{xr['metadata']['name']}.scratch.example.org"
        resource.update(rsp.desired.composite, {"status": {"address": {"url": url}}})
        return rsp


def config_map(xr, key):
    """In the namespace of the claim; a key with a blank is refused by the API server."""
    name = f"{xr['metadata']['name']}-space"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: str(xr["spec"]["size"])}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--tls-certs-dir", required=True)
    given = parser.parse_args()
    runtime.serve(ScratchFunction(), given.address, creds=runtime.load_credentials(given.tls_certs_dir), insecure=False)
