"""JSON values as messages of the types that cel_types makes.

In charge of: the shapes a CEL type can have, and binding a value to one; a value that does not fit its type is a
CelError that names the path, never a default. Not in charge of: making types (cel_types), or saying to a person what is
wrong with a value (schema).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from portal.domain.cel_errors import CelError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

ScalarName = Literal["integer", "number", "string", "boolean"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar; `nullable` ones travel in a protobuf wrapper message."""

    name: ScalarName
    nullable: bool


@dataclass(slots=True)
class Message:
    """An object with known properties. `fields` is by JSON name; `unreachable` says why a property has no CEL type."""

    full_name: str
    path: str
    fields: dict[str, tuple[str, CelType]] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    unreachable: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of scalars or messages."""

    item: Scalar | Message


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from string to scalars or messages."""

    value: Scalar | Message


CelType = Scalar | Message | ListOf | MapOf


def bound(made: CelType, value: Any, path: str, classes: Mapping[str, Any]) -> Any:
    """`value` as the evaluator takes it. `classes`: message classes by full name. Raises CelError naming the path."""
    if isinstance(made, Scalar):
        return _scalar(made, value, path)
    if isinstance(made, ListOf):
        if not isinstance(value, list | tuple):
            raise CelError(f"{path}: a list is wanted, got {type(value).__name__}")
        return [bound(made.item, item, f"{path}[{index}]", classes) for index, item in enumerate(value)]
    if not isinstance(value, Mapping):
        raise CelError(f"{path}: an object is wanted, got {type(value).__name__}")
    if isinstance(made, MapOf):
        return {str(key): bound(made.value, item, f"{path}.{key}", classes) for key, item in value.items()}
    message = classes[made.full_name]()
    _fill(message, made, value, path, classes)
    return message


def _fill(message: Any, made: Message, value: Mapping[str, Any], path: str, classes: Mapping[str, Any]) -> None:
    for name in made.required:
        if value.get(name) is None and name in made.fields:
            raise CelError(f"{path}.{name}: required and absent")
    for name, (cel_name, inner) in made.fields.items():
        item = value.get(name)
        if item is None:
            continue
        part = bound(inner, item, f"{path}.{name}", classes)
        if isinstance(inner, ListOf):
            getattr(message, cel_name).extend(part)
        elif isinstance(inner, MapOf):
            _fill_map(getattr(message, cel_name), inner, part)
        elif isinstance(inner, Message):
            getattr(message, cel_name).CopyFrom(part)
            getattr(message, cel_name).SetInParent()
        elif inner.nullable:
            getattr(message, cel_name).value = part
            getattr(message, cel_name).SetInParent()
        else:
            setattr(message, cel_name, part)


def _fill_map(target: Any, made: MapOf, part: dict[str, Any]) -> None:
    for key, item in part.items():
        if isinstance(made.value, Message):
            target[key].CopyFrom(item)
        else:
            target[key] = item


def _scalar(made: Scalar, value: Any, path: str) -> Any:
    kind = made.name
    fits = {
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
    }[kind]
    if not fits:
        raise CelError(f"{path}: a value of type {kind} is wanted, got {type(value).__name__}")
    if kind == "integer" and not INT64_MIN <= value <= INT64_MAX:
        raise CelError(f"{path}: {value} does not fit into 64 bits ({INT64_MIN} to {INT64_MAX})")
    if kind == "string":
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise CelError(f"{path}: not a text that can be written in UTF-8: {error.reason}") from error
    return float(value) if kind == "number" else value
