"""The request form: what it shows, what it refuses and keeps, what it previews, and that it sends one request."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from portal.models import AuditEvent, Instance, OutboxRow, Request
from tests.web.conftest import SignIn
from tests.web.posting import CREATE, PREVIEW, model_form


def counts() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Request, Instance, AuditEvent, OutboxRow))


def text_of(response: object) -> str:
    return html.unescape(response.content.decode())  # type: ignore[attr-defined]  # a test client's response


def test_the_form_is_made_of_the_schema(sign_in: SignIn) -> None:
    page = sign_in("ada").get(CREATE).content.decode()
    assert '<option value="search" selected>' in page, "the only team is chosen"
    assert '<option value="ads"' not in page, "other teams are not offered"
    assert re.search(r'name="/spec/contextLength"[^>]* value="8192"[^>]* min="256" max="1048576"', page)
    assert re.search(r'<input type="checkbox" name="/spec/regions" value="eu-central">', page), "learnt from prices"
    assert re.search(r'<option value="h100-80gb">h100-80gb: up to 3.99 USD per hour</option>', page)


def test_a_request_is_sent_and_its_page_shown(sign_in: SignIn) -> None:
    response = sign_in("ada").post(CREATE, model_form(), follow=True)
    request = Request.objects.get()
    assert response.redirect_chain == [(f"/requests/{request.pk}/", 302)]
    assert (request.state, request.spec["replicas"], request.spec["regions"]) == ("Approved", {"min": 1, "max": 1}, [])
    assert request.reason == "answers questions"
    assert "allowed at once" in text_of(response)


def test_a_double_click_is_one_request(sign_in: SignIn) -> None:
    client = sign_in("ada")
    first, second = client.post(CREATE, model_form()), client.post(CREATE, model_form())
    assert first.url == second.url  # type: ignore[attr-defined]  # a redirect's
    assert Request.objects.count() == 1


def test_the_same_form_with_other_values_asks_anew_with_a_new_key(sign_in: SignIn) -> None:
    client = sign_in("ada")
    client.post(CREATE, model_form())
    response = client.post(CREATE, model_form(name="other"))
    assert response.status_code == 409
    assert "sent this form already" in text_of(response)
    key = re.search(r'name="idempotencyKey" value="([^"]+)"', response.content.decode())
    assert key and key[1] != "key-1"
    assert client.post(CREATE, {**model_form(name="other"), "idempotencyKey": key[1]}).status_code == 302


@pytest.mark.parametrize(
    ("changes", "status", "label", "says", "reason"),
    [
        ({"spec_replicas_max": "99"}, 400, "Maximum", "from 1 to 32", "out of range"),
        ({"spec_replicas_max": "x"}, 400, "Maximum", "whole number", "no number"),
        ({"spec_replicas_min": "3"}, 400, "Minimum", "at most replicas.max", "a rule over two fields"),
        ({"spec_model_source": "Llama"}, 400, "Source", "hf://", "no such form"),
        ({"spec_model_source": ""}, 400, "Source", "is required", "missing"),
        ({"spec_model_revision": ""}, 400, "Revision", "the default, main", "no silent default"),
        ({"name": "Granite 3.1"}, 400, "Name", "a-z", "no label"),
        ({"name": "a" * 41}, 400, "Name", "at most 40", "too long (case 1)"),
        ({"name": ""}, 400, "Name", "is required", "missing"),
        ({"environment": ""}, 400, "Environment", "is required", "not chosen"),
        ({"environment": "moon"}, 400, "Environment", "not one of", "unknown"),
        ({"team": ""}, 400, "Team", "is required", "not chosen"),
        ({"reason": "x" * 10_001}, 400, "Reason", "10000", "10,001 characters"),
        ({"madeFor": "nobody"}, 400, "Made for", "nobody active", "unknown person"),
        ({"spec_dataClassification": "secret"}, 400, "Data classification", "is not one of", "not offered"),
        ({"spec_unknown": "1"}, 400, "Model deployment", "no such field", "unknown field"),
    ],
)
def test_a_refused_form_says_where_and_keeps_what_was_typed(
    sign_in: SignIn, changes: dict[str, str], status: int, label: str, says: str, reason: str
) -> None:
    client, before = sign_in("ada"), counts()
    sent = model_form(**changes)
    response = client.post(CREATE, sent)
    assert response.status_code == status, reason
    page = text_of(response)
    summary = re.search(r'<div class="errors".*?</div>', page, re.DOTALL)
    assert summary, reason
    link = re.search(rf'<a href="#([^"]+)">{label}: [^<]*{re.escape(says)}', summary[0])
    assert link, (reason, summary[0])
    assert f'id="{link[1]}"' in page, "the summary links to the field"
    assert f'id="{link[1]}-error"' in page, "the field says it too"
    assert 'value="hf://meta-llama/Llama-3.1-8B-Instruct"' in page or "spec_model_source" in changes
    for pointer, typed in sent.items():
        if pointer in {"/spec/concurrency", "/spec/replicas/max", "/name"} and typed:
            assert f'value="{typed}"' in page, (reason, pointer)
    assert counts() == before, "nothing was written"


def test_every_error_is_told_at_once(sign_in: SignIn) -> None:
    sent = model_form(spec_replicas_max="x", spec_contextLength="1", name="Nope", environment="")
    page = text_of(sign_in("ada").post(CREATE, sent))
    for label in ("Maximum", "Context length", "Environment", "Name"):
        assert len(re.findall(rf'<a href="#[^"]+">{label}:', page)) == 1, label
    assert "4 things need to be put right" in page


def test_a_taken_name_is_said_at_the_name(sign_in: SignIn) -> None:
    client = sign_in("ada")
    client.post(CREATE, model_form())
    response = client.post(CREATE, {**model_form(), "idempotencyKey": "key-2"})
    assert response.status_code == 409
    assert re.search(r'<a href="#f-name">Name: [^<]*choose another name', text_of(response))


def test_another_teams_request_can_not_be_made(sign_in: SignIn) -> None:
    assert sign_in("ada").post(CREATE, model_form(team="ads")).status_code in (403, 404)
    assert not Request.objects.exists()


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "{{7*7}}", "${{ secrets.X }}", "'; drop table x"])
def test_texts_are_literal_everywhere(sign_in: SignIn, text: str) -> None:
    client = sign_in("ada")
    refused = client.post(CREATE, model_form(reason=text, name=text))
    assert text in text_of(refused)
    client.post(CREATE, model_form(reason=text))
    request = Request.objects.get()
    assert request.reason == text
    for page in (refused, client.get(f"/requests/{request.pk}/")):
        assert "<script>alert" not in page.content.decode()
        assert text in text_of(page)


def test_a_denial_is_stored_explained_and_can_be_changed(sign_in: SignIn) -> None:
    client = sign_in("ada")
    page = text_of(client.post(CREATE, model_form(spec_replicas_max="9"), follow=True))
    request = Request.objects.get()
    assert request.state == "Denied"
    assert "quota-exceeded" in page
    again = client.get(f"{CREATE}?from={request.pk}").content.decode()
    assert re.search(r'name="/spec/replicas/max"[^>]* value="9"', again)
    assert re.search(r'name="/name"[^>]* value="chat"', again)


class TestPreview:
    """The panel beside the form: the same code as submitting, and nothing is written."""

    def test_it_shows_price_quota_and_decision(self, sign_in: SignIn) -> None:
        client, before = sign_in("ada"), counts()
        page = text_of(client.post(PREVIEW, model_form(), headers={"HX-Request": "true"}))
        assert "Allowed at once" in page
        assert "584.00 USD" in page
        assert re.search(r"0 → 1 of 4", page)
        assert '<span id="preview-status"' in page, "said to screen readers"
        assert counts() == before

    def test_it_names_who_would_be_asked(self, sign_in: SignIn) -> None:
        page = text_of(sign_in("ada").post(PREVIEW, model_form(environment="prod")))
        assert "Needs approval" in page
        assert "<b>2</b> of <b>platform-approvers</b>" in page

    def test_it_says_what_denies(self, sign_in: SignIn) -> None:
        page = text_of(sign_in("ada").post(PREVIEW, model_form(spec_replicas_max="9")))
        assert "Denied" in page
        assert "quota-exceeded" in page

    def test_an_unknown_price_reads_well_and_names_what_is_priced(self, sign_in: SignIn) -> None:
        page = text_of(sign_in("ada").post(PREVIEW, model_form(spec_accelerator_class="l5")))
        shown = re.sub(r"<[^>]+>", "", page)
        assert "needs review (never free)" in shown
        assert "gpu.l5: 1, the price list has no price for it" in re.sub(r"\s+", " ", shown)
        assert "gpu.l5 has neither a price nor a quota. Did you mean gpu.l4? Known here: gpu.a100-80gb" in shown
        assert "0.00 of 30,000.00 USD, without this" in shown, "the budget: an unknown price is no 0"
        assert "0 → 1, no quota" in shown
        for odd in ("unknown per", "needs review per", "in *", "holds until"):
            assert odd not in shown, odd

    def test_it_can_be_gone_to(self, sign_in: SignIn) -> None:
        page = text_of(sign_in("ada").get(CREATE))
        assert f'formaction="{CREATE}#preview"' in page, "where the Preview button leads without JavaScript"
        assert 'href="#preview"' in page
        assert 'id="preview"' in page

    def test_an_incomplete_form_is_no_error(self, sign_in: SignIn) -> None:
        response = sign_in("ada").post(PREVIEW, {"/team": "search"})
        assert response.status_code == 200
        assert "Not complete yet" in text_of(response)

    def test_without_javascript_a_button_previews(self, sign_in: SignIn) -> None:
        client, before = sign_in("ada"), counts()
        response = client.post(CREATE, {**model_form(spec_concurrency="17"), "action": "preview"})
        page = text_of(response)
        assert "Allowed at once" in page
        assert 'value="17"' in page
        assert counts() == before

    def test_someone_who_is_not_signed_in_is_sent_to_sign_in(self, sign_in: SignIn) -> None:
        response = Client().post(PREVIEW, model_form(), headers={"HX-Request": "true"})
        assert response.headers["HX-Redirect"] == "/login/"
