"""The schemas of other projects' kinds, out of the CRDs in their Go modules. None of them is kept in the tree."""

from functools import cache
from typing import Any

from django.conf import settings

from portal.running.crossplane import crds
from portal.running.crossplane.parts import CLOUDNATIVE_PG_CRDS, CROSSPLANE_CRDS, KSERVE_CRDS, PROVIDER_CRDS

# API group -> whose CRDs describe it.
GROUPS = {
    "serving.kserve.io": KSERVE_CRDS,
    "postgresql.cnpg.io": CLOUDNATIVE_PG_CRDS,
    "kubernetes.m.crossplane.io": PROVIDER_CRDS,
    "apiextensions.crossplane.io": CROSSPLANE_CRDS,
}


@cache
def schema_of(api_version: str, kind: str) -> dict[str, Any]:
    """The OpenAPI v3 schema of a kind. AssertionError if its group's CRDs have no such kind or version."""
    group, _, version = api_version.partition("/")
    for crd in crds.read(GROUPS[group], settings.CACHE_DIR):
        if crd["spec"]["group"] == group and crd["spec"]["names"]["kind"] == kind:
            served = {v["name"]: v["schema"]["openAPIV3Schema"] for v in crd["spec"]["versions"] if v["served"]}
            assert version in served, f"{kind} is served as {sorted(served)}, not as {version}"
            found: dict[str, Any] = served[version]
            return found
    module = GROUPS[group].module
    raise AssertionError(f"{module.path} {module.version} has no {kind}.{group}")
