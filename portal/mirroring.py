"""The mirror: list a control plane's claims, watch them, compare everything now and then, and hand each to `observing`.

In charge of: missing nothing. A list that fails changes nothing; a watch that ends or whose cursor is too old is
followed by a list; a claim is only called gone when its own `get` says so. Not in charge of: what a claim's state
means.
"""

from __future__ import annotations

import time

import structlog
from django.db import Error, close_old_connections, connection

from portal.models import Document
from portal.ports import ClaimRef, ControlPlane, ObservedClaim, RetryableError, TerminalError
from portal.services import delivering, loading, observing, signing

log = structlog.get_logger()

WATCH_SECONDS = 10.0  # of one watch; then offerings and revisions are looked at again
COMPARE_SECONDS = 60.0  # between two full comparisons
LONGEST_WAIT = 30.0


class Mirror:
    """One control plane's mirror. `run` never returns; `cycle` is one list or watch."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._cursor: str | None = None
        self._compared = 0.0

    def run(self) -> None:
        """Go on for ever, backing off while the control plane or the database is away."""
        wait = 0.5
        while True:
            close_old_connections()
            try:
                self.cycle()
                wait = 0.5
            except RetryableError as error:
                self._cursor = None
                log.warning("mirror.retry", code=error.code, message=error.message, wait=wait)
                time.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT)
            except Error as error:  # the portal's own database
                self._cursor = None
                connection.close()
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                log.warning("mirror.database_down", error=type(error).__name__, message=reason, wait=wait)
                time.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT)
            except TerminalError as error:
                self._cursor = None
                log.error("mirror.refused", code=error.code, message=error.message, wait=LONGEST_WAIT)
                time.sleep(LONGEST_WAIT)

    def cycle(self, seconds: float = WATCH_SECONDS) -> None:
        """List and compare if that is due, then watch for up to `seconds`."""
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
                observing.observe(event.claim)
            self._cursor = event.cursor

    def _compare(self, kinds: list[ClaimRef]) -> None:
        claims, cursor = self._plane.list(kinds)
        seen = {claim.uid for claim in claims}
        for claim in claims:
            observing.observe(claim)
        for instance in observing.living_instances(self._plane.name):
            if instance.claim_uid not in seen:
                found = self._plane.get(delivering.claim_ref(instance))
                if found is None or found.uid != instance.claim_uid:
                    observing.observe_gone(instance.pk, instance.claim_uid)
        self._cursor, self._compared = cursor, time.monotonic()
        self._publish_keys()

    def _publish_keys(self) -> None:
        """The keys that approvals are verified with: a rotation goes on here, and what somebody altered is put back."""
        try:
            signing.publish(self._plane, again=True)
        except RetryableError as error:  # claims are watched all the same
            log.warning("mirror.keys_unpublished", code=error.code, message=error.message)

    def _gone(self, claim: ObservedClaim) -> None:
        instance_id = observing.instance_id_of(claim)
        if instance_id is not None:
            observing.observe_gone(instance_id, claim.uid)

    def _kinds(self) -> list[ClaimRef]:
        """The kinds of every offering that governs now or that something living was made with."""
        rows = loading.active_documents(Document.Kind.OFFERING)
        offerings = [loading.offering(row.document) for row in rows]
        offerings += [loading.offering(i.document) for i in observing.living_instances(self._plane.name)]
        kinds = {(o.api_version, o.kind, o.plural) for o in offerings}
        return [ClaimRef(*kind, namespace="", name="") for kind in sorted(kinds)]

    def _note_revisions(self) -> None:
        for row in loading.active_documents(Document.Kind.OFFERING):
            composition = loading.offering(row.document).composition
            try:
                observing.note_revision(self._plane.name, composition, self._plane.composition_revision(composition))
            except TerminalError as error:
                log.warning("mirror.composition_missing", composition=composition, message=error.message)
