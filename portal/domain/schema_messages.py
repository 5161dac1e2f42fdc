"""What a person reads when a value does not fit its schema.

In charge of: a stable code and a sentence that names value, limit and way out, for every keyword of JSON Schema that
structural schemas use. Not in charge of: finding the problems (schema).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema_rs
import msgspec

from portal.domain.json_limits import pointer


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with an input: where (JSON pointer), a stable kebab-case code, and a sentence."""

    pointer: str
    code: str
    message: str


def shown(value: Any, limit: int = 80) -> str:
    """A value as JSON, cut at `limit` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def describe(error: jsonschema_rs.ValidationError, schema: Mapping[str, Any]) -> Iterator[Problem]:
    """The Problems of one validation error. `schema` is the one that holds the failed keyword."""
    steps = list(error.instance_path)
    parts = error.kind.as_dict()
    name, value = error.kind.name, error.instance
    if name == "additionalProperties":
        known = list(schema.get("properties") or {})
        for unknown in parts["unexpected"]:
            yield Problem(pointer(*steps, unknown), "unknown-field", _unknown(unknown, known))
    elif name == "required":
        missing = parts["property"]
        wanted = _wanted((schema.get("properties") or {}).get(missing, {}))
        yield Problem(pointer(*steps, missing), "missing-field", f"'{missing}' is required; add it{wanted}")
    else:
        code, say = _SENTENCES.get(name, ("invalid", lambda value, parts, schema: str(error.message)[:300]))
        yield Problem(pointer(*steps), code, say(value, parts, schema))


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    there = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return f"unknown field {shown(name)}; {hint}" + (f"there are: {there}" if known else "no field is accepted here")


def _wanted(schema: Mapping[str, Any]) -> str:
    """What a field takes, as an addition to a sentence; empty when nothing is known."""
    if "enum" in schema:
        return f", one of: {_options(schema['enum'])}"
    kind = schema.get("type")
    if kind in ("integer", "number") and _range(schema):
        return f", {_ARTICLES[kind]} {_range(schema)}"
    return f", {_ARTICLES[kind]}" if isinstance(kind, str) and kind in _ARTICLES else ""


_ARTICLES = {
    "integer": "an integer",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def _options(options: list[Any]) -> str:
    texts = [option if isinstance(option, str) else shown(option) for option in options]
    return ", ".join(texts[:30]) + (", …" if len(texts) > 30 else "")


def _range(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum") is True, schema.get("exclusiveMaximum") is True
    if isinstance(low, int) and low <= -(2**31):
        low = None  # the bounds of the machine's integers say nothing to a person
    if isinstance(high, int) and high >= 2**31 - 1:
        high = None
    if low is not None and high is not None and not above and not below:
        return f"from {low} to {high}"
    parts = [f"{'above' if above else 'at least'} {low}"] if low is not None else []
    parts += [f"{'below' if below else 'at most'} {high}"] if high is not None else []
    return " and ".join(parts)


def _type(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else list(types)
    wanted = " or ".join(_ARTICLES.get(kind, kind) for kind in types) or "another type"
    hint = ""
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        hint = f"; write {int(value)}" if abs(value) < 2**53 else "; write it without a fraction or an exponent"
    elif isinstance(value, str) and {"integer", "number", "boolean"} & set(types):
        hint = "; write it without quotes"
    elif value is None:
        hint = "; leave the field out instead"
    elif "string" in types and isinstance(value, int | float):
        hint = "; write it in quotes"
    return f"must be {wanted}{_space(_range(schema))}, got {shown(value)}{hint}"


def _space(text: str) -> str:
    return f" {text}" if text else ""


def _bound(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
    span = _range(schema)
    return f"{shown(value)} is out of range; use a value {span}" if span else f"{shown(value)} is past {parts['limit']}"


def _enum(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
    options = list(schema.get("enum", ()))
    texts = [option for option in options if isinstance(option, str)]
    close = difflib.get_close_matches(value, texts, n=1) if isinstance(value, str) and len(value) < 200 else []
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"{shown(value)} is not one of: {_options(options)}{hint}"


def _pattern(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
    about = str(schema.get("description") or "").strip()
    return f"{shown(value)} does not match {schema.get('pattern')}" + (f". {about[:200]}" if about else "")


def _length(word: str, limit: str) -> Callable[[Any, dict[str, Any], Mapping[str, Any]], str]:
    def say(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
        number = parts["limit"]
        return f"has {len(value)} {word}, {limit} {number} {'is' if number == 1 else 'are'} accepted"

    return say


def _unique(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
    twice = next((item for index, item in enumerate(value) if item in value[:index]), None)
    return f"{shown(twice)} is there twice; keep one"


def _multiple(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
    return f"{shown(value)} is no multiple of {schema.get('multipleOf')}"


def _format(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
    return f"{shown(value)} is no valid {schema.get('format')}"


def _alternatives(value: Any, parts: dict[str, Any], schema: Mapping[str, Any]) -> str:
    about = str(schema.get("description") or "").strip()
    return f"{shown(value)} fits none, or too many, of the alternatives the schema gives" + (
        f". {about[:200]}" if about else ""
    )


_Say = Callable[[Any, dict[str, Any], Mapping[str, Any]], str]
_SENTENCES: dict[str, tuple[str, _Say]] = {
    "type": ("wrong-type", _type),
    "minimum": ("out-of-range", _bound),
    "maximum": ("out-of-range", _bound),
    "exclusiveMinimum": ("out-of-range", _bound),
    "exclusiveMaximum": ("out-of-range", _bound),
    "multipleOf": ("out-of-range", _multiple),
    "enum": ("not-one-of", _enum),
    "pattern": ("bad-format", _pattern),
    "format": ("bad-format", _format),
    "minLength": ("too-short", _length("characters", "at least")),
    "maxLength": ("too-long", _length("characters", "at most")),
    "minItems": ("too-few", _length("items", "at least")),
    "maxItems": ("too-many", _length("items", "at most")),
    "minProperties": ("too-few", _length("fields", "at least")),
    "maxProperties": ("too-many", _length("fields", "at most")),
    "uniqueItems": ("duplicate", _unique),
    "anyOf": ("no-alternative", _alternatives),
    "oneOf": ("no-alternative", _alternatives),
    "not": ("no-alternative", _alternatives),
}
