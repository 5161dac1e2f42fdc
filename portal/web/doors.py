"""What every page shares: who is at the door, the frame around the content, and a plain page for every refusal.

In charge of: signing in first, the actor, methods, statuses of ServiceErrors, what the navigation shows. Not in charge
of: what anyone may do (services.access), or any page's content.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRedirect

from portal.services import inbox, pausing
from portal.services.access import Actor
from portal.services.errors import Conflict, Forbidden, InvalidInput, NotFound, ServiceError

View = Callable[..., HttpResponseBase]

STATUS: dict[type[ServiceError], int] = {InvalidInput: 400, NotFound: 404, Forbidden: 403, Conflict: 409}
TITLES = {
    400: "That can't be taken as it is",
    403: "You may not do that",
    404: "There is nothing here",
    405: "That can't be done here",
    409: "Not any more, or not yet",
    503: "Not right now",
}


def page(*methods: str) -> Callable[[View], View]:
    """A view for signed-in people that is handed (request, acting, …) and may raise ServiceErrors."""
    allowed = [*methods, "HEAD"] if "GET" in methods else list(methods)

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def door(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _to_signin(request)
            acting = Actor(request.user)
            if request.method not in allowed:
                response = refuse(request, acting, 405, "method", f"This address takes {' and '.join(methods)} only.")
                response.headers["Allow"] = ", ".join(allowed)
                return response
            try:
                return view(request, acting, **kwargs)
            except ServiceError as error:
                return refuse(request, acting, status_of(error), error.code, error.message)

        return door

    return decorate


def status_of(error: ServiceError) -> int:
    """The HTTP status that says the same as this error."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 503)


def refuse(request: HttpRequest, acting: Actor, status: int, code: str, message: str) -> HttpResponse:
    """A page that says no, why, and what next."""
    context = {"title": TITLES.get(status, "That did not work"), "message": message, "code": code, "status": status}
    return show(request, acting, "refused", context, status)


def show(
    request: HttpRequest, acting: Actor, template: str, context: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """A page in its frame. What it shows is this person's: kept in no shared cache."""
    frame = {"acting": acting, "waiting_count": inbox.count(acting), "pauses": pausing.pauses(), "signed_in": True}
    response = render(request, f"portal/{template}.html", {**frame, **(context or {})}, status=status)
    response.headers["Cache-Control"] = "private, no-cache"
    return response


def _to_signin(request: HttpRequest) -> HttpResponseBase:
    if request.headers.get("HX-Request"):
        return HttpResponseClientRedirect("/login/")  # a fragment must not be replaced by the whole sign-in page
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")
