"""The mirror: list a control plane's claims, watch them, compare everything now and then, and hand each to `observing`.

In charge of: missing nothing, and one leader per control plane. A list that fails changes nothing; a watch that ends
before its time, or whose cursor is too old, is followed by a list; a claim is only called gone when its own `get` says
so. Not in charge of: what a claim's state means.

    stand by -> lead -> list and compare -> watch, resume, watch … -> compare again every COMPARE_SECONDS
                 ^         any error: back off, list again
                 '-- the database went away: the lead is lost, nothing is written, stand by
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import structlog
from django.db import Error, InterfaceError, OperationalError, close_old_connections, connection
from psycopg import Error as DriverError

from portal.models import Document, Instance
from portal.ports import ClaimRef, ControlPlane, ObservedClaim, PortError, RetryableError, TerminalError
from portal.services import delivering, loading, observing, pausing, signing
from portal.services.leading import Lead, LeadLost

log = structlog.get_logger()

WATCH_SECONDS = 10.0  # of one watch; then offerings and revisions are looked at again
COMPARE_SECONDS = 60.0  # between two full comparisons
STANDBY_SECONDS = 2.0  # between two looks whether the leader is gone
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
_BATCH = 200  # rows whose composed objects are compared at once


class Row(NamedTuple):
    """What is known of a living instance, as far as a comparison needs it."""

    pk: uuid.UUID
    uid: str
    version: str | None
    phase: str
    advice: str | None

    @property
    def is_well(self) -> bool:
        """Time alone changes nothing about it."""
        return self.phase in observing.WELL and not self.advice


class Mirror:
    """One control plane's mirror. `run` never returns; `cycle` is one list or watch. Without `lead` it is the only one
    (a test, a benchmark)."""

    def __init__(self, plane: ControlPlane, lead: Lead | None = None) -> None:
        self._plane, self._lead = plane, lead
        self._cursor: str | None = None
        self._leads = False
        self._compared = 0.0
        self._told: dict[str, int] = {}  # by uid: what was last handed on
        self._missing: dict[str, str] = {}  # by Composition: why it has no revision; said once

    def run(self) -> None:
        """Go on for ever, backing off while the control plane or the database is away."""
        wait = FIRST_WAIT
        while True:
            close_old_connections()
            try:
                self._stand_by()
                self.cycle()
                wait = FIRST_WAIT
            except TerminalError as error:
                self._again("mirror.refused", LONGEST_WAIT, code=error.code, message=error.message)
            except Exception as error:  # anything: a mirror that has silently ended would be worse
                wait = self._again(_event(error), wait, **_said(error))

    def cycle(self, seconds: float = WATCH_SECONDS) -> None:
        """List and compare if that is due, then watch for up to `seconds`."""
        if pausing.is_paused(self._plane.name):  # what is there is not what is remembered: see reconciling
            self._cursor = None
            time.sleep(1.0)
            return
        kinds = self._kinds()
        if not kinds:  # nothing is offered yet
            time.sleep(1.0)
            return
        self._note_revisions()
        if self._cursor is None or time.monotonic() - self._compared > COMPARE_SECONDS:
            self._compare(kinds)
        cursor = self._cursor
        if cursor is None:
            return
        for event in self._plane.watch(kinds, cursor, seconds):
            if event.gone:
                self._gone(event.claim)
            else:
                self._observe(event.claim)
            self._cursor = event.cursor

    def _stand_by(self) -> None:
        """Returns when we lead."""
        said: str | None = None
        while self._lead is not None and not self._lead.take():
            self._leads, self._cursor = False, None
            leader = self._lead.leader()
            if leader != said:
                log.info("mirror.stands_by", control_plane=self._plane.name, leader=leader)
                said = leader
            time.sleep(STANDBY_SECONDS)
        if not self._leads:
            self._told.clear()  # another may have written meanwhile
            log.info("mirror.leads", control_plane=self._plane.name)
            self._leads = True

    def _again(self, event: str, wait: float, **said: str) -> float:
        """List again after a wait; gives the next one."""
        self._cursor = None
        log.warning(event, control_plane=self._plane.name, wait=wait, **said)
        time.sleep(wait)
        return min(wait * 2, LONGEST_WAIT)

    def _compare(self, kinds: list[ClaimRef]) -> None:
        claims, cursor = self._plane.list(kinds)
        rows = {row.pk: row for row in self._rows()}
        for claim in self._changed(claims, rows):
            self._observe(claim, comparing=True)
        seen = {claim.uid for claim in claims}
        for row in rows.values():
            if row.uid not in seen:
                self._look_for(row)
        self._told = {uid: told for uid, told in self._told.items() if uid in seen}
        self._cursor, self._compared = cursor, time.monotonic()
        self._publish_keys()

    def _publish_keys(self) -> None:
        """The keys that approvals are verified with: a rotation goes on here, and what somebody altered is put back."""
        try:
            signing.publish(self._plane, again=True)
        except RetryableError as error:  # claims are watched all the same
            log.warning("mirror.keys_unpublished", code=error.code, message=error.message)

    def _changed(self, claims: list[ObservedClaim], rows: dict[uuid.UUID, Row]) -> Iterator[ObservedClaim]:
        """The claims that a transaction is worth: those that changed, and those that are not well, whose picture
        changes with time alone."""
        same_version: list[tuple[uuid.UUID, ObservedClaim]] = []
        for claim in claims:
            row = rows.get(observing.instance_id_of(claim) or uuid.UUID(int=0))
            if row is None or row.uid != claim.uid or not row.is_well:
                yield claim
            elif claim.uid in self._told:
                if self._told[claim.uid] != _fingerprint(claim):
                    yield claim
            elif _older(claim.resource_version, row.version):
                # An API server that lags behind the one that was asked before, or a control plane that was restored
                # from a backup: `get` is answered by the newest state.
                newest = self._plane.get(claim.ref)
                if newest is not None:
                    yield newest
            elif claim.resource_version == row.version:
                same_version.append((row.pk, claim))
            else:
                yield claim
        yield from self._composed_changed(same_version)

    def _composed_changed(self, pairs: list[tuple[uuid.UUID, ObservedClaim]]) -> Iterator[ObservedClaim]:
        """Of claims that are as their rows have them, those of which a composed object is not. Once after a start."""
        for start in range(0, len(pairs), _BATCH):
            batch = pairs[start : start + _BATCH]
            found = dict(Instance.objects.filter(pk__in=[pk for pk, _ in batch]).values_list("pk", "composed"))
            for pk, claim in batch:
                if [_composed_row(each) for each in found.get(pk) or ()] == _composed(claim):
                    self._told[claim.uid] = _fingerprint(claim)
                else:
                    yield claim

    def _observe(self, claim: ObservedClaim, comparing: bool = False) -> None:
        self._check_lead()
        try:
            pausing.check(self._plane.name, claim)
            observing.observe(claim, ask=self._plane.explanations, comparing=comparing)
        except (OperationalError, InterfaceError, pausing.Paused):  # the database, or all of the plane; not this claim
            raise
        except Exception:  # one claim that can't be recorded must not hide all others
            log.exception("mirror.claim_failed", control_plane=self._plane.name, uid=claim.uid, name=claim.ref.name)
        else:
            self._told[claim.uid] = _fingerprint(claim)

    def _gone(self, claim: ObservedClaim) -> None:
        self._told.pop(claim.uid, None)
        instance_id = observing.instance_id_of(claim)
        if instance_id is not None:
            self._check_lead()
            observing.observe_gone(instance_id, claim.uid)

    def _look_for(self, row: Row) -> None:
        """A claim that should be there and is not in the list."""
        instance = Instance.objects.select_related("document").get(pk=row.pk)
        try:
            found = self._plane.get(delivering.claim_ref(instance))
        except PortError as error:
            if error.code != "offering-not-installed":
                raise
            # That its kind is not served does not say that it is gone.
            log.warning("mirror.unknown", instance=str(row.pk), code=error.code, message=error.message)
            return
        if found is None or found.uid != row.uid:
            self._check_lead()
            observing.observe_gone(row.pk, row.uid)

    def _check_lead(self) -> None:
        if self._lead is not None:
            self._lead.check()

    def _rows(self) -> list[Row]:
        """Instances whose claim should be there."""
        fields = ("pk", "claim_uid", "observed__resourceVersion", "phase", "observed__advice")
        return [Row(*each) for each in self._living().exclude(claim_uid="").values_list(*fields)]

    def _living(self) -> Any:
        here = Instance.objects.filter(environment__control_plane=self._plane.name, claim__isnull=False)
        return here.exclude(phase="Gone").order_by()

    def _kinds(self) -> list[ClaimRef]:
        """The kinds of every offering that governs now or that something living was made with."""
        active = {row.document_id for row in loading.active_documents(Document.Kind.OFFERING)}
        digests = active | set(self._living().values_list("document_id", flat=True).distinct())
        offerings = [loading.offering_by_digest(digest) for digest in digests]
        kinds = {(o.api_version, o.kind, o.plural) for o in offerings}
        return [ClaimRef(*kind, namespace="", name="") for kind in sorted(kinds)]

    def _note_revisions(self) -> None:
        for row in loading.active_documents(Document.Kind.OFFERING):
            composition = loading.offering(row.document).composition
            try:
                revision = self._plane.composition_revision(composition)
            except TerminalError as error:
                if self._missing.get(composition) != error.message:
                    log.warning("mirror.composition_missing", composition=composition, message=error.message)
                self._missing[composition] = error.message
            else:
                self._missing.pop(composition, None)
                self._check_lead()
                observing.note_revision(self._plane.name, composition, revision)


def _older(listed: str, known: str | None) -> bool:
    return bool(known) and listed.isdigit() and str(known).isdigit() and int(listed) < int(str(known))


def _fingerprint(claim: ObservedClaim) -> int:
    return hash((claim.resource_version, *_composed(claim)))


def _composed(claim: ObservedClaim) -> list[tuple[object, ...]]:
    return [(each.kind, each.namespace, each.name, each.ready, each.message) for each in claim.composed]


def _composed_row(each: dict[str, Any]) -> tuple[object, ...]:
    return (each["kind"], each["namespace"], each["name"], each["ready"], each["message"])


def _event(error: Exception) -> str:
    if isinstance(error, RetryableError):
        return "mirror.retry"
    if isinstance(error, LeadLost):
        return "mirror.lead_lost"
    if isinstance(error, Error | DriverError):  # the portal's own database
        connection.close()
        return "mirror.database_down"
    log.exception("mirror.fault")
    return "mirror.retry_after_fault"


def _said(error: Exception) -> dict[str, str]:
    if isinstance(error, RetryableError):
        return {"code": error.code, "message": error.message}
    return {"error": type(error).__name__, "message": (str(error).splitlines() or [""])[0]}
