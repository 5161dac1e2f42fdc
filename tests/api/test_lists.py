"""Lists: pages that miss and repeat nothing, filters that are checked, and a bounded number of queries."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.models import Quota, Request
from tests.api.calls import Caller
from tests.api.conftest import As
from tests.sample import MODEL_SPEC, model_body
from tests.world import ready, submit

LISTS = [
    "requests/",
    "instances/",
    "offerings/",
    "teams/",
    "quotas/",
    "budgets/",
    "prices/",
    "environments/",
    "audit/",
]


def walk(caller: Caller, path: str, way: str = "next", **query: Any) -> list[list[dict[str, Any]]]:
    """The pages from here on, by following addresses."""
    pages = []
    answer = caller.get(path, **query)
    while True:
        assert answer.status == 200, answer.text
        pages.append(answer.json["items"])
        if answer.json[way] is None:
            return pages
        answer = caller.get(answer.json[way])


@pytest.fixture
def many(world: object) -> None:
    """Seven requests, some of the same microsecond; three wait."""
    Quota.objects.filter(dimension="gpu.l4").update(limit=100)
    for number in range(7):
        submit("ada", model_body(f"model-{number}", environment="prod" if number % 2 else "dev"))
    same = Request.objects.order_by("created_at")[2].created_at
    Request.objects.filter(name__in=["model-3", "model-4", "model-5"]).update(created_at=same)


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", [1, 2, 3, 200])
def test_pages_miss_and_repeat_nothing(call_as: As, many: None, path: str, limit: int) -> None:
    caller = call_as("grace")
    whole = caller.get(path, limit=200).json["items"]
    assert whole
    pages = walk(caller, path, limit=limit)
    assert [item for page in pages for item in page] == whole
    assert all(len(page) == limit for page in pages[:-1])


def test_pages_back_are_the_pages_forth(call_as: As, many: None) -> None:
    ada = call_as("ada")
    forth = walk(ada, "requests/", limit=3)
    answer = ada.get("requests/", limit=3)
    while answer.json["next"]:
        answer = ada.get(answer.json["next"])
    back = [answer.json["items"]]
    while answer.json["previous"]:
        answer = ada.get(answer.json["previous"])
        back.insert(0, answer.json["items"])
    assert [item["id"] for page in back for item in page] == [item["id"] for page in forth for item in page]
    assert ada.get("requests/", limit=3).json["previous"] is None


def test_rows_that_are_added_meanwhile_move_nothing(call_as: As, many: None) -> None:
    ada = call_as("ada")
    before = [item["id"] for item in ada.get("requests/").json["items"]]
    first = ada.get("requests/", limit=2)
    submit("ada", model_body("late", environment="prod"))
    rest = walk(ada, first.json["next"])
    assert [item["id"] for page in [first.json["items"], *rest] for item in page] == before


def test_filters_stay_on_the_next_page(call_as: As, many: None) -> None:
    pages = walk(call_as("ada"), "requests/", limit=1, environment="prod", state="Waiting")
    assert [item["environment"] for page in pages for item in page] == ["prod"] * 3


FILTERED = [
    ("requests/", {"state": "Waiting"}, 3),
    ("requests/", {"state": "Denied"}, 0),
    ("requests/", {"kind": "Quota"}, 0),
    ("requests/", {"kind": "Create", "environment": "dev"}, 4),
    ("requests/", {"team": "search"}, 7),
    ("requests/", {"team": "moon"}, 0),
    ("requests/", {"offering": "modeldeployments"}, 7),
    ("requests/", {"requester": "ben"}, 0),
    ("requests/", {"requester": "o'connor <x>"}, 0),
    ("instances/", {"phase": "Pending", "environment": "prod"}, 3),
    ("instances/", {"offering": "vectordatabases"}, 0),
    ("quotas/", {"dimension": "gpu.l4", "team": "search"}, 1),
    ("budgets/", {"team": "acme"}, 1),
    ("prices/", {"sku": "gpu.h100-80gb"}, 3),
    ("prices/", {"sku": "gpu.h100-80gb", "region": "us-east"}, 1),
    ("prices/", {"region": "*"}, 4),
    ("audit/", {"verb": "request.ask"}, 3),
    ("audit/", {"verb": "request.ask", "team": "search"}, 3),
]


@pytest.mark.parametrize("path, query, count", FILTERED)
def test_filters(call_as: As, many: None, path: str, query: dict[str, str], count: int) -> None:
    answer = call_as("grace").get(path, limit=200, **query)
    assert len(answer.json["items"]) == count, answer.text[:500]


REFUSED = [
    ("requests/", "state=waiting", "Draft, Waiting, Approved"),
    ("requests/", "kind=Update", "Create, Change, Suspend, Resume, Delete, Quota"),
    ("requests/", "waitingFor=frank", "me"),
    ("requests/", "team=Search%20Team", "slug"),
    ("requests/", "team=", "slug"),
    ("requests/", "requester=%00", "U+0000"),
    ("requests/", "requester=%07", "printable"),
    ("requests/", "requester=" + "x" * 151, "150"),
    ("requests/", "status=Waiting", "known: state, kind"),
    ("requests/", "state=Waiting&state=Done", "once"),
    ("requests/", "format=xml", "known: state"),
    ("instances/", "phase=ready", "Pending, Provisioning, Ready"),
    ("audit/", "request=chat", "UUID"),
    ("audit/", "verb=DROP%20TABLE", "verb"),
    ("prices/", "sku=%27%3B--", "letters"),
    ("teams/", "slug=search", "known: cursor, limit"),
    ("requests/0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11/", "fields=id", "known: none"),
    ("requests/", "limit=0", "1 to 200"),
    ("requests/", "limit=201", "1 to 200"),
    ("requests/", "limit=-1", "1 to 200"),
    ("requests/", "limit=ten", "1 to 200"),
    ("requests/", "limit=1e1", "1 to 200"),
    ("requests/", "limit=", "1 to 200"),
    ("requests/", "limit=%D9%A3", "1 to 200"),
    ("requests/", "limit=" + "9" * 5000, "1 to 200"),
]


@pytest.mark.parametrize("path, query, told", REFUSED)
def test_a_parameter_that_is_wrong_is_named_with_what_is_allowed(call_as: As, path: str, query: str, told: str) -> None:
    answer = call_as("ada").get(f"{path}?{query}")
    assert (answer.status, answer.code) == (400, "invalid-input")
    name = query.partition("=")[0]
    assert answer.json["errors"][0]["pointer"] == f"/query/{name}"
    assert told in answer.json["errors"][0]["message"]
    assert len(answer.text) < 2000


def test_a_thousand_parameters_are_refused(call_as: As) -> None:
    answer = call_as("ada").get("requests/?" + "&".join(f"a{number}=1" for number in range(1001)))
    assert answer.status == 400


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


CURSORS = [
    "",
    "x",
    "ä",
    "a" * 100_000,
    "%00",
    encoded("n"),
    encoded([]),
    encoded(["n"]),
    encoded(["n", 1, 2]),
    encoded(["n", "2026-01-01", "x"]),
    encoded(["n", "2026-01-01T00:00:00", "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"]),
    encoded(["n", "2026-12-01T00:00:00+24:00", "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"]),
    encoded(["n", "9999-12-31T23:59:59-23:59", "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"]),
    encoded(["p", "0001-01-01T00:00:00+23:59", "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"]),
    encoded(["n", "2026-01-01T00:00:00+00:00", "'; drop table"]),
    encoded(["n", "2026-01-01T00:00:00+00:00", None]),
    encoded(["x", "2026-01-01T00:00:00+00:00", "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"]),
    encoded([["n"], "2026-01-01T00:00:00+00:00", "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"]),
]


@pytest.mark.parametrize("cursor", CURSORS, ids=range(len(CURSORS)))
def test_a_cursor_that_is_none(call_as: As, cursor: str) -> None:
    answer = call_as("ada").get("requests/", cursor=cursor)
    assert answer.status == 400
    assert answer.json["errors"][0]["code"] == "bad-cursor"


def test_a_cursor_with_the_time_of_another_zone_is_one(call_as: As) -> None:
    key = ["n", "2026-12-01T00:00:00+23:59", "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"]  # PostgreSQL knows only 15:59
    assert call_as("ada").get("requests/", cursor=encoded(key)).status == 200


@pytest.mark.parametrize("path", ["quotas/", "teams/", "offerings/", "audit/"])
@pytest.mark.parametrize("key", [-1, 2**63, 1.5, True, None, "a\x00b", "", [], {}])
def test_a_cursor_of_other_lists_that_is_none(call_as: As, path: str, key: Any) -> None:
    answer = call_as("ada").get(path, cursor=encoded(["n", key]))
    assert answer.status == 400
    assert answer.json["errors"][0]["code"] == "bad-cursor"


def queries(call: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as seen:
        assert call().status == 200
    return len(seen)


# A token (1), its person's groups (1), the teams they are in (1) and below (1 a level), and the list's own.
BOUNDS = [
    ("requests/", 9),
    ("requests/?waitingFor=me", 13),
    ("instances/", 7),
    ("offerings/", 2),
    ("teams/", 9),
    ("quotas/", 8),
    ("budgets/", 8),
    ("prices/", 2),
    ("environments/", 2),
    ("audit/", 10),
]


@pytest.mark.parametrize("path, bound", BOUNDS)
def test_the_number_of_queries_does_not_grow(call_as: As, path: str, bound: int) -> None:
    for number in range(2):
        submit("ada", model_body(f"small-{number}"))
    submit("erin", model_body("own", environment="prod"))
    submit("ada", model_body("big-0", environment="prod", spec=_h100()))
    caller = call_as("erin")
    few = queries(lambda: caller.get(path))
    for number in range(1, 4):
        waiting = submit("ada", model_body(f"big-{number}", environment="prod", spec=_h100())).pk
        call_as("frank").post(f"requests/{waiting}/approve/", {"comment": "fine"})
    many = queries(lambda: caller.get(path))
    assert few == many <= bound


def _h100() -> dict[str, Any]:
    return {**MODEL_SPEC, "accelerator": {"class": "h100-80gb", "count": 1}}


def test_an_answer_takes_few_queries(call_as: As) -> None:
    instance = ready("ada", model_body())
    ada = call_as("ada")
    request = instance.requests.get().pk
    assert queries(lambda: ada.get(f"requests/{request}/")) <= 9
    assert queries(lambda: ada.get(f"instances/{instance.pk}/")) <= 6
