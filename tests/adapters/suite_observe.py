"""What every control plane's reading half does. A subclass of ReadSuite brings the fixture `plane`, one of
ReconciledSuite `controlled` (the same, reconciling). `window` is how long a watch is given, in seconds."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from portal.ports import ClaimEvent, ControlPlane, RetryableError
from tests.adapters.conftest import wait_until
from tests.adapters.widgets import KINDS, ref, widget


def ready(plane: ControlPlane, name: str = "one") -> bool:
    claim = plane.get(ref(name))
    return claim is not None and condition(claim.status, "Ready") == "True"


def condition(status: dict[str, object], kind: str) -> str | None:
    conditions = status.get("conditions", [])
    assert isinstance(conditions, list)
    return next((entry["status"] for entry in conditions if entry["type"] == kind), None)


class ReadSuite:
    """Get, list, watch."""

    window = 0.2

    def test_an_absent_claim_is_none(self, plane: ControlPlane) -> None:
        assert plane.get(ref("nobody")) is None

    def test_a_list_has_all_claims_of_the_kinds(self, plane: ControlPlane) -> None:
        for name in ("a", "b", "c"):
            plane.apply(widget(name))
        claims, cursor = plane.list(KINDS)
        assert [claim.ref.name for claim in claims] == ["a", "b", "c"]
        assert {claim.ref.plural for claim in claims} == {"widgets"}
        assert cursor

    def test_a_watch_goes_on_where_the_list_ended(self, plane: ControlPlane) -> None:
        plane.apply(widget("before"))
        _, cursor = plane.list(KINDS)
        plane.apply(widget("after"))
        events = list(plane.watch(KINDS, cursor, self.window))
        assert [(event.claim.ref.name, event.gone) for event in events] == [("after", False)]

    def test_every_cursor_resumes_after_its_event(self, plane: ControlPlane) -> None:
        _, cursor = plane.list(KINDS)
        for size in range(4):
            plane.apply(widget(size=size))
        events = list(plane.watch(KINDS, cursor, self.window))
        assert [event.claim.spec["size"] for event in events] == [0, 1, 2, 3]
        for number, event in enumerate(events):
            later = [e.claim.spec["size"] for e in plane.watch(KINDS, event.cursor, self.window / 2)]
            assert later == [0, 1, 2, 3][number + 1 :]

    def test_a_watch_ends_by_itself(self, plane: ControlPlane) -> None:
        _, cursor = plane.list(KINDS)
        assert list(plane.watch(KINDS, cursor, self.window / 2)) == []

    def test_a_watch_of_no_kinds_is_empty(self, plane: ControlPlane) -> None:
        _, cursor = plane.list(KINDS)
        plane.apply(widget())
        assert plane.list([])[0] == []
        assert list(plane.watch([], cursor, self.window / 2)) == []

    @pytest.mark.parametrize("cursor", ["", "None", "-1", "999999999999"])
    def test_a_cursor_that_can_not_be_resumed(self, plane: ControlPlane, cursor: str) -> None:
        with pytest.raises(RetryableError) as refused:
            list(plane.watch(KINDS, cursor, self.window / 2))
        assert refused.value.code == "cursor-expired"

    def test_a_watch_misses_nothing_while_many_write(self, transactional_db: None, plane: ControlPlane) -> None:
        """8 writers make 96 claims, each one number in order; a watcher that started before sees them all, in order."""
        _, cursor = plane.list(KINDS)
        seen: list[ClaimEvent] = []

        def write(writer: int) -> None:
            try:
                for number in range(12):
                    plane.apply(widget(f"w{writer}-{number}"))
            finally:
                connection.close()

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        at = cursor
        while len(seen) < 96:
            events = list(plane.watch(KINDS, at, self.window))
            assert events or any(thread.is_alive() for thread in threads), f"only {len(seen)} of 96 seen"
            seen += events
            at = seen[-1].cursor if seen else at
        for thread in threads:
            thread.join()
        assert len({event.claim.uid for event in seen}) == 96
        versions = [int(event.claim.resource_version) for event in seen]
        assert versions == sorted(set(versions))


class ReconciledSuite:
    """What only something that reconciles can show."""

    window = 0.2
    patience = 15.0  # until something has happened

    def test_a_claim_becomes_ready_with_what_was_composed(self, controlled: ControlPlane) -> None:
        applied = controlled.apply(widget(size=2))
        wait_until(lambda: ready(controlled), "Ready", self.patience)
        claim = controlled.get(ref())
        assert claim is not None
        assert claim.uid == applied.uid
        assert condition(claim.status, "Synced") == "True"
        assert {entry["observedGeneration"] for entry in claim.status["conditions"]} == {claim.generation}
        assert [(one.kind, one.ready) for one in claim.composed] == [("Object", True)] * 2
        assert {one.namespace for one in claim.composed} == {claim.ref.namespace}

    def test_deletion_ends_with_gone(self, controlled: ControlPlane) -> None:
        uid = controlled.apply(widget(size=2)).uid
        wait_until(lambda: ready(controlled), "Ready", self.patience)
        _, cursor = controlled.list(KINDS)
        controlled.delete(ref(), uid)
        wait_until(lambda: controlled.get(ref()) is None, "gone", self.patience)
        events = list(controlled.watch(KINDS, cursor, self.window))
        assert [event.gone for event in events] == [False] * (len(events) - 1) + [True]
        assert events[-1].claim.uid == uid
        assert events[0].claim.deletion_requested_at is not None

    def test_a_name_can_be_used_again_by_another_object(self, controlled: ControlPlane) -> None:
        first = controlled.apply(widget()).uid
        controlled.delete(ref(), first)
        wait_until(lambda: controlled.get(ref()) is None, "gone", self.patience)
        assert controlled.apply(widget(instance="i-2")).uid != first
