"""The words that every endpoint's description is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema_field
from rest_framework import serializers

from portal.domain.draft import SLUG

Shape = type[serializers.Serializer[Any]]
ERROR_TYPES = ("application/problem+json", "application/json")
EVERYWHERE = (400, 401, 403, 406, 503)
URL = "https://portal.example.org/api/v1"
OF_EVERY = {
    400: "Something in the request is wrong: `errors` names each field and what it may be.",
    401: "No token, or one that is not valid (any more).",
    403: "It is seen, but this person or this token may not do it.",
    404: "It is not there, or not for this person to see.",
    406: "Only JSON is answered.",
    409: "It was right, but not now: the state has moved on.",
    410: "Too old: begin anew.",
    413: "The body is larger than REQUEST_BODY_LIMIT.",
    415: "The body is not application/json.",
    503: "A complete answer can't be given now. Retry-After says when to ask again.",
}


def shape(_name: str, **fields: serializers.Field[Any, Any, Any, Any]) -> Shape:
    """A component of the OpenAPI document. A function: members as `instance` or `data` are names of attributes."""
    return type(_name, (serializers.Serializer,), dict(fields))


def text(
    *, null: bool = False, choices: Sequence[str] = (), help_text: str = ""
) -> serializers.Field[Any, Any, Any, Any]:
    if choices:
        return serializers.ChoiceField(choices=list(choices), allow_null=null, help_text=help_text)
    return serializers.CharField(allow_null=null, allow_blank=True, help_text=help_text)


def slug(*, null: bool = False) -> serializers.Field[Any, Any, Any, Any]:
    return serializers.RegexField(SLUG, allow_null=null)


def number(*, null: bool = False, help_text: str = "") -> serializers.Field[Any, Any, Any, Any]:
    return serializers.IntegerField(allow_null=null, help_text=help_text)


def boolean(*, null: bool = False, help_text: str = "") -> serializers.Field[Any, Any, Any, Any]:
    return serializers.BooleanField(allow_null=null, help_text=help_text)


def amount(*, null: bool = False, help_text: str = "") -> serializers.Field[Any, Any, Any, Any]:
    """Money: a string and only a string."""
    return serializers.RegexField(r"^-?[0-9]+(\.[0-9]+)?$", allow_null=null, help_text=help_text)


def time(*, null: bool = False, help_text: str = "") -> serializers.Field[Any, Any, Any, Any]:
    return serializers.DateTimeField(allow_null=null, help_text=help_text)


def day(*, null: bool = False) -> serializers.Field[Any, Any, Any, Any]:
    return serializers.DateField(allow_null=null)


def uuid(*, null: bool = False, help_text: str = "") -> serializers.Field[Any, Any, Any, Any]:
    return serializers.UUIDField(allow_null=null, help_text=help_text)


def url(*, null: bool = False) -> serializers.Field[Any, Any, Any, Any]:
    return serializers.URLField(allow_null=null)


@extend_schema_field({"type": "object", "additionalProperties": True})
class AnyObject(serializers.JSONField):
    """An object whose members an offering defines."""


@extend_schema_field({"type": ["object", "null"], "additionalProperties": True})
class AnyObjectOrNull(serializers.JSONField):
    """The same, or null."""


@extend_schema_field({})
class AnyValue(serializers.JSONField):
    """Any JSON value."""


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class Labels(serializers.JSONField):
    """Texts by name."""


@extend_schema_field({"type": "object", "additionalProperties": {"type": ["string", "integer"]}})
class Endpoint(serializers.JSONField):
    """The values that an offering names as its endpoint."""


def page_of(item: Shape) -> Shape:
    """The envelope of a list."""
    return shape(
        f"{item.__name__}Page",
        items=item(many=True),
        next=url(null=True),
        previous=url(null=True),
    )


FieldProblem = shape(
    "FieldProblem",
    pointer=text(help_text="JSON pointer into the body, or /query/<parameter>; empty: the whole body"),
    code=text(help_text="Stable, to grep for"),
    message=text(help_text="What would have passed"),
)
Problem = shape(
    "Problem",
    type=url(),
    title=text(),
    status=number(),
    detail=text(),
    code=text(help_text="Stable, to grep for"),
    errors=FieldProblem(many=True, required=False),
    instance=text(help_text="The path that was asked"),
)
Reason = shape(
    "Reason",
    code=text(help_text="Stable, to grep for"),
    effect=text(choices=["deny", "approve", "note"]),
    message=text(help_text="What would have passed"),
    field=text(null=True, help_text="JSON pointer of the field that it is about"),
)


def problem_example(status: int, code: str, detail: str, **more: Any) -> OpenApiExample:
    """An example of an error."""
    titles = {400: "Bad Request", 404: "Not Found", 409: "Conflict", 403: "Forbidden", 410: "Gone"}
    value = {
        "type": f"https://portal.example.org/problems/{code}",
        "title": titles[status],
        "status": status,
        "detail": detail,
        "code": code,
        "instance": "/api/v1/requests/",
        **more,
    }
    return OpenApiExample(
        code, value=value, response_only=True, status_codes=[str(status)], media_type="application/problem+json"
    )


def example(name: str, value: Any, status: int = 200) -> OpenApiExample:
    """An example of an answer."""
    return OpenApiExample(name, value=value, response_only=True, status_codes=[str(status)])


def asked(name: str, value: Any) -> OpenApiExample:
    """An example of a body."""
    return OpenApiExample(name, value=value, request_only=True)


def page_example(name: str, item: Any, path: str) -> OpenApiExample:
    """An example of a list."""
    onward = f"{URL}/{path}/?limit=1&cursor=WyJuIl0"
    return OpenApiExample(
        name, value={"items": [item], "next": onward, "previous": None}, response_only=True, status_codes=["200"]
    )


def operation(
    operation_id: str,
    summary: str,
    tag: str,
    answer: Shape | dict[str, Any],
    examples: Sequence[OpenApiExample],
    *,
    errors: Sequence[int] = (),
    created: bool = False,
    request: Any = None,
) -> dict[str, Any]:
    """Arguments of `extend_schema`. `answer`: a shape, or JSON Schema. `errors`: beside those of every endpoint."""
    responses: dict[Any, Any] = {200: answer}
    if created:
        responses[201] = answer
    writing = (413, 415) if request is not None else ()
    for status in sorted({*EVERYWHERE, *errors, *writing, 503}):
        responses[(status, *ERROR_TYPES)] = OpenApiResponse(Problem, description=OF_EVERY[status])
    return {
        "operation_id": operation_id,
        "summary": summary,
        "tags": [tag],
        "request": request,
        "responses": responses,
        "examples": list(examples),
    }


NOTHING = OpenApiTypes.NONE
