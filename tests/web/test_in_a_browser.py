"""The pages in a real browser: by keyboard alone, without JavaScript, on a small screen, in both colour schemes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect, sync_playwright

from portal.models import Request
from tests.sample import model_body, quota_body
from tests.web.browsing import (
    ARGUMENTS,
    COUNT_SHIFTS,
    FAINT,
    PASSWORD,
    UNNAMED,
    overflow,
    sign_in,
    tab_to,
)
from tests.world import build_world, ready, submit

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
FORM = "/offerings/modeldeployments/request/"
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright's loop runs in this thread, and Django takes that for asynchronous code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        started = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, transactional_db: None, live_server: Any) -> Iterator[Visit]:
    """Opens a page as a person of the sample world; at the end no page may have complained on its console."""
    build_world()
    for user in User.objects.all():
        user.set_password(PASSWORD)
        user.save(update_fields=["password"])
    complaints: list[str] = []
    contexts = []

    def open_page(person: str = "", **options: Any) -> Page:
        context = browser.new_context(base_url=live_server.url, **options)
        context.set_default_timeout(60_000)
        context.add_init_script(COUNT_SHIFTS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if person:
            sign_in(page, person)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for text in complaints if "status of 4" not in text] == [], "no script error, nothing that CSP blocks"


def fill_model(page: Page, name: str, environment: str = "dev") -> None:
    page.get_by_label("Environment").select_option(environment)
    page.get_by_label("Name", exact=False).first.fill(name)
    page.get_by_label("Source").fill("hf://meta-llama/Llama-3.1-8B-Instruct")
    page.get_by_label("Class", exact=False).first.fill("l4")


def test_a_request_by_keyboard_alone(visit: Visit) -> None:
    page = visit("ada")
    tab_to(page, text="Request something")
    page.keyboard.press("Enter")
    page.wait_for_url("**/offerings/")
    tab_to(page, text="Request")
    page.keyboard.press("Enter")
    page.wait_for_url("**/request/")
    tab_to(page, name="/environment")
    page.keyboard.type("Dev")
    tab_to(page, name="/name")
    page.keyboard.type("by-keys")
    tab_to(page, name="/spec/model/source")
    page.keyboard.type("hf://meta-llama/Llama-3.1-8B-Instruct")
    tab_to(page, name="/spec/accelerator/class")
    page.keyboard.type("l4")
    tab_to(page, name="/spec/regions", value="eu-west")
    page.keyboard.press("Space")
    tab_to(page, text="Send request")
    page.keyboard.press("Enter")
    page.wait_for_url("**/requests/*/")
    request = Request.objects.get()
    assert (request.name, request.state, request.spec["regions"]) == ("by-keys", "Approved", ["eu-west"])


def test_the_preview_follows_and_nothing_jumps(visit: Visit) -> None:
    page = visit("ada", viewport={"width": 1280, "height": 900})
    page.goto(FORM)
    preview = page.locator("#preview")
    expect(preview).to_contain_text("Not complete yet")
    fill_model(page, "previewed")
    expect(preview).to_contain_text("Allowed at once", timeout=60_000)
    expect(preview).to_contain_text("584.00 USD")
    expect(page.locator("#preview-status")).to_have_text("Preview: allowed at once, 584.00 USD per month.")
    page.get_by_label("Maximum").fill("9")
    expect(preview).to_contain_text("Denied", timeout=60_000)
    page.get_by_label("Environment").select_option("prod")
    page.get_by_label("Maximum").fill("1")
    expect(preview).to_contain_text("platform-approvers", timeout=60_000)
    assert page.evaluate("window.shifted") < 0.05
    assert not Request.objects.exists(), "a preview writes nothing"
    page.get_by_role("button", name="Send request").dblclick()
    page.wait_for_url("**/requests/*/")
    assert Request.objects.count() == 1, "a double click is one request"


def test_errors_keep_what_was_typed_and_get_the_focus(visit: Visit) -> None:
    page = visit("ada")
    page.goto(FORM)
    fill_model(page, "Not A Name")
    page.get_by_label("Reason").fill("line one\nline <two>")
    page.get_by_role("button", name="Send request").click()
    expect(page.locator("#errors")).to_be_focused(timeout=60_000)
    expect(page.get_by_label("Reason")).to_have_value("line one\nline <two>")
    expect(page.get_by_label("Name", exact=False).first).to_have_value("Not A Name")
    page.locator("#errors a").first.click()
    assert page.evaluate("document.activeElement.name") == "/name", "the summary leads to the field"
    assert page.evaluate("document.activeElement.getAttribute('aria-invalid')") == "true"


def test_the_whole_way_without_javascript(visit: Visit) -> None:
    page = visit("ada", java_script_enabled=False)
    page.goto(FORM)
    fill_model(page, "no-script", "prod")
    page.get_by_label("Maximum").fill("99")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#errors")).to_contain_text("Maximum")
    page.get_by_label("Maximum").fill("1")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text("Needs approval")
    page.get_by_role("button", name="Send request").click()
    request = Request.objects.get()
    assert request.state == "Waiting"
    for person in ("frank", "heidi"):
        other = visit(person, java_script_enabled=False)
        other.get_by_role("link", name="Inbox").click()
        other.get_by_label("Comment").fill("fine by me")
        other.get_by_role("button", name="Approve").click()
        expect(other.locator("main")).to_contain_text("Your approval was recorded")
    request.refresh_from_db()
    assert request.state == "Approved"
    page.goto(f"/requests/{request.pk}/")
    page.get_by_role("button", name="Withdraw").click()
    request.refresh_from_db()
    assert request.state == "Withdrawn"


def test_one_can_not_approve_ones_own(visit: Visit) -> None:
    request = submit("erin", model_body("own", environment="prod"))
    page = visit("erin")
    page.goto(f"/requests/{request.pk}/")
    expect(page.locator("main")).to_contain_text("You can't vote on this request, because you asked for it")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    token = page.locator('input[name="csrfmiddlewaretoken"]').first.get_attribute("value")
    forged = page.request.post(
        f"/requests/{request.pk}/vote/",
        form={"csrfmiddlewaretoken": token or "", "answer": "approve", "decision": str(request.decisions.get().pk)},
    )
    assert forged.status == 403
    request.refresh_from_db()
    assert request.state == "Waiting"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_on_a_small_screen_and_in_both_schemes(visit: Visit, scheme: str) -> None:
    """No sideways scrolling at 360 px, a name for everything that takes input, and contrast that suffices."""
    instance = ready("ada", model_body("a" * 40), {"endpoint": {"url": "https://" + "long-name." * 12 + "example.org"}})
    waiting = submit("ada", model_body("prod-chat", environment="prod", reason="w" * 300))
    denied = submit("ada", model_body("big", gpus=9))
    quota = submit("carol", quota_body(3))
    pages = ["/", FORM, "/offerings/", "/offerings/modeldeployments/", "/requests/", "/instances/", "/inbox/?show=all"]
    pages += ["/teams/", "/teams/search/", "/quotas/raise/", "/fleet/", "/prices/", "/audit/", "/nowhere/"]
    pages += [f"/instances/{instance.pk}/{name}" for name in ("", "delete/", "change/", "suspend/", "revisions/")]
    pages += [f"/requests/{each.pk}/" for each in (waiting, denied, quota)]
    page = visit(color_scheme=scheme, viewport={"width": 360, "height": 740})
    page.goto("/login/")
    assert (overflow(page), page.evaluate(UNNAMED), page.evaluate(FAINT)) == (0, [], []), "/login/"
    sign_in(page, "ivan")
    found = {}
    for address in pages:
        page.goto(address)
        found[address] = (overflow(page), page.evaluate(UNNAMED), page.evaluate(FAINT))
        assert page.evaluate("window.shifted") < 0.05, address
    assert {address: faults for address, faults in found.items() if faults != (0, [], [])} == {}


def test_a_refused_form_is_readable_too(visit: Visit) -> None:
    page = visit("ada", viewport={"width": 360, "height": 740})
    page.goto(FORM)
    page.get_by_role("button", name="Send request").click()
    expect(page.locator("#errors")).to_be_visible()
    assert (overflow(page), page.evaluate(FAINT)) == (0, [])
