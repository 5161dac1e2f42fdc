"""Approval keys and adopted claims on a real API server, with the rights that the portal has."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from portal.adapters.kubernetes import KubernetesControlPlane
from portal.ports import TerminalError
from portal.rendering.approval_token import KEYS_NAME, KEYS_NAMESPACE, keys_manifest
from portal.rendering.claim import ADOPTED_UID, INSTANCE
from portal.running.crossplane.kube import Api, Object, eventually
from portal.running.crossplane.layout import CONTROL_PLANE
from portal.running.crossplane.plan import LocalControlPlane
from portal.running.errors import ApiError
from portal.services import adopting as adopting_module
from tests.contract.claims import claim_of
from tests.e2e.remains import Clusters

NAMESPACE = "adoption"
EXAMPLE = "modeldeployments/llama-3.1-8b-l4"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def administrator(clusters: Clusters) -> Api:
    return clusters.apis[CONTROL_PLANE]


@pytest.fixture(scope="module")
def connected(plane: LocalControlPlane) -> KubernetesControlPlane:
    return KubernetesControlPlane("crossplane", plane.kubeconfig)


def published(administrator: Api) -> dict[str, str]:
    found = administrator.get("v1", "ConfigMap", KEYS_NAME, KEYS_NAMESPACE)
    assert found is not None, "it ships with the portal's role"
    return dict(found.get("data") or {})


@pytest.fixture
def keys_kept(administrator: Api, connected: KubernetesControlPlane) -> Iterator[None]:
    """Those of a portal that runs are there again afterwards."""
    before = published(administrator)
    yield
    connected.publish_approval_keys({name.removesuffix(".pem"): pem for name, pem in before.items()})


def test_keys_are_published_in_place_of_all_others(
    administrator: Api, connected: KubernetesControlPlane, keys_kept: None
) -> None:
    connected.publish_approval_keys({"old": "PEM 1", "new": "PEM 2"})
    administrator.apply(keys_manifest({"strangers": "PEM 3", "new": "PEM 4"}), manager="kubectl")
    connected.publish_approval_keys({"new": "PEM 2"})
    assert published(administrator) == {"new.pem": "PEM 2"}


REFUSED: list[tuple[str, str, dict[str, Any] | None, str]] = [
    ("PATCH", f"/api/v1/namespaces/{KEYS_NAMESPACE}/configmaps/other", {"data": {"a": "b"}}, "another ConfigMap"),
    ("PATCH", f"/api/v1/namespaces/default/configmaps/{KEYS_NAME}", {"data": {"a": "b"}}, "another namespace"),
    ("GET", f"/api/v1/namespaces/{KEYS_NAMESPACE}/configmaps", None, "listing them"),
    ("DELETE", f"/api/v1/namespaces/{KEYS_NAMESPACE}/configmaps/{KEYS_NAME}", None, "removing it"),
    ("GET", f"/api/v1/namespaces/{KEYS_NAMESPACE}/secrets", None, "its secrets"),
]


@pytest.mark.parametrize(("method", "path", "body", "reason"), REFUSED, ids=[case[3] for case in REFUSED])
def test_the_portal_writes_this_config_map_and_no_other(
    portal: Api, method: str, path: str, body: dict[str, Any] | None, reason: str
) -> None:
    with pytest.raises(ApiError) as caught:
        portal.call(method, path, None if body is None else json.dumps(body), "application/merge-patch+json")
    assert caught.value.status == 403, reason


@pytest.fixture
def by_hand(administrator: Api) -> Iterator[Object]:
    """A claim that somebody has applied beside the portal."""
    administrator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    claim = claim_of(EXAMPLE)
    spec = {key: value for key, value in claim["spec"].items() if key != "crossplane"}
    bare = {key: claim[key] for key in ("apiVersion", "kind")}
    meta = {"name": f"by-hand-{next(NUMBERS)}", "namespace": NAMESPACE}  # the one before may be on its way out still
    administrator.apply({**bare, "metadata": meta, "spec": {**spec, "regions": ["nowhere"]}}, manager="kubectl")

    def taken_up() -> Object | None:
        found = administrator.get(bare["apiVersion"], bare["kind"], meta["name"], NAMESPACE)
        return found if found and "compositionRevisionRef" in found["spec"].get("crossplane", {}) else None

    yield eventually("Crossplane has taken it up", taken_up, 30.0)
    administrator.delete({**bare, "metadata": meta})


def adopting(found: Object, uid: str, **spec: Any) -> Object:
    """What the portal would apply to it, pinned where it is."""
    claim = claim_of(EXAMPLE)
    claim["metadata"] |= {"name": found["metadata"]["name"], "namespace": NAMESPACE}
    claim["metadata"]["annotations"][ADOPTED_UID] = uid
    pinned = {
        **claim["spec"]["crossplane"],
        "compositionRevisionRef": found["spec"]["crossplane"]["compositionRevisionRef"],
    }
    claim["spec"] |= {"regions": ["nowhere"], "crossplane": pinned, **spec}
    return claim


def test_the_very_object_is_taken_over_and_no_other(connected: KubernetesControlPlane, by_hand: Object) -> None:
    with pytest.raises(TerminalError, match="claim-name-taken"):
        connected.dry_run(adopting(by_hand, "uid-of-one-that-is-gone"))
    wanted = adopting(by_hand, by_hand["metadata"]["uid"])
    connected.dry_run(adopting_module.without_pin(wanted))
    assert connected.apply(wanted, force=True).uid == by_hand["metadata"]["uid"]
    wanted["metadata"]["annotations"].pop(ADOPTED_UID)
    again = connected.dry_run(wanted)
    assert again.claim["metadata"]["labels"][INSTANCE] == wanted["metadata"]["labels"][INSTANCE]
    assert again.claim["spec"]["crossplane"]["compositionUpdatePolicy"] == "Manual"


def test_a_conflict_is_named_before_anything_is_taken_over(connected: KubernetesControlPlane, by_hand: Object) -> None:
    wanted = adopting(by_hand, by_hand["metadata"]["uid"], contextLength=1024)
    with pytest.raises(TerminalError, match=r"field-conflict: .*/spec/contextLength is set by .*kubectl") as caught:
        connected.dry_run(adopting_module.without_pin(wanted))
    assert "compositionRevisionRef" not in caught.value.message, "Crossplane's own part is taken over"
