"""Signing in and out. In the demo alone the page lists the accounts that the demo made, with their passwords."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.contrib.auth.views import LoginView, LogoutView

DEMO_ACCOUNTS = "demo-accounts.json"  # in the state folder: the list that portal.demo.accounts makes


class SignIn(LoginView):
    template_name = "portal/signin.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "demo_accounts": demo_accounts(), "signed_in": False}


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
