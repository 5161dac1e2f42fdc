"""The admin: people, teams and tokens, audited; what is governed can only be looked at."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import DataError, IntegrityError, transaction
from django.test import Client

from portal import admin as portal_admin
from portal.models import ApiToken, AuditEvent, Quota, Team
from portal.services.tokens import actor_for_token
from tests.sample import model_body
from tests.web.conftest import SignIn
from tests.world import SUPERUSER, ready

READ_ONLY = sorted(
    (model for model, held in admin.site._registry.items() if isinstance(held, portal_admin.ReadOnly)),
    key=lambda model: model.__name__,
)


@pytest.fixture
def root(sign_in: SignIn) -> Client:
    return sign_in(SUPERUSER)


def test_every_list_can_be_looked_at(root: Client) -> None:
    ready("ada", model_body())
    for model in admin.site._registry:
        address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert root.get(address).status_code == 200, address


@pytest.mark.parametrize("model", READ_ONLY, ids=lambda model: model.__name__)
def test_what_is_governed_can_not_be_changed(root: Client, model: type) -> None:
    ready("ada", model_body())
    name = model.__name__.lower()
    row = model.objects.first()  # type: ignore[attr-defined]  # a model's manager
    assert root.get(f"/admin/portal/{name}/add/").status_code == 403
    if row is not None:
        page = root.get(f"/admin/portal/{name}/{row.pk}/change/")
        assert page.status_code == 200
        assert b'name="_save"' not in page.content
        assert root.post(f"/admin/portal/{name}/{row.pk}/change/", {}).status_code == 403
        assert root.get(f"/admin/portal/{name}/{row.pk}/delete/").status_code == 403


def test_quotas_are_among_them() -> None:
    assert Quota in READ_ONLY
    assert AuditEvent in READ_ONLY


def token_form(user: str, *scopes: str, days: str = "7") -> dict[str, object]:
    return {"user": User.objects.get(username=user).pk, "name": "ci", "scopes": list(scopes), "days": days}


def test_a_token_is_shown_once_and_works(root: Client) -> None:
    response = root.post("/admin/portal/apitoken/add/", token_form(SUPERUSER, "read", "approve"))
    shown = re.search(r"prt_[a-z0-9]{12}_[\w-]{43}", response.content.decode())
    assert shown
    assert "no-store" in response.headers["Cache-Control"]
    acting = actor_for_token(shown[0])
    assert acting and (acting.user.username, acting.scopes) == (SUPERUSER, frozenset({"read", "approve"}))
    row = ApiToken.objects.get(name="ci")
    for address in ("/admin/portal/apitoken/", f"/admin/portal/apitoken/{row.pk}/change/"):
        page = root.get(address).content.decode()
        assert row.secret_hash not in page
        assert shown[0].rsplit("_", 1)[1] not in page
    event = AuditEvent.objects.get(verb="token.create", actor__username=SUPERUSER)
    assert event.data["prefix"] == row.prefix


@pytest.mark.parametrize(
    ("user", "scopes", "days", "says", "reason"),
    [
        ("frank", ["read", "approve"], "7", "only they make it", "somebody else's vote"),
        ("frank", ["request"], "7", "only they make it", "somebody else's request"),
        (SUPERUSER, [], "7", "required", "no scope"),
        (SUPERUSER, ["everything"], "7", "not one of", "no such scope"),
        (SUPERUSER, ["read"], "4000", "366", "too long"),
    ],
)
def test_tokens_that_are_not_made(
    root: Client, user: str, scopes: list[str], days: str, says: str, reason: str
) -> None:
    before = ApiToken.objects.count()
    response = root.post("/admin/portal/apitoken/add/", token_form(user, *scopes, days=days))
    assert response.status_code == 200, reason
    assert says in response.content.decode(), reason
    assert ApiToken.objects.count() == before, reason


def test_a_token_is_revoked_and_stays_so(root: Client) -> None:
    row = ApiToken.objects.filter(user__username="ada").get()
    root.post("/admin/portal/apitoken/", {"action": "revoke", "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert AuditEvent.objects.filter(verb="token.revoke", data__prefix=row.prefix).count() == 1
    assert root.post(f"/admin/portal/apitoken/{row.pk}/change/", {"name": "x"}).status_code == 403


def test_a_change_of_people_is_audited(root: Client) -> None:
    user = User.objects.get(username="ben")
    page = root.get(f"/admin/auth/user/{user.pk}/change/").content.decode()
    assert 'name="username"' in page
    data = {
        "username": "ben",
        "email": "ben@new.example",
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
        "is_active": "on",
    }
    assert root.post(f"/admin/auth/user/{user.pk}/change/", data).status_code == 302
    event = AuditEvent.objects.get(verb="person.change")
    assert (event.actor and event.actor.username, event.data["name"]) == (SUPERUSER, "ben")
    assert root.get(f"/admin/auth/user/{user.pk}/delete/").status_code == 403


def test_a_team_keeps_its_slug_and_its_place(root: Client) -> None:
    team = Team.objects.get(slug="ads")
    page = root.get(f"/admin/portal/team/{team.pk}/change/").content.decode()
    assert 'name="title"' in page
    assert 'name="slug"' not in page
    assert 'name="parent"' not in page


def test_people_who_are_no_staff_stay_out(sign_in: SignIn) -> None:
    for person in ("grace", "ada"):
        assert sign_in(person).get("/admin/").status_code == 302, person


@pytest.mark.parametrize("slug", ["Search Team", "-a", "a-", "a/b", "ä", "a" * 64, "../x"])
def test_a_team_has_a_slug(root: Client, slug: str) -> None:
    members = {f"memberships-{key}_FORMS": "0" for key in ("TOTAL", "INITIAL", "MIN_NUM", "MAX_NUM")}
    response = root.post("/admin/portal/team/add/", {"slug": slug, "title": "T", "parent": "", **members})
    assert response.status_code == 200
    assert "adminform" in response.context and "slug" in response.context["adminform"].form.errors
    with pytest.raises(IntegrityError if len(slug) < 64 else DataError), transaction.atomic():
        Team.objects.create(slug=slug, title="T")
    assert (
        root.post("/admin/portal/team/add/", {"slug": "a-1", "title": "T", "parent": "", **members}).status_code == 302
    )
