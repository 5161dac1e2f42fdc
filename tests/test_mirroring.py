"""The mirror: it misses nothing, calls nothing gone that it has not looked for, and writes only as long as it leads."""

from __future__ import annotations

import dataclasses
import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone

from portal import mirroring
from portal.management.commands import mirror as command
from portal.mirroring import Mirror
from portal.models import CompositionRevision, Environment, Instance
from portal.ports import (
    ClaimEvent,
    ClaimRef,
    ComposedObject,
    Explanation,
    ObservedClaim,
    PortError,
    RetryableError,
    TerminalError,
)
from portal.services import observing
from portal.services.leading import Lead, LeadLost
from tests.front import database
from tests.world import build_world, observed, ready

EARLIER = timezone.now() - dt.timedelta(hours=1)


@dataclass
class Reported:
    """A control plane that reports what a test says. `watches` are what the next watches give: events, or an error."""

    name: str = "embedded"
    label: str = "a stand-in of the tests"
    claims: list[ObservedClaim] = field(default_factory=list)
    watches: list[list[ClaimEvent | Exception | Callable[[], None]]] = field(default_factory=list)
    list_errors: list[Exception] = field(default_factory=list)
    get_errors: list[PortError] = field(default_factory=list)
    revision_errors: list[PortError] = field(default_factory=list)
    newest: dict[str, ObservedClaim | None] = field(default_factory=dict)  # by uid: what `get` says instead
    calls: list[str] = field(default_factory=list)

    def list(self, kinds: list[ClaimRef]) -> tuple[list[ObservedClaim], str]:
        self.calls.append("list")
        if self.list_errors:
            raise self.list_errors.pop(0)
        return list(self.claims), "10"

    def get(self, ref: ClaimRef) -> ObservedClaim | None:
        self.calls.append(f"get {ref.name}")
        if self.get_errors:
            raise self.get_errors.pop(0)
        found = next((claim for claim in self.claims if claim.ref.name == ref.name), None)
        return self.newest.get(found.uid, found) if found else None

    def watch(self, kinds: list[ClaimRef], cursor: str, timeout: float) -> Iterator[ClaimEvent]:
        self.calls.append(f"watch {cursor}")
        for step in self.watches.pop(0) if self.watches else []:
            if isinstance(step, Exception):
                raise step
            if callable(step):
                step()
            else:
                yield step

    def composition_revision(self, composition: str) -> str:
        if self.revision_errors:
            raise self.revision_errors.pop(0)
        return f"{composition}-1"

    def publish_approval_keys(self, keys: dict[str, str]) -> None:
        return None

    def explanations(self, claim: ObservedClaim) -> tuple[Explanation, ...]:
        return ()


@pytest.fixture
def instances(db: None) -> list[Instance]:
    """Two databases that are Ready, as they were seen an hour ago."""
    build_world()
    made = [ready("ben", database(name)) for name in ("docs", "logs")]
    Instance.objects.update(observed_at=EARLIER)
    return made


def claim_of(instance: Instance, version: int = 2, **changes: Any) -> ObservedClaim:
    """Its claim as it was last seen, or changed."""
    return dataclasses.replace(observed(instance, {}), resource_version=str(version), **changes)


def looked_at(instance: Instance) -> bool:
    """Whether its row was written since the fixture."""
    return Instance.objects.get(pk=instance.pk).observed_at != EARLIER


def part(message: str = "", ready: bool = True) -> ComposedObject:
    return ComposedObject("x/v1", "Object", "ns", "part", ready, message)


class TestComparing:
    def test_what_is_as_it_was_costs_no_transaction(self, instances: list[Instance]) -> None:
        plane = Reported(claims=[claim_of(each) for each in instances])
        mirror = Mirror(plane)
        for _ in range(2):  # by the row, and then by memory
            mirror._cursor = None
            mirror.cycle()
            assert not any(looked_at(each) for each in instances)

    @pytest.mark.parametrize("started", [True, False], ids=["after a start", "later"])
    @pytest.mark.parametrize(
        ("changes", "reason"),
        [({"version": 3}, "another version"), ({"composed": (part("no node", False),)}, "only an Object changed")],
    )
    def test_what_changed_is_recorded(
        self, instances: list[Instance], started: bool, changes: dict[str, Any], reason: str
    ) -> None:
        plane = Reported(claims=[claim_of(each) for each in instances])
        mirror = Mirror(plane)
        if not started:
            mirror.cycle()
        plane.claims[0] = claim_of(instances[0], **changes)
        mirror._cursor = None
        mirror.cycle()
        assert looked_at(instances[0]), reason
        assert not looked_at(instances[1]), reason

    def test_what_is_not_well_is_looked_at_each_time(self, instances: list[Instance]) -> None:
        """Time alone makes it stuck."""
        Instance.objects.filter(pk=instances[0].pk).update(phase="Degraded")
        plane = Reported(claims=[claim_of(each) for each in instances])
        mirror = Mirror(plane)
        mirror.cycle()
        assert looked_at(instances[0])

    @pytest.mark.parametrize(
        "error",
        [
            RetryableError("control-plane-down", "no"),
            TerminalError("forbidden", "no"),
        ],
    )
    def test_a_list_that_fails_changes_nothing(self, instances: list[Instance], error: PortError) -> None:
        plane = Reported(list_errors=[error])
        with pytest.raises(PortError):
            Mirror(plane).cycle()
        assert plane.calls == ["list"]
        assert {each.phase for each in Instance.objects.all()} == {"Ready"}
        assert not any(looked_at(each) for each in instances)

    def test_what_is_not_in_a_list_is_looked_for(self, instances: list[Instance]) -> None:
        plane = Reported(claims=[claim_of(instances[0])])
        Mirror(plane).cycle()
        gone = Instance.objects.get(pk=instances[1].pk)
        assert gone.phase == "Gone"
        assert Instance.objects.get(pk=instances[0].pk).phase == "Ready"
        assert [call for call in plane.calls if call.startswith("get")] == [f"get {claim_of(instances[1]).ref.name}"]

    def test_what_was_made_while_the_list_was_read_is_not_gone(self, instances: list[Instance]) -> None:
        plane = Reported(claims=[claim_of(each) for each in instances])
        listed = plane.list
        plane.list = lambda kinds: (listed(kinds)[0][:1], "10")  # type: ignore[method-assign]
        Mirror(plane).cycle()
        assert {each.phase for each in Instance.objects.all()} == {"Ready"}

    def test_another_object_of_that_name_does_not_stand_for_ours(self, instances: list[Instance]) -> None:
        plane = Reported(claims=[claim_of(instances[0], uid="another"), claim_of(instances[1])])
        Mirror(plane).cycle()
        assert Instance.objects.get(pk=instances[0].pk).phase == "Gone"

    def test_that_its_kind_is_not_served_does_not_say_that_it_is_gone(self, instances: list[Instance]) -> None:
        plane = Reported(get_errors=[RetryableError("offering-not-installed", "no")])
        Mirror(plane).cycle()
        phases = {each.phase for each in Instance.objects.all()}
        assert phases == {"Ready", "Gone"}, "the other was looked for all the same"

    def test_a_server_that_lags_is_not_believed(self, instances: list[Instance]) -> None:
        Instance.objects.update(observed={**instances[0].observed, "resourceVersion": "5"})
        old = claim_of(instances[0], version=3)
        newest = claim_of(instances[0], version=5)
        plane = Reported(claims=[old, claim_of(instances[1], version=5)], newest={old.uid: newest})
        Mirror(plane).cycle()
        assert Instance.objects.get(pk=instances[0].pk).observed["resourceVersion"] == "5"

    def test_one_claim_that_can_not_be_recorded_hides_no_other(self, instances: list[Instance]) -> None:
        poison = claim_of(instances[0], version=3, status={"note": "\x00"})
        plane = Reported(claims=[poison, claim_of(instances[1], version=3)])
        Mirror(plane).cycle()
        assert not looked_at(instances[0])
        assert looked_at(instances[1])

    def test_the_newest_revisions_are_noted(self, instances: list[Instance]) -> None:
        CompositionRevision.objects.all().delete()
        plane = Reported(claims=[claim_of(each) for each in instances])
        plane.revision_errors.append(TerminalError("composition-missing", "no"))
        Mirror(plane).cycle()
        assert CompositionRevision.objects.count() == 1, "an offering that is not there yet keeps no other from it"


class Stopped(BaseException):
    """Ends `run`, which nothing else does."""


class TestRunning:
    @pytest.fixture
    def waits(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        found: list[float] = []
        monkeypatch.setattr(mirroring.time, "sleep", found.append)
        # A test's connection is its transaction: it can't be closed and made anew.
        monkeypatch.setattr(mirroring, "close_old_connections", lambda: None)
        monkeypatch.setattr(mirroring.connection, "close", lambda: None)
        return found

    def stop(self) -> None:
        raise Stopped

    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (RetryableError("cursor-expired", "410"), "410 (case 16)"),
            (RetryableError("stream-ended", "no more"), "an end without an error"),
            (RetryableError("control-plane-down", "cut"), "a broken connection"),
            (TerminalError("forbidden", "no"), "a right that was taken"),
            (OperationalError("gone"), "the portal's own database"),
            (ZeroDivisionError("a fault of our own"), "anything else"),
        ],
    )
    def test_after_any_error_it_lists_again(
        self, instances: list[Instance], waits: list[float], error: Exception, reason: str
    ) -> None:
        claims = [claim_of(each) for each in instances]
        changed = claim_of(instances[0], version=11)
        plane = Reported(claims=claims, watches=[[ClaimEvent(False, changed, "11")], [error], [self.stop]])
        with pytest.raises(Stopped):
            Mirror(plane).run()
        assert plane.calls == ["list", "watch 10", "watch 11", "list", "watch 10"], reason
        assert len(waits) == 1, reason

    def test_it_waits_longer_each_time_and_not_for_ever(self, instances: list[Instance], waits: list[float]) -> None:
        down = [RetryableError("control-plane-down", "no") for _ in range(9)]
        plane = Reported(list_errors=[*down], claims=[claim_of(each) for each in instances], watches=[[self.stop]])
        with pytest.raises(Stopped):
            Mirror(plane).run()
        assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]

    def test_a_claim_that_goes_is_gone(self, instances: list[Instance], waits: list[float]) -> None:
        claims = [claim_of(each) for each in instances]
        plane = Reported(claims=claims, watches=[[ClaimEvent(True, claims[0], "11"), self.stop]])
        with pytest.raises(Stopped):
            Mirror(plane).run()
        assert Instance.objects.get(pk=instances[0].pk).phase == "Gone"


@pytest.fixture
def leads(db: None) -> Iterator[tuple[Lead, Lead]]:
    made = Lead("mirror of tests"), Lead("mirror of tests")
    yield made
    for each in made:
        each.release()


def kill(lead: Lead) -> None:
    """Its connection ends, as when the database restarts or the network is cut."""
    assert lead._connection is not None
    pid = lead._connection.info.backend_pid
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


class TestLeading:
    def test_one_leads_and_the_other_knows_who(self, leads: tuple[Lead, Lead]) -> None:
        first, second = leads
        assert first.take()
        assert first.take(), "still"
        assert not second.take()
        assert "mirror of tests at" in second.leader()
        first.check()
        with pytest.raises(LeadLost):
            second.check()

    def test_another_matter_has_another_leader(self, leads: tuple[Lead, Lead]) -> None:
        other = Lead("mirror of something else")
        try:
            assert leads[0].take()
            assert other.take()
        finally:
            other.release()

    def test_who_loses_the_connection_loses_the_lead(self, leads: tuple[Lead, Lead]) -> None:
        first, second = leads
        assert first.take()
        kill(first)
        with pytest.raises(LeadLost):
            first.check()
        assert second.take()
        assert not first.take(), "it stands by now"

    def test_who_gives_it_up_can_be_followed(self, leads: tuple[Lead, Lead]) -> None:
        first, second = leads
        assert first.take()
        first.release()
        assert second.take()

    def test_without_the_lead_nothing_is_written(self, instances: list[Instance], leads: tuple[Lead, Lead]) -> None:
        """The database has cut the lock's connection between two events, and another may lead by now."""
        first, _ = leads
        assert first.take()
        claims = [claim_of(each, version=11) for each in instances]
        steps = [ClaimEvent(False, claims[0], "11"), lambda: kill(first), ClaimEvent(False, claims[1], "12")]
        plane = Reported(claims=[claim_of(each) for each in instances], watches=[steps])
        with pytest.raises(LeadLost):
            Mirror(plane, first).cycle()
        assert looked_at(instances[0])
        assert not looked_at(instances[1])

    def test_a_standby_takes_over(
        self, transactional_db: None, leads: tuple[Lead, Lead], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mirroring, "STANDBY_SECONDS", 0.05)
        first, second = leads
        assert first.take()
        mirror = Mirror(Reported(), second)
        thread = threading.Thread(target=mirror._stand_by)
        thread.start()
        time.sleep(0.3)
        assert thread.is_alive(), "it stands by"
        first.release()
        thread.join(5)
        assert not thread.is_alive()
        second.check()


class TestCommand:
    def test_every_control_plane_that_an_environment_names_has_a_mirror(
        self, instances: list[Instance], settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.CONTROL_PLANES = {"prod": "/nowhere/kubeconfig"}
        names: list[str] = []
        # A test's connection is its transaction: it can't be closed and made anew.
        monkeypatch.setattr(command, "close_old_connections", lambda: None)
        monkeypatch.setattr(Mirror, "run", lambda mirror: names.append(mirror._plane.name))
        mirrors = command.Mirrors(None)
        mirrors.look()
        first = Environment.objects.all()[0]
        Environment.objects.filter(pk=first.pk).update(control_plane="prod")
        Environment.objects.create(slug="lost", title="Lost", control_plane="nobody-knows-it")
        for thread in mirrors._threads.values():
            thread.join()
        mirrors.look()  # a new one, and one whose thread has ended
        for thread in mirrors._threads.values():
            thread.join()
        assert sorted(names) == ["embedded", "embedded", "prod"]


def test_what_observing_calls_well_is_what_time_does_not_change() -> None:
    assert {"Ready", "Suspended", "Gone"} == observing.WELL


def test_a_lead_says_what_is_wrong_when_the_database_is_away(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    lead = Lead("mirror of tests")
    parameters = {**connection.get_connection_params(), "host": "/nowhere"}
    monkeypatch.setattr(connections["default"], "get_connection_params", lambda: parameters)
    with pytest.raises(psycopg.Error):
        lead.take()
