"""What was typed into fields, and the value that it makes: texts become the types that the schema asks for.

In charge of: reading a posted form into a tree of fields, and making a spec of it. Not in charge of: whether the spec
is valid beyond its types (domain.schema), or showing it again (templates; every text is kept as it was typed).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.http import QueryDict

from portal.domain import strict_yaml
from portal.domain.json_limits import MAX_DIGITS
from portal.domain.schema import Problem
from portal.domain.structural import INT_OR_STRING
from portal.web.fields import MISSING, Choice, Field, as_text, option_text

_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)


def take(fields: list[Field], data: QueryDict) -> list[Problem]:
    """Put what was typed into the fields. Returns a problem for each posted name below /spec that no field has."""
    known = set()
    for each in (found for top in fields for found in top.walk()):
        known.add(each.pointer)
        if each.widget == "checkbox":
            each.value = each.pointer in data
        elif each.widget == "checks":
            each.value = data.getlist(each.pointer)
            offered = {choice.value for choice in each.choices}
            each.choices += [Choice(text, text) for text in dict.fromkeys(each.value) if text not in offered]
        elif each.widget != "group":
            each.value = data.get(each.pointer, "").replace("\r\n", "\n")
    return [
        Problem(name[:200], "unknown-field", "this form has no such field; load the page anew")
        for name in data
        if name.startswith("/") and name not in known
    ]


def make(top: Field) -> tuple[Any, list[Problem]]:
    """The value of a field or group (MISSING when it is left out), and what is wrong with what was typed."""
    if top.widget == "group":
        return _group(top)
    if top.widget == "checkbox":
        return bool(top.value), []
    if top.widget == "checks":
        return _checks(top)
    if top.value.strip() == "":
        return _empty(top)
    try:
        return _READERS[top.widget](top), []
    except ValueError as error:
        return MISSING, [Problem(top.pointer, "wrong-type", str(error))]


def _group(group: Field) -> tuple[Any, list[Problem]]:
    made: dict[str, Any] = {}
    problems: list[Problem] = []
    for child in group.children:
        value, wrong = make(child)
        problems += wrong
        if value is not MISSING:
            name = child.pointer[len(group.pointer) + 1 :].replace("~1", "/").replace("~0", "~")
            made[name] = value
    if not (group.required or group.default is not MISSING) and _untouched(group):
        return MISSING, []
    return made, problems


def _untouched(group: Field) -> bool:
    """Nothing was typed. A box that isn't ticked counts as untouched: an optional object is left out as a whole."""
    return all(not each.value for each in group.walk() if each.widget != "group")


def _checks(field: Field) -> tuple[Any, list[Problem]]:
    if not field.value and not field.required and field.default is MISSING:
        return MISSING, []
    options = {option_text(option): option for option in (field.schema.get("items") or {}).get("enum", [])}
    return [options.get(text, text) for text in field.value], []


def _empty(field: Field) -> tuple[Any, list[Problem]]:
    if field.widget == "lines" and (field.required or field.default is not MISSING):
        return [], []
    if field.default is not MISSING and field.widget != "yaml":
        usual = as_text(field.default, "text")
        message = f"is empty; write the default, {usual}, if you want that"
        return MISSING, [Problem(field.pointer, "missing-field", message)]
    if field.required:
        verb = "choose one" if field.widget == "choice" else "fill it in"
        return MISSING, [Problem(field.pointer, "missing-field", f"is required; {verb}")]
    return MISSING, []


def _text(field: Field) -> Any:
    text = str(field.value)
    if field.schema.get(INT_OR_STRING) and _INTEGER.fullmatch(text.strip()):
        return integer(text)
    return text if field.widget == "area" else text.strip()


def integer(text: str) -> int:
    """A whole number as people type it. Raises ValueError with a sentence."""
    text = text.strip()
    if not _INTEGER.fullmatch(text) or len(text) > MAX_DIGITS:
        raise ValueError(f"must be a whole number, in digits only; got “{text[:60]}”")
    return int(text)


def _number(text: str) -> int | float:
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return integer(text)
    if not _NUMBER.fullmatch(text) or float(text) in (float("inf"), float("-inf")):
        raise ValueError(f"must be a number such as 0.5; got “{text[:60]}”")
    return float(text)


def _scalar(kind: Any, text: str) -> Any:
    if kind == "integer":
        return integer(text)
    return _number(text) if kind == "number" else text


def _lines(field: Field) -> list[Any]:
    kind = (field.schema.get("items") or {}).get("type")
    return [_scalar(kind, line.strip()) for line in field.value.split("\n") if line.strip()]


def _choice(field: Field) -> Any:
    options = field.schema.get("enum", [True, False] if field.schema.get("type") == "boolean" else [])
    return {option_text(option): option for option in options}.get(field.value, field.value)


def _yaml(field: Field) -> Any:
    try:
        return strict_yaml.parse(field.value, "this field")
    except strict_yaml.StrictYamlError as error:
        place = f" (line {error.line}, column {error.column})" if error.line else ""
        raise ValueError(f"is no YAML that can be taken{place}: {error.reason}") from None


_READERS: dict[str, Callable[[Field], Any]] = {
    "text": _text,
    "area": _text,
    "number": lambda field: _scalar(field.schema.get("type"), field.value),
    "choice": _choice,
    "lines": _lines,
    "yaml": _yaml,
}
