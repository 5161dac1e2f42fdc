"""Fifty at once for the last GPU (case 13), on a real PostgreSQL over fifty real connections: one holds it, 49 are told
why."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from portal.models import AuditEvent, Quota, Request, Reservation
from portal.services import deciding, submitting
from tests.sample import actor, draft, model_body

PEOPLE = 50


@pytest.mark.slow
def test_exactly_one_holds_it_and_the_others_are_told_why(world: None) -> None:
    together = threading.Barrier(PEOPLE)
    carol = actor("carol")

    def submit(number: int) -> str:
        try:
            with connections["default"].cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                backend = cursor.fetchone()[0]
            together.wait(timeout=30)
            body = model_body(f"model-{number}", team="ads")
            request = submitting.submit(draft(body), acting=carol).request
            return f"{request.state} {backend}"
        finally:
            connections.close_all()

    with ThreadPoolExecutor(PEOPLE) as pool:
        answers = [answer.split() for answer in pool.map(submit, range(PEOPLE))]

    assert len({backend for _, backend in answers}) == PEOPLE, "each had a connection of its own"
    assert Counter(state for state, _ in answers) == {"Approved": 1, "Denied": PEOPLE - 1}
    row = Quota.objects.get(team__slug="ads", dimension="gpu.l4")
    assert (row.reserved, row.used, row.limit) == (1, 0, 1)
    assert Reservation.objects.filter(team__slug="ads").count() == 1
    for request in Request.objects.filter(state="Denied"):
        denials = [reason for reason in deciding.decision_of(request).reasons if reason.effect == "deny"]
        assert [reason.code for reason in denials] == ["quota-exceeded"]
        assert "ads holds 1 of 1 gpu.l4" in denials[0].message
        assert AuditEvent.objects.filter(request=request).count() == 1


@pytest.mark.slow
def test_the_same_submission_fifty_times_is_one_request(world: None) -> None:
    together = threading.Barrier(PEOPLE)
    ada = actor("ada")
    body = {**model_body("once"), "idempotencyKey": "one-click"}

    def submit(_: int) -> str:
        try:
            together.wait(timeout=30)
            return str(submitting.submit(draft(body), acting=ada).request.pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(PEOPLE) as pool:
        ids = set(pool.map(submit, range(PEOPLE)))
    assert len(ids) == 1
    assert Quota.objects.get(team__slug="search", dimension="gpu.l4").reserved == 1
