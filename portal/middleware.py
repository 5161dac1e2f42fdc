"""In charge of: what holds for every response of every door: the largest request body, queries without U+0000, and the
content security policy.

Not in charge of: the other security headers, which are Django's SecurityMiddleware (portal/settings.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from portal.domain.json_limits import pointer

View = Callable[[HttpRequest], HttpResponseBase]

# Nothing from elsewhere, nothing inline but styles (htmx marks its indicators with them); Swagger UI has data: images.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'self'",
        "img-src 'self' data:",
        "style-src 'self' 'unsafe-inline'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)


def security_headers(get_response: View) -> View:
    """Adds Content-Security-Policy to every response that has none, and keeps answers of the API out of caches."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        if request.path.startswith("/api/"):
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


def body_limit(get_response: View) -> View:
    """Answers 413 (RFC 9457) to a body that says it is larger than REQUEST_BODY_LIMIT, before it is read.

    A body without a length is empty for Django's WSGI handler, so nothing passes unmeasured.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        length = request.headers.get("Content-Length") or "0"
        if length.isascii() and length.isdigit() and int(length[:20]) <= settings.REQUEST_BODY_LIMIT:
            return get_response(request)
        if not (length.isascii() and length.isdigit()):
            return _problem(
                request, 400, "bad-content-length", f"Content-Length is {length[:20]!r}, not a number of bytes."
            )
        limit = settings.REQUEST_BODY_LIMIT
        return _problem(
            request, 413, "body-too-large", f"The body has {length[:20]} bytes; at most {limit} are taken. Send less."
        )

    return middleware


def no_nul(get_response: View) -> View:
    """Answers 400 (RFC 9457) to U+0000 in a query: the database holds no text with it, so nothing is found by it."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        query = unquote_plus(request.META.get("QUERY_STRING", ""))
        if "\x00" not in query:
            return get_response(request)
        first = next(pair for pair in query.split("&") if "\x00" in pair).partition("=")[0][:80].replace("\x00", "")
        problem = {"pointer": pointer("query", first), "code": "bad-text", "message": "holds U+0000; leave it out"}
        detail = f"{problem['pointer']}: {problem['message']}"
        return _problem(request, 400, "invalid-input", detail, errors=[problem])

    return middleware


def _problem(request: HttpRequest, status: int, code: str, detail: str, **more: Any) -> HttpResponse:
    """A page for browsers; an RFC 9457 answer for all others, as application/json to those who accept only that."""
    accepted = request.headers.get("Accept", "*/*")
    if "text/html" in accepted:
        return render(request, f"{status}.html", status=status)
    plain = "application/json" in accepted and "problem+json" not in accepted and "*/*" not in accepted
    titles = {400: "Bad Request", 413: "Content Too Large"}
    body = {
        "type": f"{settings.PUBLIC_URL}/problems/{code}",
        "title": titles[status],
        "status": status,
        "detail": detail,
        "code": code,
        "instance": request.path,
        **more,
    }
    return JsonResponse(body, status=status, content_type="application/json" if plain else "application/problem+json")
