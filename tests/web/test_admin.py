"""The admin: people, teams and tokens, audited; what is governed can only be looked at."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db import DataError, IntegrityError, transaction
from django.test import Client

from portal import admin as portal_admin
from portal.models import ApiToken, AuditEvent, Quota, Team
from portal.services.tokens import actor_for_token
from tests.sample import model_body
from tests.web.conftest import SignIn
from tests.world import FEED, SUPERUSER, World, ready

pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery"
NEW_PASSWORD = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true", "set-password": "1"}
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
        ("frank", ["read"], "7", "only they make it", "what somebody else sees"),
        ("erin", ["feed"], "7", "for a service", "somebody who signs in"),
        (SUPERUSER, [], "7", "required", "no scope"),
        (SUPERUSER, ["everything"], "7", "not one of", "no such scope"),
        (SUPERUSER, ["read"], "4000", "366", "too long"),
    ],
)
def test_tokens_that_are_not_made(
    root: Client, user: str, scopes: list[str], days: str, says: str, reason: str
) -> None:
    erin = User.objects.get(username="erin")
    erin.set_password(PASSWORD)
    erin.save()
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


def test_a_token_for_a_service_is_made(root: Client) -> None:
    assert "prt_" in root.post("/admin/portal/apitoken/add/", token_form(FEED, "feed")).content.decode()


@pytest.fixture
def operator(sign_in: SignIn) -> Client:
    """Staff who may change people, and is no superuser."""
    user = User.objects.get(username="olivia")
    user.is_staff = True
    user.save()
    names = ("add_user", "change_user", "view_user", "change_group", "view_group")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return sign_in("olivia")


def test_only_superusers_make_somebody_more_than_they_are(operator: Client) -> None:
    ben, group = User.objects.get(username="ben"), Group.objects.get(name="platform-approvers")
    page = operator.get(f"/admin/auth/user/{ben.pk}/change/").content.decode()
    assert 'name="email"' in page
    assert not re.search(r'name="(is_staff|is_superuser|groups|user_permissions)"', page)
    sent = {"username": "ben", "is_staff": "on", "is_superuser": "on", "groups": [group.pk], "is_active": "on"}
    sent |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    assert operator.post(f"/admin/auth/user/{ben.pk}/change/", sent).status_code == 302
    ben.refresh_from_db()
    assert (ben.is_staff, ben.is_superuser, ben.groups.count()) == (False, False, 0)
    assert operator.post(f"/admin/auth/group/{group.pk}/change/", {"name": "x"}).status_code == 403
    sam = User.objects.get(username=SUPERUSER)
    assert operator.post(f"/admin/auth/user/{sam.pk}/change/", sent).status_code == 403


def test_only_superusers_set_passwords(operator: Client) -> None:
    for name in ("ben", SUPERUSER, "olivia"):
        before = User.objects.get(username=name)
        assert operator.post(f"/admin/auth/user/{before.pk}/password/", NEW_PASSWORD).status_code == 403
        assert User.objects.get(username=name).password == before.password


def test_a_new_password_ends_tokens_and_sessions(root: Client, sign_in: SignIn, world: World) -> None:
    ben, bens = User.objects.get(username="ben"), sign_in("ben")
    assert bens.get("/").status_code == 200
    assert root.post(f"/admin/auth/user/{ben.pk}/password/", {**NEW_PASSWORD, "password2": "other"}).status_code == 200
    assert actor_for_token(world.tokens["ben"]), "nothing was changed"
    assert root.post(f"/admin/auth/user/{ben.pk}/password/", NEW_PASSWORD).status_code == 302
    assert actor_for_token(world.tokens["ben"]) is None
    assert bens.get("/").status_code == 302
    assert actor_for_token(world.tokens["ada"]), "somebody else's"


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
