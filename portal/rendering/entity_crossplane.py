"""What TeraSky's Crossplane plugins for Backstage read from an entity, so that they work on the portal's too.

In charge of: the annotations that their kubernetes-ingestor would give the entity of the same claim. Not in charge of:
keeping it from making one: a claim carries EXCLUDE for that (rendering.claim), and nothing is in the catalog twice.

Source: TeraSky-OSS/backstage-plugins, plugins/kubernetes-ingestor 3.17.0, commit 8b486fa, read 2026-12-04:
`translateCrossplaneCompositeToEntity` and `translateCrossplaneClaimToEntity` in providers/EntityProvider.ts for the
annotations, providers/KubernetesDataProvider.ts for the exclusion. Both have its default `annotationPrefix`.
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.rendering.entity_texts import MAX_TEXT, shown

PREFIX = "terasky.backstage.io/"
EXCLUDE = PREFIX + "exclude-from-catalog"  # on an object in the cluster; with any value the ingestor passes it over


@dataclass(frozen=True, slots=True)
class ClaimAt:
    """A claim as Crossplane knows it. `style` "v2" is a namespaced XR, "v1" the claim of an XRD of v1. `cluster` is
    Backstage's name for the cluster (the control plane's here), "" where there is none."""

    api_version: str
    kind: str
    plural: str
    namespace: str
    name: str
    composition: str
    style: str = "v2"
    cluster: str = ""


def crossplane_annotations(claim: ClaimAt) -> dict[str, str]:
    """The ingestor's annotations for this claim; of a v1 claim without its XR, whose name Crossplane alone makes."""
    group, _, version = claim.api_version.rpartition("/")
    own = {"crossplane-resource": "true", "composition-name": claim.composition}
    if claim.style == "v2":
        own |= {
            "crossplane-version": "v2",
            "crossplane-scope": "Namespaced",
            "component-type": "crossplane-xr",
            "composite-kind": claim.kind,
            "composite-name": claim.name,
            "composite-namespace": claim.namespace,
            "composite-group": group,
            "composite-version": version,
            "composite-plural": claim.plural,
        }
        selector = f"crossplane.io/composite={claim.name}"
    else:
        own |= {
            "component-type": "crossplane-claim",
            "claim-kind": claim.kind,
            "claim-name": claim.name,
            "claim-group": group,
            "claim-version": version,
            "claim-plural": claim.plural,
        }
        selector = f"crossplane.io/claim-name={claim.name},crossplane.io/claim-namespace={claim.namespace}"
    made = {PREFIX + key: shown(value, MAX_TEXT) for key, value in own.items()}
    if claim.cluster:
        made["backstage.io/kubernetes-cluster"] = shown(claim.cluster, MAX_TEXT)
        made["backstage.io/kubernetes-namespace"] = shown(claim.namespace, MAX_TEXT)
        made["backstage.io/kubernetes-label-selector"] = shown(selector, MAX_TEXT)
    return made
