"""Every error of the API as RFC 9457: type, title, status, detail, code, errors, instance.

In charge of: which status an error has, and the media type it is sent as. Not in charge of: messages (whoever
raises), or bodies that are refused before any view (portal.middleware).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from portal.domain.schema import Problem
from portal.services.errors import Conflict, Forbidden, InvalidInput, NotFound, ServiceError, Unavailable
from portal.services.feed import CursorExpired

logger = logging.getLogger("portal.api")

PROBLEM, PLAIN = "application/problem+json", "application/json"
RETRY_AFTER = "30"  # seconds; what hinders is usually mended by the next sweep

_OF_SERVICES: tuple[tuple[type[ServiceError], int], ...] = (
    (InvalidInput, 400),
    (NotFound, 404),
    (Forbidden, 403),
    (Conflict, 409),
    (CursorExpired, 410),
    (Unavailable, 503),
    (ServiceError, 503),  # the portal itself is not set up: no bundle, an offering that doesn't load
)
_CODES = {
    exceptions.NotAuthenticated: "not-authenticated",
    exceptions.AuthenticationFailed: "invalid-token",
    exceptions.MethodNotAllowed: "method-not-allowed",
    exceptions.NotAcceptable: "not-acceptable",
    exceptions.UnsupportedMediaType: "unsupported-media-type",
    exceptions.PermissionDenied: "forbidden",
    exceptions.NotFound: "not-found",
}


class BadRequest(Exception):
    """A request that can't be read: `status` 400 unless something more exact is known."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status


class ProblemRenderer(JSONRenderer):
    """JSON under the media type of a problem."""

    media_type = PROBLEM


def handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler: nothing leaves the API but a problem, and never a stack trace."""
    status, code, detail, problems = _sort(error)
    headers = {}
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if isinstance(error, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = RETRY_AFTER
    request = context["request"]
    response = Response(problem(request, status, code, detail, problems), status=status, headers=headers)
    # The view's own choice failed or never happened (406); an error is always sent as JSON.
    kind = media_type(request)
    request.accepted_renderer = ProblemRenderer() if kind == PROBLEM else JSONRenderer()
    request.accepted_media_type = kind
    response.content_type = kind
    return response


def problem(
    request: HttpRequest | Any, status: int, code: str, detail: str, problems: list[Problem] | None = None
) -> dict[str, Any]:
    """The body of a problem. `errors` names each wrong field by JSON pointer into the body, or /query/<parameter>."""
    body: dict[str, Any] = {
        "type": f"{settings.PUBLIC_URL}/problems/{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "instance": request.path,
    }
    if problems:
        body["errors"] = [{"pointer": p.pointer, "code": p.code, "message": p.message} for p in problems]
    return body


def media_type(request: HttpRequest | Any) -> str:
    """application/problem+json, or application/json for those whose Accept has only that."""
    accept = request.META.get("HTTP_ACCEPT", "*/*")
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return PLAIN if PLAIN in kinds and not kinds & {PROBLEM, "application/*", "*/*"} else PROBLEM


def _sort(error: Exception) -> tuple[int, str, str, list[Problem] | None]:
    """(status, code, detail, problems) of anything that a view may raise."""
    if isinstance(error, ServiceError):
        status = next(status for kind, status in _OF_SERVICES if isinstance(error, kind))
        return status, error.code, error.message, error.problems if isinstance(error, InvalidInput) else None
    if isinstance(error, BadRequest):
        return error.status, error.code, error.message, None
    if isinstance(error, exceptions.APIException):
        code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), "bad-request")
        return error.status_code, code, str(error.detail), None
    if isinstance(error, Http404):
        return 404, "not-found", "There is nothing here that you can see.", None
    if isinstance(error, PermissionDenied):
        return 403, "forbidden", str(error) or "This is not allowed.", None
    if isinstance(error, SuspiciousOperation):
        return 400, "bad-request", "This request can't be read.", None
    if isinstance(error, OperationalError):
        logger.error("the database did not answer", exc_info=error)
        return 503, "database-unavailable", "The database does not answer in time. Try again.", None
    logger.error("unexpected error", exc_info=error)
    return 500, "internal-error", "Something is wrong in the portal; it has been logged.", None
