"""Signing in and out. In the demo alone the page lists the accounts that the demo made, with their passwords."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse

from portal.services import signing_in

DEMO_ACCOUNTS = "demo-accounts.json"  # in the state folder: the list that portal.demo.accounts makes


TOO_MANY = "too-many-attempts"


class SignInForm(AuthenticationForm):
    """Looks at the password only while there were not too many wrong ones."""

    def clean(self) -> dict[str, Any]:
        username = str(self.cleaned_data.get("username") or "")
        address = str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""
        if signing_in.refused(username, address):
            raise ValidationError("", code=TOO_MANY)
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError:
            signing_in.failed(username, address)
            raise
        user = self.get_user()
        if isinstance(user, User):
            signing_in.succeeded(user, address)
        return cleaned


class SignIn(LoginView):
    template_name = "portal/signin.html"
    redirect_authenticated_user = True
    form_class = SignInForm

    def form_invalid(self, form: Any) -> HttpResponse:
        response = super().form_invalid(form)
        if form.has_error(NON_FIELD_ERRORS, TOO_MANY):
            response.status_code = 429  # RFC 6585, 4
            response.headers["Retry-After"] = str(int(signing_in.WINDOW.total_seconds()))
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        form = kwargs.get("form")
        too_many = form is not None and form.has_error(NON_FIELD_ERRORS, TOO_MANY)
        more = {
            "demo_accounts": demo_accounts(),
            "signed_in": False,
            "wait_minutes": int(signing_in.WINDOW.total_seconds() // 60) if too_many else 0,
        }
        return {**super().get_context_data(**kwargs), **more}


def admin_signin(request: HttpRequest) -> HttpResponse:
    """The admin has no sign-in page of its own: there is one door, with one brake on it."""
    if request.user.is_authenticated and not request.user.is_staff:
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next") or "/admin/")


class SignOut(LogoutView):
    http_method_names = ["post", "options"]


def demo_accounts() -> list[dict[str, str]]:
    """What the demo wrote for people to sign in with; nothing outside of the demo."""
    if not settings.DEMO:
        return []
    try:
        rows = json.loads((settings.STATE_DIR / DEMO_ACCOUNTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    words = ("username", "password", "role")
    return [
        {word: str(row.get(word, "")) for word in words}
        for row in rows
        if isinstance(row, dict) and row.get("password")
    ]
