"""An instance's page tells what to do, how long it takes, why, and what others have changed; and its two buttons."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from portal.models import Instance, OutboxRow, PhaseDuration, Request
from portal.ports import Explanation, FieldManager
from portal.services import observing
from portal.web.status import typical_text
from tests.sample import model_body
from tests.web.conftest import SignIn
from tests.world import World, observed, ready

AT = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)


@pytest.fixture
def drifted(world: World) -> Instance:
    made = ready("ada", model_body())
    spec = {**made.claim["spec"], "contextLength": 8192}
    managers = (FieldManager("kubectl-edit", "Update", "", AT, ("/spec/contextLength",)),)
    observing.observe(dataclasses.replace(observed(made, {}), spec=spec, managers=managers))
    return made


def failing(made: Instance, message: str) -> Any:
    synced = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": message}
    return observed(made, {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}, synced]})


def test_what_to_do_and_the_events_that_explain_are_on_the_page(sign_in: SignIn) -> None:
    made = ready("ada", model_body())
    why = Explanation("Warning", "ComposeResources", "<b>no</b> {{7*7}}", "Object chat-llm", 3, AT)
    observing.observe(failing(made, "Unsynced resources: llm"), ask=lambda claim: (why,))
    page = sign_in("ada").get(f"/instances/{made.pk}/").content.decode()
    assert "What to do:" in page
    assert "The Events below hold the cause" in page
    assert "&lt;b&gt;no&lt;/b&gt; {{7*7}}" in page
    assert "Object chat-llm" in page
    assert 'By condition <b class="code">Synced</b>' in page


def test_the_typical_time_of_a_phase_is_on_the_page(sign_in: SignIn) -> None:
    for seconds in (30, 40, 40, 50, 300):
        PhaseDuration.objects.create(
            offering="modeldeployments", phase="Updating", seconds=seconds, ended_at=timezone.now()
        )
    made = ready("ada", model_body())
    observing.observe(dataclasses.replace(observed(made, {}), generation=2))
    page = sign_in("ada").get(f"/instances/{made.pk}/").content.decode()
    assert "typically 40 s (median of the last 5); 95 of 100 take at most 5 min" in page


@pytest.mark.parametrize(
    ("typical", "text"),
    [
        (None, ""),
        ({"median": 4.0, "p95": 9.0, "count": 5}, "typically less than 10 s (median of the last 5)"),
        (
            {"median": 45.0, "p95": 200.0, "count": 100},
            "typically 40 s (median of the last 100); 95 of 100 take at most 3",
        ),
    ],
)
def test_a_typical_time_in_words(typical: dict[str, Any] | None, text: str) -> None:
    assert typical_text(typical).startswith(text)
    assert bool(typical_text(typical)) == bool(text)


def test_what_others_changed_is_a_table_with_the_way_to_govern_it(sign_in: SignIn, drifted: Instance) -> None:
    page = sign_in("ada").get(f"/instances/{drifted.pk}/").content.decode()
    assert "Changed by others" in page
    for text in ("/spec/contextLength", "<del>4096</del>", "<ins>8192</ins>", "kubectl-edit", "2026-12-01 12:00"):
        assert text in page
    assert f"/instances/{drifted.pk}/drift/" in page
    assert f"/instances/{drifted.pk}/drift/" not in sign_in("olivia").get(f"/instances/{drifted.pk}/").content.decode()


def test_take_back_asks_first_and_then_queues(sign_in: SignIn, drifted: Instance) -> None:
    address = f"/instances/{drifted.pk}/drift/"
    client = sign_in("ada")
    assert "Take it back" in client.get(address).content.decode()
    assert not OutboxRow.objects.filter(topic="reapply").exists(), "looking does nothing"
    answer = client.post(address, {"answer": "take-back"})
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/instances/{drifted.pk}/")
    assert OutboxRow.objects.get(topic="reapply").payload["force"] is True
    again = client.post(address, {"answer": "take-back"})
    assert again.status_code == 409
    assert "being taken back already" in again.content.decode()


def test_ask_for_it_leads_to_the_request(sign_in: SignIn, drifted: Instance) -> None:
    answer = sign_in("ben").post(f"/instances/{drifted.pk}/drift/", {"answer": "ask", "reason": "longer answers"})
    request = Request.objects.get(instance=drifted, kind="Change")
    assert answer.headers["Location"] == f"/requests/{request.pk}/"
    assert (request.requester.username, request.reason) == ("ben", "longer answers")


def test_who_only_looks_is_refused_with_the_reason(sign_in: SignIn, drifted: Instance) -> None:
    answer = sign_in("olivia").post(f"/instances/{drifted.pk}/drift/", {"answer": "take-back"})
    assert answer.status_code == 403
    assert "Only members of search" in answer.content.decode()
    assert not OutboxRow.objects.filter(topic="reapply").exists()
