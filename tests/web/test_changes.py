"""The pages of a change: its form, preview, difference and price; suspending and resuming; revisions to go back to."""

from __future__ import annotations

import pytest

from portal.models import Instance, Request
from portal.services import observing
from tests.sample import MODEL_SPEC, model_body
from tests.services.planes import embedded_plane
from tests.web.conftest import SignIn
from tests.web.posting import MODEL_FORM
from tests.world import OUTSIDER, observed, ready, submit, work

pytestmark = pytest.mark.django_db

FORM = {key: value for key, value in MODEL_FORM.items() if key.startswith("/spec/") or key == "/reason"}


def page(instance: Instance, name: str) -> str:
    return f"/instances/{instance.pk}/{name}/"


def form(**changes: str) -> dict[str, str]:
    """The form as it would be posted; `spec_replicas_max` replaces /spec/replicas/max."""
    made = {"/" + key.replace("_", "/"): value for key, value in changes.items()}
    return {"idempotencyKey": "key-2", **FORM, **made}


def seen(instance: Instance) -> None:
    work()
    observing.observe(observed(Instance.objects.get(pk=instance.pk), {}))


def change_to(instance: Instance, gpus: int, who: str = "ada", **spec: object) -> Request:
    new = {**MODEL_SPEC, "replicas": {"min": 1, "max": gpus}, **spec}
    return submit(who, {"kind": "Change", "instance": str(instance.pk), "spec": new})


def test_the_form_starts_from_what_is_and_a_change_is_asked_for(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    shown = ada.get(page(instance, "change")).content.decode()
    assert 'name="/spec/contextLength" type="number" value="4096"' in shown
    assert "/spec/suspend" not in shown, "a request of its own sets that"
    assert 'name="/name"' not in shown
    answer = ada.post(page(instance, "change"), form(spec_replicas_max="2"), follow=True)
    request = Request.objects.get(kind="Change")
    assert answer.redirect_chain == [(f"/requests/{request.pk}/", 302)]
    text = answer.content.decode()
    assert '<th scope="row" class="code">replicas.max</th><td><del>1</del></td><td><ins>2</ins></td>' in text
    assert "584.00 USD →" in text
    assert "1,168.00 USD per month" in text
    assert "(+584.00)" in text
    told = ada.get(f"/instances/{instance.pk}/").content.decode()
    assert f'ada asked to change it: <a href="/requests/{request.pk}/">approved</a>' in told


def test_a_refused_form_keeps_what_was_typed_and_says_where(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    answer = ada.post(page(instance, "change"), form(spec_contextLength="12"))
    text = answer.content.decode()
    assert (answer.status_code, 'value="12"' in text, "12 is out of range" in text) == (400, True, True)
    same = ada.post(page(instance, "change"), form())
    assert (same.status_code, "this is what chat is already" in same.content.decode()) == (400, True)
    assert not Request.objects.filter(kind="Change").exists()


def test_the_preview_shows_difference_price_and_decision_and_writes_nothing(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    for answer in (
        ada.post(page(instance, "change/preview"), form(spec_replicas_max="3")),
        ada.post(page(instance, "change"), form(spec_replicas_max="3") | {"action": "preview"}),
    ):
        text = answer.content.decode()
        assert answer.status_code == 200
        assert '<th scope="row" class="code">replicas.max</th>' in text
        assert "1,752.00 USD per month" in text
        assert "Needs approval" in text
    assert not Request.objects.filter(kind="Change").exists()


def test_the_control_plane_is_asked_beside_the_preview(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    live = ada.post(page(instance, "change/preview"), form(spec_replicas_max="2")).content.decode()
    assert f'hx-post="{page(instance, "change/rehearsal")}"' in live, "asked on its own, so that nothing waits for it"
    plane = embedded_plane()
    plane.ensure_namespace(instance.namespace, True, {})
    plane.apply(instance.claim or {})
    said = ada.post(page(instance, "change/rehearsal"), form(spec_replicas_max="2")).content.decode()
    assert "It would be taken." in said
    assert '<th scope="row" class="code">replicas.max</th><td><del>1</del></td><td><ins>2</ins></td>' in said
    whole = ada.post(page(instance, "change"), form(spec_replicas_max="2") | {"action": "preview"}).content.decode()
    assert "It would be taken." in whole, "and without JavaScript with it"


def test_an_approver_sees_the_difference_in_the_inbox_and_what_the_control_plane_says(sign_in: SignIn) -> None:
    instance = ready("ada", model_body())
    request = change_to(instance, 3, contextLength=8192)
    frank = sign_in("frank")
    inbox = frank.get("/inbox/").content.decode()
    assert '<th scope="row" class="code">replicas.max</th><td><del>1</del></td><td><ins>3</ins></td>' in inbox
    assert "1,752.00 USD" in inbox
    assert "accelerator.class" not in inbox, "what stays is not in the way"
    shown = frank.get(f"/requests/{request.pk}/").content.decode()
    assert f'href="/requests/{request.pk}/rehearsal/"' in shown
    told = frank.get(f"/requests/{request.pk}/rehearsal/").content.decode()
    assert "What the control plane says" in told


@pytest.mark.parametrize(
    ("kind", "price", "sentence"),
    [("Suspend", "0.00 USD per month", "Its data"), ("Resume", "584.00 USD per month", "as it was")],
)
def test_suspend_and_resume_ask_back_with_the_price_before_and_after(
    sign_in: SignIn, kind: str, price: str, sentence: str
) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    if kind == "Resume":
        submit("ada", {"kind": "Suspend", "instance": str(instance.pk)})
        seen(instance)
    path = page(instance, kind.lower())
    assert path in ada.get(f"/instances/{instance.pk}/").content.decode()
    shown = ada.get(path).content.decode()
    assert (price in shown, " USD →" in shown, sentence.lower() in shown.lower()) == (True, True, True)
    answer = ada.post(path, {"idempotencyKey": "key-3", "/reason": "it is summer"})
    request = Request.objects.get(kind=kind)
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/requests/{request.pk}/")
    again = ada.post(path, {"idempotencyKey": "key-4"})
    assert (again.status_code, "open" in again.content.decode()) == (409, True)


def test_what_can_not_be_suspended_says_why(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    shown = ada.get(page(instance, "resume"))
    assert (shown.status_code, "chat is not suspended" in shown.content.decode()) == (200, True)


def test_revisions_say_who_when_what_and_offer_each_again(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    creation = instance.requests.get()
    change_to(instance, 2, "ben", contextLength=8192)
    seen(instance)
    shown = ada.get(page(instance, "revisions")).content.decode()
    assert shown.count("<tr>") == 3
    assert "contextLength" in shown
    assert "<b>current</b>" in shown
    again = f"/instances/{instance.pk}/change/?from={creation.pk}"
    assert shown.count("Ask for this again") == 1
    assert again in shown
    prefilled = ada.get(again).content.decode()
    assert 'name="/spec/contextLength" type="number" value="4096"' in prefilled
    assert "what ada asked for" in prefilled
    foreign = ready("carol", model_body("other", team="ads")).requests.get()
    assert ada.get(f"/instances/{instance.pk}/change/?from={foreign.pk}").status_code == 409


def test_what_ended_can_be_asked_for_again_with_its_values(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    request = change_to(instance, 5)
    assert request.state == "Denied"
    shown = ada.get(f"/requests/{request.pk}/").content.decode()
    assert f"/instances/{instance.pk}/change/?from={request.pk}" in shown
    assert 'value="5"' in ada.get(f"/instances/{instance.pk}/change/?from={request.pk}").content.decode()


def test_others_instances_are_not_there(sign_in: SignIn) -> None:
    instance = ready("ada", model_body())
    for who in (OUTSIDER, "carol"):
        client = sign_in(who)
        for name in ("change", "suspend", "resume", "revisions"):
            assert client.get(page(instance, name)).status_code == 404, (who, name)
        for name in ("change", "change/preview", "change/rehearsal", "suspend", "resume"):
            assert client.post(page(instance, name), form(spec_replicas_max="2")).status_code == 404, (who, name)
    assert not Request.objects.exclude(kind="Create").exists()


def test_a_superseded_change_says_that_another_took_its_place(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    first = change_to(instance, 2)
    work()
    change_to(instance, 1, contextLength=8192)
    work()
    assert "A later request took its place" in ada.get(f"/requests/{first.pk}/").content.decode()


def test_literal_texts_stay_literal(sign_in: SignIn) -> None:
    ada, instance = sign_in("ada"), ready("ada", model_body())
    odd = form(spec_replicas_max="2", reason="<script>alert(1)</script> {{7*7}}")
    text = ada.post(page(instance, "change"), odd, follow=True).content.decode()
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; {{7*7}}" in text
    typed = ada.post(page(instance, "change"), form(spec_model_revision='"><script>alert(2)')).content.decode()
    assert "<script>alert(2)" not in typed
