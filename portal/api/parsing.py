"""Reads a body as JSON, strictly, or says what is wrong with it.

In charge of: size, encoding, form, depth, duplicate keys, numbers and text that no store can hold. Not in charge of:
which members a draft has (domain.draft).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any, NoReturn

from django.conf import settings
from django.http import HttpRequest
from rest_framework.parsers import BaseParser

from portal.api.errors import BadRequest
from portal.domain.json_limits import first_problem, pointer
from portal.domain.schema import Problem
from portal.services.errors import InvalidInput

MAX_COMMENT = 10_000
DRAFT_MEMBER, KEY_HEADER = "idempotencyKey", "Idempotency-Key"


class StrictJson(BaseParser):
    """RFC 8259 and no more: UTF-8, each key once, no NaN or Infinity, integers exact however large."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return parse_json(stream.read())


def parse_json(raw: bytes) -> Any:
    """The value of a JSON text. Raises BadRequest `malformed-json`, InvalidInput for a value that can't be kept."""
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise BadRequest("malformed-json", f"The body is not UTF-8 (byte {error.start}).") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadRequest("malformed-json", f"The body is no JSON: {error.msg} at {place}.") from None
    except RecursionError:
        raise BadRequest("malformed-json", "The body is nested too deep.") from None
    except ValueError:
        # Python refuses to read integers of more than 4,300 digits.
        raise BadRequest("malformed-json", "The body holds a number of too many digits.") from None
    if found := first_problem(value):
        problem = Problem(*found)
        if problem.code == "too-deep":
            raise BadRequest("malformed-json", f"{problem.pointer}: {problem.message}")
        raise InvalidInput([problem])
    return value


def measure(request: HttpRequest) -> None:
    """Give a chunked body its length. Raises BadRequest 413 when it is larger than REQUEST_BODY_LIMIT.

    WSGI has no word for a body without Content-Length: Django takes it for empty. Servers that end the stream
    themselves say so (`wsgi.input_terminated`); from others it can't be read, and 411 tells the client what to do.
    """
    if "chunked" not in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        return
    if not request.META.get("wsgi.input_terminated"):
        raise BadRequest("length-required", "Send a Content-Length: a chunked body can't be read here.", 411)
    limit = settings.REQUEST_BODY_LIMIT
    raw = request.META["wsgi.input"].read(limit + 1)
    if len(raw) > limit:
        raise BadRequest("body-too-large", f"The body has more than {limit} bytes. Send less.", 413)
    request._stream = BytesIO(raw)  # where Django reads a body from
    request.META["CONTENT_LENGTH"] = str(len(raw))


def with_header_key(body: Any, header: str | None) -> Any:
    """The body of a submission with the Idempotency-Key header taken in. Two that differ are refused."""
    if header is None or not isinstance(body, dict):
        return body
    if not 1 <= len(header) <= 200 or not header.isprintable():
        raise InvalidInput([Problem("/header/Idempotency-Key", "bad-format", "1 to 200 printable characters")])
    member = body.get(DRAFT_MEMBER)
    if member is not None and member != header:
        message = f"it is not the same as the header {KEY_HEADER}; send one of them, or both alike"
        raise InvalidInput([Problem(f"/{DRAFT_MEMBER}", "keys-differ", message)])
    return {**body, DRAFT_MEMBER: header}


def vote_body(body: Any) -> tuple[str, int | None]:
    """(comment, the decision that was seen or None) of a vote. Raises InvalidInput."""
    members = object_of(body, {"comment", "decision"})
    comment, decision = members.get("comment", ""), members.get("decision")
    problems = []
    if not isinstance(comment, str):
        problems.append(Problem("/comment", "wrong-type", "a string"))
    elif len(comment) > MAX_COMMENT:
        problems.append(Problem("/comment", "too-long", f"{len(comment)} characters; at most {MAX_COMMENT}"))
    if decision is not None and (not isinstance(decision, int) or isinstance(decision, bool)):
        problems.append(Problem("/decision", "wrong-type", "an integer: the id of the decision that you saw"))
    if problems:
        raise InvalidInput(problems)
    return comment, decision


def object_of(body: Any, members: set[str]) -> dict[str, Any]:
    """The body as an object that has none but these members. Raises InvalidInput."""
    if not isinstance(body, dict):
        raise InvalidInput([Problem("", "wrong-type", "send a JSON object")])
    known = ", ".join(sorted(members)) or "none"
    if unknown := sorted(set(body) - members):
        raise InvalidInput(
            [Problem(pointer(name), "unknown-field", f"known members: {known}") for name in unknown[:50]]
        )
    return body


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise BadRequest("malformed-json", f"The key {json.dumps(twice)[:100]} is there twice in one object.")
    return made


def _no_constant(name: str) -> NoReturn:
    raise BadRequest("malformed-json", f"{name} is no JSON number.")
