"""A form from a schema: which field of a page asks for which place of a spec, and what it shows at first.

In charge of: the tree of fields for any structural schema of reasonable shape, with labels, hints, defaults. A shape
that no field fits (maps, lists of objects, free form, too deep) becomes a text area for YAML. Not in charge of: what
was typed (posted), errors (forms), or whether a value is valid (domain.schema).

An optional object without a default of its own starts empty, so that leaving it alone leaves it out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from portal.domain import strict_yaml
from portal.domain.json_limits import pointer as join
from portal.domain.structural import EMBEDDED, INT_OR_STRING, PRESERVE

Widget = Literal["text", "number", "area", "checkbox", "choice", "checks", "lines", "yaml", "group"]
Schema = Mapping[str, Any]

MAX_DEPTH = 4  # of fieldsets in fieldsets; what is deeper is YAML
SHORT_TEXT = 100  # characters: up to so many, two inputs stand side by side
LONG_TEXT = 300  # a text that may be longer than this gets a text area


class Missing:
    """The value of a field that is left alone."""


MISSING: Final = Missing()


@dataclass
class Choice:
    """One option of a choice or one box of several. `value` is what the form sends."""

    value: str
    label: str


@dataclass
class Field:
    """One input, or a group of them. `value` is text as typed (a list for `checks`, a bool for `checkbox`)."""

    pointer: str  # into the body of the submission, and the input's name
    widget: Widget
    label: str
    help: str = ""
    hint: str = ""
    required: bool = False
    schema: Schema = field(default_factory=dict)
    default: Any = MISSING  # what it means when nothing is sent
    value: Any = ""
    choices: list[Choice] = field(default_factory=list)
    suggestions: list[Choice] = field(default_factory=list)
    children: list[Field] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    id: str = ""
    autocomplete: str = "off"

    @property
    def input_type(self) -> str:
        """`number` only while it can show what was typed: browsers drop any other text."""
        return "number" if self.widget == "number" and _shows_as_number(self.value) else "text"

    @property
    def long(self) -> bool:
        """It takes the whole width; short ones stand side by side."""
        if self.widget == "text":
            return int(self.schema.get("maxLength") or LONG_TEXT) > SHORT_TEXT
        return self.widget not in ("number", "choice", "checkbox")

    @property
    def step(self) -> str:
        return str(self.schema.get("multipleOf") or (1 if self.schema.get("type") == "integer" else "any"))

    @property
    def described_by(self) -> str:
        """Ids of what explains it, errors first."""
        parts = [("error", self.errors), ("help", self.help), ("hint", self.hint)]
        return " ".join(f"{self.id}-{name}" for name, there in parts if there)

    def walk(self) -> Iterator[Field]:
        yield self
        for child in self.children:
            yield from child.walk()


def spec_fields(schema: Schema, given: Any = MISSING) -> Field:
    """The group of fields for a spec. `given`: a spec to start from instead of the defaults."""
    root = _field(schema, "/spec", "Specification", required=True, given=given, prefill=given is MISSING, depth=0)
    root.label = str(schema.get("title") or "Specification")
    return root


def give_ids(fields: list[Field]) -> None:
    """An id of its own for every field, readable and stable."""
    taken: set[str] = set()
    for each in (found for top in fields for found in top.walk()):
        stem = "f" + re.sub(r"[^A-Za-z0-9_-]", "-", each.pointer)
        name, number = stem, 2
        while name in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name)
        each.id = name


def _field(node: Schema, at: str, name: str, *, required: bool, given: Any, prefill: bool, depth: int) -> Field:
    default = node.get("default", MISSING)
    shown = given if given is not MISSING else default if prefill else MISSING
    widget = _widget(node, required or default is not MISSING, depth)
    made = Field(
        pointer=at,
        widget=widget,
        label=str(node.get("title") or _spaced(name)),
        help=" ".join(str(node.get("description") or "").split()),
        hint=_hint(node, widget, default),
        required=required,
        schema=node,
        default=default,
        choices=_choices(node, widget, required),
    )
    if widget == "group":
        made.children = _children(node, made, shown, prefill, depth)
    else:
        made.value = as_text(shown, widget)
    return made


def _children(node: Schema, parent: Field, shown: Any, prefill: bool, depth: int) -> list[Field]:
    values = shown if isinstance(shown, Mapping) else {}
    mandatory = node.get("required") or []
    inner_prefill = prefill and (parent.required or parent.default is not MISSING)
    return [
        _field(
            sub,
            parent.pointer + join(name),
            name,
            required=name in mandatory,
            given=values.get(name, MISSING),
            prefill=inner_prefill,
            depth=depth + 1,
        )
        for name, sub in node["properties"].items()
    ]


def _widget(node: Schema, settled: bool, depth: int) -> Widget:
    """`settled`: it always has a value, so that a box which isn't ticked means false."""
    kind = node.get("type")
    if node.get(INT_OR_STRING):
        return "text"
    if "enum" in node:
        return "choice"
    if kind == "boolean":
        return "checkbox" if settled else "choice"
    if kind == "object":
        free = node.get(PRESERVE) or node.get(EMBEDDED) or not node.get("properties")
        return "yaml" if free or depth >= MAX_DEPTH else "group"
    if kind == "array":
        items = node.get("items") or {}
        if items.get("type") == "string":
            return "checks" if "enum" in items else "lines"
        return "lines" if items.get("type") in ("integer", "number") else "yaml"
    if kind == "string":
        return "area" if int(node.get("maxLength") or 0) > LONG_TEXT else "text"
    return "number" if kind in ("integer", "number") else "yaml"


def _choices(node: Schema, widget: Widget, required: bool) -> list[Choice]:
    if widget == "checks":
        return [Choice(option_text(option), option_text(option)) for option in node["items"]["enum"]]
    if widget != "choice":
        return []
    first = Choice("", "Choose…" if required else "Not set")
    if "enum" not in node:
        return [first, Choice("true", "Yes"), Choice("false", "No")]
    return [first, *[Choice(option_text(option), option_text(option)) for option in node["enum"]]]


def option_text(option: Any) -> str:
    """An enum's value as the form sends it."""
    return option if isinstance(option, str) else json.dumps(option)


def as_text(value: Any, widget: Widget) -> Any:
    """A value of a spec as its field shows it."""
    if widget == "checkbox":
        return value is True
    if widget == "checks":
        return [option_text(item) for item in value] if isinstance(value, list) else []
    if value is MISSING or value is None:
        return ""
    if widget == "yaml":
        return strict_yaml.dump(value)
    if widget == "lines" and isinstance(value, list):
        return "\n".join(option_text(item) for item in value)
    return option_text(value)


def _hint(node: Schema, widget: Widget, default: Any) -> str:
    """What fits, in a few words."""
    low, high = node.get("minimum"), node.get("maximum")
    parts = []
    if low is not None and high is not None:
        parts.append(f"{low} to {high}")
    elif low is not None:
        parts.append(f"at least {low}")
    elif high is not None:
        parts.append(f"at most {high}")
    if widget == "lines":
        parts.append("one per line")
    if widget == "yaml":
        parts.append("as YAML")
    if default is not MISSING and widget not in ("group", "yaml", "checkbox") and default not in ([], ""):
        parts.append(f"default {as_text(default, 'text')}")
    text = ", ".join(parts)
    return text[:1].upper() + text[1:]


def _spaced(name: str) -> str:
    """`contextLength` as `Context length`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name).strip()
    return words[:1].upper() + words[1:].lower() if words else name


def _shows_as_number(value: Any) -> bool:
    return value == "" or re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", str(value), re.ASCII) is not None
