"""The Django admin: people, approver groups, teams and tokens can be changed; what is governed can only be seen.

Every change here is an audit event too. Not in charge of: quotas, budgets, prices, offerings and policies (those change
by approved requests or by `manage.py bootstrap`), or who may vote (services.access: a superuser is like anybody there).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.models import (
    ActiveDocument,
    ApiToken,
    AuditEvent,
    Budget,
    Commitment,
    Document,
    Environment,
    Membership,
    OutboxRow,
    Price,
    Quota,
    Reservation,
    Team,
)
from portal.services import journal, tokens
from portal.services.access import SCOPES
from portal.services.locks import MAX_DEPTH, team_chain

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Any]
    _Inline = admin.TabularInline[Any, Any]
    _UserAdmin = UserAdmin[User]
    _Form = forms.ModelForm[Any]
else:
    _Admin, _Inline, _UserAdmin, _Form = admin.ModelAdmin, admin.TabularInline, UserAdmin, forms.ModelForm

PERSONAL_SCOPES = {"read", "request", "approve"}  # acting as a person: nobody sees or votes as somebody else by a token


class Audited(_Admin):
    """Writes an audit event for each addition and change; nothing can be deleted, since the past refers to it."""

    noun = ""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._record(request, "create", obj, message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._record(request, "change", obj, message)
        return super().log_change(request, obj, message)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def _record(self, request: HttpRequest, verb: str, obj: Model, message: Any) -> None:
        if not request.user.is_authenticated:
            raise ValueError("the admin has no anonymous users")
        with transaction.atomic():
            data = {"name": str(obj)[:200], "changes": message}
            if isinstance(obj, User):
                data["person"] = obj.pk  # names change
            journal.record(f"{self.noun}.{verb}", actor=request.user, data=data)


class ReadOnly(_Admin):
    """Only to look at."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class People(Audited, _UserAdmin):
    """Deactivate whoever leaves: what they did stays theirs."""

    noun = "person"
    list_display = ("username", "email", "first_name", "last_name", "is_active", "is_staff")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """What makes somebody more than they are is changed by superusers alone."""
        return () if _is_superuser(request) else ("is_staff", "is_superuser", "groups", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and (
            _is_superuser(request) or obj is None or not obj.is_superuser
        )

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Superusers alone set passwords. A new one ends that person's tokens too; Django ends their sessions."""
        if not _is_superuser(request):
            raise PermissionDenied
        with transaction.atomic():
            user = self.get_object(request, unquote(id))
            before = user.password if user else ""
            response = super().user_change_password(request, id, form_url)
            user = self.get_object(request, unquote(id))
            if user is not None and user.password != before and user != request.user:
                for token in user.api_tokens.filter(revoked_at=None):
                    tokens.revoke_token(token.prefix, actor=request.user)  # type: ignore[arg-type]  # is a superuser
        return response


def _is_superuser(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_superuser


@admin.register(Group)
class ApproverGroups(Audited, GroupAdmin):
    """A group is what it may do; superusers alone say so."""

    noun = "group"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return _is_superuser(request)


class MembershipForm(_Form):
    """Roles by their words."""

    class Meta:
        model = Membership
        fields = ("user", "role")


class Members(_Inline):
    model = Membership
    form = MembershipForm
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Team)
class Teams(Audited):
    """A team keeps its slug and its place: its namespaces and every group's counters rest on them."""

    noun = "team"
    list_display = ("slug", "title", "parent")
    search_fields = ("slug", "title")
    fields = ("slug", "title", "parent")
    inlines = (Members,)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("slug", "parent") if obj else ()

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "parent":
            shallow = [team.pk for team in Team.objects.all() if len(team_chain(team)) < MAX_DEPTH]
            kwargs["queryset"] = Team.objects.filter(pk__in=shallow)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


class TokenForm(_Form):
    """What a new token is for."""

    scopes = forms.MultipleChoiceField(
        choices=[(scope, f"{scope}: {meaning}") for scope, meaning in SCOPES.items()],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.IntegerField(min_value=1, max_value=tokens.MAX_DAYS, initial=30, help_text="How long it is valid.")
    acting_user: User  # who fills it in

    class Meta:
        model = ApiToken
        fields = ("user", "name")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        personal = PERSONAL_SCOPES & set(data.get("scopes") or [])
        if personal and data.get("user") not in (None, self.acting_user):
            words = " and ".join(sorted(personal))
            raise forms.ValidationError(
                f"A token that can {words} acts as its person, so only they make it, or an operator with "
                "`manage.py token`. Choose yourself, or other scopes."
            )
        user = data.get("user")
        if "feed" in (data.get("scopes") or []) and user is not None and user.has_usable_password():
            raise forms.ValidationError(
                f"A token that can feed is for a service, and {user} signs in with a password. "
                "Choose a service's account."
            )
        return data


@admin.register(ApiToken)
class Tokens(_Admin):
    """Made and revoked, never changed. The secret is shown once, in the answer to its making, and stored nowhere."""

    form = TokenForm
    list_display = ("prefix", "name", "user", "scopes", "created_at", "expires_at", "revoked_at")
    list_filter = ("user",)
    actions = ("revoke",)
    fields = ("prefix", "name", "user", "scopes", "created_at", "expires_at", "revoked_at")

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return super().get_fields(request, obj) if obj else ("user", "name", "scopes", "days")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type("TokenFormOfSomebody", (form,), {"acting_user": request.user})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        asked = form.cleaned_data
        made = tokens.create_token(
            asked["user"], name=asked["name"], scopes=asked["scopes"], days=asked["days"], actor=form.acting_user
        )
        obj.pk = ApiToken.objects.get(prefix=made.split("_")[1]).pk
        obj.shown_once = made

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": "New token", "token": obj.shown_once}
        response = render(request, "portal/token_created.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request)

    @admin.action(description="Revoke the chosen tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        if not request.user.is_authenticated:
            raise ValueError("the admin has no anonymous users")
        ended = sum(tokens.revoke_token(row.prefix, actor=request.user) for row in queryset)
        self.message_user(request, f"{ended} revoked. They are refused from now on.", messages.SUCCESS)


@admin.register(Environment)
class Environments(ReadOnly):
    list_display = ("slug", "title", "control_plane", "namespace_rule", "creates_namespaces")


@admin.register(Quota)
class Quotas(ReadOnly):
    list_display = ("team", "dimension", "limit", "reserved", "used", "changed_at")
    list_filter = ("dimension",)


@admin.register(Budget)
class Budgets(ReadOnly):
    list_display = ("team", "currency", "soft", "hard", "committed", "changed_at")


@admin.register(Reservation)
class Reservations(ReadOnly):
    list_display = ("team", "dimension", "amount", "state", "instance", "request")
    list_filter = ("state", "dimension")
    list_select_related = ("team", "instance", "request")


@admin.register(Commitment)
class Commitments(ReadOnly):
    list_display = ("team", "monthly", "currency", "released", "instance", "request")
    list_filter = ("released",)
    list_select_related = ("team", "instance", "request")


@admin.register(Document)
class Documents(ReadOnly):
    list_display = ("name", "kind", "digest", "stored_at")
    list_filter = ("kind",)


@admin.register(ActiveDocument)
class ActiveDocuments(ReadOnly):
    list_display = ("name", "kind", "document", "activated_at")


@admin.register(Price)
class Prices(ReadOnly):
    list_display = ("sku", "region", "price", "currency", "unit", "effective_from", "problem")
    list_filter = ("region",)


@admin.register(AuditEvent)
class AuditEvents(ReadOnly):
    list_display = ("at", "verb", "actor", "system", "team", "request", "instance")
    list_filter = ("verb",)
    list_select_related = ("actor", "team", "request", "instance")
    ordering = ("-id",)


@admin.register(OutboxRow)
class OutboxRows(ReadOnly):
    list_display = ("id", "topic", "lane", "attempts", "due_at", "done_at", "outcome", "last_error")
    list_filter = ("topic", "outcome")
    ordering = ("-id",)
