"""offering.yaml: what the schema can't say of an offering, checked against it.

In charge of: its form, its CEL (typed by the definition's spec schema), that its pointers lead somewhere, and that the
names it derives can fit. Not in charge of: the XRD (definition_file), evaluating anything (offerings).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from portal.domain import structural
from portal.domain.cel import CelError, Environment, Program, Result
from portal.domain.definition_file import Definition
from portal.domain.json_limits import pointer
from portal.domain.offering_problems import FileProblem
from portal.domain.schema import validator_for
from portal.domain.strict_yaml import StrictYamlError, parse

FILE = "offering.yaml"
API_VERSION = "portal.aiplatform.example.org/v1"
MAX_LABEL = 63  # characters of a DNS label (RFC 1035), which names of Services and values of labels have to fit

_TEXT = {"type": "string", "minLength": 1}
_CEL = {"type": "string", "minLength": 1, "description": "A CEL expression over `spec`."}
_SHAPE: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"type": "string", "enum": [API_VERSION]},
        "kind": {"type": "string", "enum": ["Offering"]},
        "metadata": {"type": "object", "required": ["name"], "properties": {"name": _TEXT}},
        "spec": {
            "type": "object",
            "required": ["title", "description", "owner", "composition", "catalog", "naming", "metering", "prices"],
            "properties": {
                "title": {**_TEXT, "maxLength": 100},
                "description": {**_TEXT, "maxLength": 2_000},
                "owner": {**_TEXT, "maxLength": 200},
                "composition": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"},
                "catalog": {
                    "type": "object",
                    "required": ["kind", "type"],
                    "properties": {
                        # kinds that Backstage's catalog accepts by default for what runs, and that have a spec.type
                        "kind": {"type": "string", "enum": ["Component", "Resource"]},
                        "type": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 63},
                        "lifecycle": {**_TEXT, "maxLength": 63, "default": "production"},
                        # what `endpoint.url` speaks; it is shown as an API beside the Component
                        "api": {"type": "string", "enum": ["openai"], "nullable": True},
                    },
                },
                "naming": {
                    "type": "object",
                    "required": ["maxLength"],
                    "properties": {
                        "maxLength": {"type": "integer", "minimum": 1, "maximum": MAX_LABEL},
                        "derived": {"type": "array", "default": [], "maxItems": 20, "items": _TEXT},
                    },
                },
                "endpoint": {
                    "type": "object",
                    "default": {},
                    "maxProperties": 20,
                    "additionalProperties": {"type": "string", "pattern": "^/status/"},
                },
                "metering": {
                    "type": "array",
                    "maxItems": 50,
                    "items": {
                        "type": "object",
                        "required": ["dimension", "amount"],
                        "properties": {"dimension": _CEL, "amount": _CEL},
                    },
                },
                "prices": {
                    "type": "array",
                    "maxItems": 50,
                    "items": {
                        "type": "object",
                        "required": ["sku", "quantity"],
                        "properties": {"sku": _CEL, "quantity": _CEL},
                    },
                },
                "regions": {**_CEL, "nullable": True},
                "suspend": {
                    "type": "object",
                    "nullable": True,
                    "required": ["field"],
                    "properties": {"field": {"type": "string", "pattern": "^/spec/[^/]+$", "maxLength": 200}},
                },
                "deprecation": {
                    "type": "object",
                    "nullable": True,
                    "required": ["message", "after"],
                    "properties": {"message": _TEXT, "after": {"type": "string", "format": "date"}},
                },
            },
        },
    },
}


class CatalogShape(msgspec.Struct, frozen=True):
    """How instances are shown in the Backstage catalog: entity kind, spec.type and spec.lifecycle. `api`: what the
    address `endpoint.url` speaks; None: no API is shown."""

    kind: Literal["Component", "Resource"]
    type: str
    lifecycle: str
    api: Literal["openai"] | None = None


class Naming(msgspec.Struct, frozen=True):
    """Limits of an instance's name: its own length, and names the platform derives, with {name} and {namespace}."""

    max_length: int
    derived: tuple[str, ...]


class Deprecation(msgspec.Struct, frozen=True):
    """No new requests after this day; the message says what to ask for instead."""

    message: str
    after: dt.date


class Governance(msgspec.Struct, frozen=True):
    """What offering.yaml says, its CEL compiled in `environment`, whose one variable is `spec`."""

    title: str
    description: str
    owner: str
    composition: str
    catalog: CatalogShape
    naming: Naming
    endpoint: dict[str, str]
    deprecation: Deprecation | None
    environment: Environment
    metering: tuple[tuple[Program, Program], ...]
    prices: tuple[tuple[Program, Program], ...]
    regions: Program | None
    suspend: str | None  # the field of the spec that stops it and keeps its data


def parse_governance(
    text: str, folder: str, definition: Definition | None
) -> tuple[Governance | None, list[FileProblem]]:
    """What the file says, or None and every problem. Without a definition only the form is checked."""
    try:
        file = parse(text, FILE)
    except StrictYamlError as error:
        return None, [FileProblem(FILE, "" if error.line is None else f"{error.line}:{error.column}", error.reason)]
    validator = validator_for(_SHAPE)
    shape = validator.validate(file)
    if shape:
        return None, [FileProblem(FILE, problem.pointer, problem.message) for problem in shape]
    file = validator.with_defaults(file)
    found = [FileProblem(FILE, path, reason) for path, reason in _form_problems(file, folder)]
    if definition is None:
        return None, found
    found += [FileProblem(FILE, path, reason) for path, reason in _endpoint_problems(file["spec"], definition)]
    found += [FileProblem(FILE, path, reason) for path, reason in _suspend_problems(file["spec"], definition)]
    found += [FileProblem(FILE, path, reason) for path, reason in _api_problems(file["spec"])]
    governance, faults = _compiled(file["spec"], definition)
    return governance, found + [FileProblem(FILE, path, reason) for path, reason in faults]


def _form_problems(file: Mapping[str, Any], folder: str) -> Iterator[tuple[str, str]]:
    name = file["metadata"]["name"]
    if name != folder:
        yield "/metadata/name", f"{name} is not the folder's name, {folder}: they must be alike"
    for index, template in enumerate(file["spec"]["naming"]["derived"]):
        where = pointer("spec", "naming", "derived", index)
        bare = template.replace("{name}", "").replace("{namespace}", "")
        if "{name}" not in template:
            yield where, f"{template!r} has no {{name}} in it, so no name is derived"
        if not re.fullmatch(r"[a-z0-9-]*", bare):
            yield where, f"{template!r} may hold a-z, 0-9, '-', {{name}} and {{namespace}} only"
        elif len(bare) + 2 > MAX_LABEL:
            yield where, f"{template!r} leaves no room for a name in {MAX_LABEL} characters"


def _endpoint_problems(spec: Mapping[str, Any], definition: Definition) -> Iterator[tuple[str, str]]:
    for name, where in spec["endpoint"].items():
        steps = [step.replace("~1", "/").replace("~0", "~") for step in where.split("/")[2:]]
        if structural.find(definition.status_schema, steps) is None:
            yield pointer("spec", "endpoint", name), f"{where} is not in the status schema of {definition.kind}"


def _api_problems(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """An API needs an address, and a Component that provides it: Backstage's Resources provide none."""
    api, where = spec["catalog"].get("api"), pointer("spec", "catalog", "api")
    if not api:
        return
    if spec["catalog"]["kind"] != "Component":
        yield where, f"{api} can't be provided by a {spec['catalog']['kind']}: make it a Component or leave api out"
    if "url" not in spec["endpoint"]:
        yield where, f"{api} has no address: name it as `url` in spec.endpoint"


def _suspend_field(spec: Mapping[str, Any]) -> str | None:
    named = spec.get("suspend")
    return str(named["field"]).removeprefix("/spec/").replace("~1", "/").replace("~0", "~") if named else None


def _suspend_problems(spec: Mapping[str, Any], definition: Definition) -> Iterator[tuple[str, str]]:
    """Requests to suspend and resume set it, and nothing else does: so it is a boolean that says no by default."""
    field = _suspend_field(spec)
    if field is None:
        return
    node = structural.find(definition.spec_schema, [field])
    if node is None or node.get("type") != "boolean" or node.get("default") is not False:
        where = pointer("spec", "suspend", "field")
        yield where, f"/spec/{field} is no boolean with default false in the spec schema of {definition.kind}"


def _compiled(spec: Mapping[str, Any], definition: Definition) -> tuple[Governance | None, list[tuple[str, str]]]:
    try:
        environment = Environment({"spec": definition.spec_schema})
    except CelError as error:
        return None, [("/spec", str(error))]
    faults: list[tuple[str, str]] = []

    def compiled(expression: str, result: Result, *steps: str | int) -> Program | None:
        try:
            return environment.compile(expression, result)
        except CelError as error:
            faults.append((pointer("spec", *steps), str(error)))
            return None

    def pairs(part: str, key: str, amount: str) -> tuple[tuple[Program, Program], ...]:
        made = []
        for index, line in enumerate(spec[part]):
            first = compiled(line[key], Result.STRING, part, index, key)
            second = compiled(line[amount], Result.INT, part, index, amount)
            if first and second:
                made.append((first, second))
        return tuple(made)

    metering = pairs("metering", "dimension", "amount")
    prices = pairs("prices", "sku", "quantity")
    regions = compiled(spec["regions"], Result.STRINGS, "regions") if spec.get("regions") else None
    if faults:
        return None, faults
    deprecation = spec.get("deprecation")
    return (
        Governance(
            title=spec["title"],
            description=spec["description"],
            owner=spec["owner"],
            composition=spec["composition"],
            catalog=CatalogShape(**spec["catalog"]),
            naming=Naming(spec["naming"]["maxLength"], tuple(spec["naming"]["derived"])),
            endpoint=dict(spec["endpoint"]),
            deprecation=deprecation
            and Deprecation(deprecation["message"], dt.date.fromisoformat(deprecation["after"])),
            environment=environment,
            metering=metering,
            prices=prices,
            regions=regions,
            suspend=_suspend_field(spec),
        ),
        [],
    )
