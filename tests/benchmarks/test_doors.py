"""List, detail and submission through the API, against a bare DRF view over the same rows of the same database."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.models import Request
from portal.services.tokens import create_token
from tests.benchmarks.calling import Caller
from tests.benchmarks.conftest import Size
from tests.benchmarks.filling import bare_body, fill
from tests.benchmarks.timing import Timing, show, side_by_side
from tests.sample import model_body

HEADER = ("", "portal p50 ms", "p95", "queries", "bare p50 ms", "p95", "queries", "ratio of p50")


@dataclass(frozen=True)
class Pair:
    """The same thing asked of the portal and of the bare view. `most`: the ratio of medians is below it."""

    name: str
    portal: Callable[[], object]
    bare: Callable[[], object]
    most: float


@pytest.mark.slow
def test_list_detail_and_submission(open_world: None, application: WSGIHandler, size: Size) -> None:
    fill(size.rows)
    member, admin = _caller(application, "ada"), _caller(application, "grace")
    mine = Request.objects.filter(team__slug="search", state="Waiting")[0]
    like = Request.objects.filter(team__slug="search", state="Approved")[0]
    number = itertools.count()
    pairs = [
        Pair("list of 50, member", lambda: member.get("/api/v1/requests/"), lambda: member.get("/bare/"), 10),
        Pair("list of 50, admin", lambda: admin.get("/api/v1/requests/"), lambda: admin.get("/bare/"), 10),
        Pair(
            "detail",
            lambda: member.get(f"/api/v1/requests/{mine.pk}/"),
            lambda: member.get(f"/bare/{mine.pk}/"),
            10,
        ),
        Pair(
            "submission",
            lambda: member.post("/api/v1/requests/", model_body(f"new-{next(number)}")),
            lambda: member.post("/bare/", bare_body(like)),
            20,
        ),
    ]
    rows, ratios = zip(*(_compare(pair, size) for pair in pairs), strict=True)
    show(f"{size.rows} requests, in one process through WSGI, against a bare DRF view", HEADER, rows)
    assert all(ratio < pair.most for pair, ratio in zip(pairs, ratios, strict=True)), ratios


def _caller(application: WSGIHandler, username: str) -> Caller:
    user = User.objects.get(username=username)
    return Caller(application, create_token(user, name="benchmark", scopes=["read", "request"], days=1))


def _compare(pair: Pair, size: Size) -> tuple[tuple[str, ...], float]:
    ours, theirs = side_by_side({"portal": pair.portal, "bare": pair.bare}, rounds=size.rounds)
    ratio = ours.p50 / theirs.p50
    return (pair.name, *_cells(ours, pair.portal), *_cells(theirs, pair.bare), f"{ratio:.2f}"), ratio


def _cells(timing: Timing, call: Callable[[], object]) -> tuple[str, str, str]:
    with CaptureQueriesContext(connection) as queries:
        call()
    return f"{timing.p50:.2f}", f"{timing.p95:.2f}", str(len(queries))
