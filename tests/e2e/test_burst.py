"""Five hundred requests at once: every one becomes a claim of its own, none is lost, none is doubled."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.running.crossplane.kube import eventually
from portal.running.crossplane.layout import CONTROL_PLANE
from tests.e2e.remains import Clusters
from tests.e2e.scratch import body
from tests.e2e.test_trouble import NAMESPACE, remembered, spaces
from tests.front import Front

COUNT = 500
AT_ONCE = 16  # clients
WITHIN = 400.0  # seconds; seen: about a minute


@pytest.mark.timeout(900)
def test_five_hundred_at_once(front: Front, clusters: Clusters) -> None:
    admin = clusters.apis[CONTROL_PLANE]
    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = list(pool.map(lambda number: front.submit("ben", body(f"many-{number}")), range(COUNT)))
    print(f"asked for {time.monotonic() - started:.1f} s after the first")
    assert {request["state"] for request in asked} <= {"Approved", "Delivering", "Done"}

    def open_ones() -> int:
        query = "SELECT count(*) FROM portal_request WHERE name LIKE 'many-%%' AND state <> 'Done'"
        return int(front.rows(query)[0][0])

    eventually("all are Done", lambda: open_ones() == 0, WITHIN, every=0.5)
    print(f"all Done {time.monotonic() - started:.1f} s after the first was asked for")
    there = spaces(admin, "many-")
    assert there == remembered(front, "many-")
    assert set(there) == {f"many-{number}" for number in range(COUNT)}
    assert len(set(there.values())) == COUNT
    applied = front.rows(
        "SELECT count(*), count(DISTINCT e.request_id) FROM portal_auditevent e JOIN portal_request r "
        "ON r.id = e.request_id WHERE r.name LIKE 'many-%%' AND e.verb = 'claim.apply'"
    )
    assert applied == [(COUNT, COUNT)]
    for name in there:  # by an administrator: quicker than as many requests, and the portal has to notice
        meta = {"name": name, "namespace": NAMESPACE}
        admin.delete({"apiVersion": "aiplatform.example.org/v1alpha1", "kind": "ScratchSpace", "metadata": meta})
    gone = "SELECT count(*) FROM portal_instance WHERE name LIKE 'many-%%' AND phase <> 'Gone'"
    eventually("all are seen to be gone", lambda: front.rows(gone)[0][0] == 0, WITHIN, every=0.5)
    held = front.rows(
        "SELECT count(*) FROM portal_reservation v JOIN portal_request r ON r.id = v.request_id "
        "WHERE r.name LIKE 'many-%%' AND v.state <> 'released'"
    )
    assert held == [(0,)]
