"""Form pages from a spec's schema (react-jsonschema-form, as Backstage's scaffolder shows them).

In charge of: titles, help, enums, bounds, defaults, order, fields whose choices depend on another's or live in the
portal. Not in charge of: judging a value; the portal and the API server do, by the same schema.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.domain import strict_yaml
from portal.domain.draft import MAX_REASON
from portal.domain.offerings import Offering
from portal.domain.schema import validator_for

FORMS = "forms"  # the folder of hints, a file for each offering
KEPT = (
    "title",
    "description",
    "type",
    "enum",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    "required",
)
OWN = ("team", "environment", "name", "reason", "instance")  # parameters of ours; a spec's of that name gets a prefix
_SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "choices": {
            "type": "array",
            "default": [],
            "maxItems": 50,
            "items": {
                "type": "object",
                "required": ["field", "by", "values"],
                "properties": {
                    "field": {"type": "string", "minLength": 1},
                    "by": {"type": "string", "minLength": 1},
                    "values": {
                        "type": "object",
                        "additionalProperties": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                    },
                },
            },
        },
        "options": {
            "type": "object",
            "default": {},
            "additionalProperties": {"type": "string", "enum": ["accelerator-classes", "regions"]},
        },
        "hidden": {"type": "array", "default": [], "items": {"type": "string"}},
    },
}


class HintsError(ValueError):
    """A file of hints is wrong; the message names file, place and reason."""


@dataclass(frozen=True)
class Hints:
    """What a schema can't say of its form.

    `choices`: (field, by, value of by -> values that field may have then). `options`: field, or field/inner -> which
    list of the portal its choices come from. `hidden`: fields that are no part of the form.
    """

    choices: tuple[tuple[str, str, Mapping[str, tuple[str, ...]]], ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SpecPage:
    """A page, and what a step makes of its parameters: member of the spec -> expression."""

    page: dict[str, Any]
    values: dict[str, str]


def parse_hints(text: str, source: str, offering: Offering) -> Hints:
    """The hints in a file. Raises HintsError where they name what the schema doesn't have."""
    try:
        file = strict_yaml.parse(text, source)
    except strict_yaml.StrictYamlError as error:
        raise HintsError(str(error)) from None
    validator = validator_for(_SHAPE)
    problems = [f"{problem.pointer}: {problem.message}" for problem in validator.validate(file)]
    if not problems:
        file = validator.with_defaults(file)
        problems = list(_unknown(file, offering.spec_schema))
    if problems:
        raise HintsError("\n".join(f"{source}: {problem}" for problem in problems))
    choices = tuple(
        (row["field"], row["by"], {key: tuple(values) for key, values in row["values"].items()})
        for row in file["choices"]
    )
    return Hints(choices, file["options"], frozenset(file["hidden"]))


def _unknown(file: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    fields = schema["properties"]
    found = []
    for place, row in enumerate(file["choices"]):
        for key in ("field", "by"):
            if "enum" not in fields.get(row[key], {}):
                found.append(f"/choices/{place}/{key}: the spec has no field {row[key]} with an enum")
        if not found:
            allowed = set(fields[row["field"]]["enum"])
            if set(row["values"]) != set(fields[row["by"]]["enum"]):
                found.append(f"/choices/{place}/values: it needs one entry for each value of {row['by']}")
            elif bad := sorted({v for values in row["values"].values() for v in values} - allowed):
                found.append(f"/choices/{place}/values: {row['field']} has no value {', '.join(bad)}")
    for path in file["options"]:
        node: Any = schema
        for step in path.split("/"):
            node = (node or {}).get("properties", {}).get(step)
        if node is None:
            found.append(f"/options: the spec has no field {path}")
    return found + [f"/hidden: the spec has no field {name}" for name in file["hidden"] if name not in fields]


def spec_page(offering: Offering, hints: Hints) -> SpecPage:
    """All fields of a spec on one page, those that depend on another after it."""
    schema = offering.spec_schema
    hidden = {*hints.hidden, *([offering.suspend] if offering.suspend else []), "crossplane"}
    names = [name for name in schema["properties"] if name not in hidden]
    called = {name: f"spec_{name}" if name in OWN else name for name in names}
    properties = {called[name]: _field(schema["properties"][name], hints, name) for name in names}
    page: dict[str, Any] = {
        "title": offering.title,
        "required": [called[name] for name in schema.get("required", []) if name in called],
        "properties": properties,
        "ui:order": ["*"],
    }
    dependencies: dict[str, Any] = {}
    for name, by, values in hints.choices:
        whole = properties.pop(name)
        branches: list[dict[str, Any]] = [
            {"properties": {by: {"enum": [key]}, name: {**whole, "enum": list(allowed), **_default(whole, allowed)}}}
            for key, allowed in values.items()
        ]
        for branch in branches:
            if name in page["required"]:
                branch["required"] = [name]
        page["required"] = [each for each in page["required"] if each != name]
        dependencies[by] = {"oneOf": branches}
        page["ui:order"] = [*_until(properties, by), name, "*"]
    if dependencies:
        page["dependencies"] = dependencies
    return SpecPage(page, {name: f"${{{{ parameters.{called[name]} }}}}" for name in names})


def _default(field: Mapping[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
    return {"default": field["default"] if field.get("default") in allowed else allowed[0]}


def _until(properties: Mapping[str, Any], last: str) -> list[str]:
    names = list(properties)
    return names[: names.index(last) + 1]


def _field(node: Mapping[str, Any], hints: Hints, path: str) -> dict[str, Any]:
    made: dict[str, Any] = {key: copy.deepcopy(node[key]) for key in KEPT if key in node}
    if what := hints.options.get(path):
        return _chosen(made, what)
    if "properties" in node:
        made["properties"] = {key: _field(each, hints, f"{path}/{key}") for key, each in node["properties"].items()}
        made["ui:order"] = [*made["properties"]]
    if "items" in node:
        made["items"] = _field(node["items"], hints, f"{path}/items")
        if node.get("x-kubernetes-list-type") == "set":
            made["uniqueItems"] = True
    return made


def _chosen(field: dict[str, Any], what: str) -> dict[str, Any]:
    """A field whose choices the portal has (Roadie's SelectFieldFromApi)."""
    several = field.get("type") == "array"
    return {
        **field,
        **({"items": {"type": "string"}, "uniqueItems": True} if several else {}),
        "ui:field": "SelectFieldFromApi",
        "ui:options": _options(what, field),
    }


def _options(what: str, field: Mapping[str, Any], query: Mapping[str, str] | None = None) -> dict[str, Any]:
    """`title` and `description` once more: the field shows those of its options."""
    return {
        "title": field.get("title", ""),
        "description": field.get("description", ""),
        "path": f"proxy/portal/options/{what}/",
        **({"params": dict(query)} if query else {}),
        "arraySelector": "options",
        "valueSelector": "value",
        "labelSelector": "label",
    }


def _select(title: str, description: str, what: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
    field = {"type": "string", "title": title, "description": description}
    return {**field, "ui:field": "SelectFieldFromApi", "ui:options": _options(what, field, query)}


_REASON = {
    "type": "string",
    "title": "Reason",
    "description": "What it is for. Those who approve it read this.",
    "maxLength": MAX_REASON,
    "ui:widget": "textarea",
}


def where_page(offering: Offering) -> dict[str, Any]:
    """Team, environment, name and reason of something new."""
    return {
        "title": "Whose, where and why",
        "required": ["team", "environment", "name"],
        "properties": {
            "team": {
                "type": "string",
                "title": "Team",
                "description": "Who owns it, and whose quota and budget it takes.",
                "ui:field": "OwnerPicker",
                "ui:options": {"catalogFilter": {"kind": "Group"}},
            },
            "environment": _select("Environment", "Where it runs, and under which rules.", "environments"),
            "name": {
                "type": "string",
                "title": "Name",
                "description": "Small letters, digits and '-'; it begins with a letter. It can't be changed later.",
                "pattern": "^[a-z]([a-z0-9-]*[a-z0-9])?$",
                "maxLength": offering.naming.max_length,
            },
            "reason": _REASON,
        },
        "ui:order": ["team", "environment", "name", "reason"],
    }


def which_page(offering: str) -> dict[str, Any]:
    """Which instance; a link from its entity's page has filled this in."""
    query = {"offering": offering} if offering else None
    return {
        "title": "Which",
        "required": ["instance"],
        "properties": {"instance": _select("Instance", "What your teams have.", "instances", query), "reason": _REASON},
        "ui:order": ["instance", "reason"],
    }


def vote_page() -> dict[str, Any]:
    return {
        "title": "Your vote",
        "required": ["request", "answer"],
        "properties": {
            "request": _select("Request", "Those that wait for you.", "requests"),
            "answer": {
                "type": "string",
                "title": "Answer",
                "enum": ["approve", "reject"],
                "enumNames": ["Approve", "Reject"],
                "ui:widget": "radio",
            },
            "comment": {
                "type": "string",
                "title": "Comment",
                "description": "The requester reads it.",
                "maxLength": 10_000,
                "ui:widget": "textarea",
            },
        },
        "ui:order": ["request", "answer", "comment"],
    }
