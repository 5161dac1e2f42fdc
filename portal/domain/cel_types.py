"""CEL types made from an OpenAPI v3 schema, as protobuf descriptors.

In charge of: which paths exist and what type each has, so that the CEL compiler refuses a wrong path, also one inside
has(...). A map<string, dyn> would let it through, and a guardrail would fail open. Not in charge of: compiling or
evaluating (cel), or turning values into messages (cel_values).

How a schema is seen from CEL:

    integer, number, string, boolean   int (64 bit), double, string, bool. One that may be absent (not required and no
                                       default, or below such an object) is nullable: absent, it is null, so that using
                                       it in arithmetic or an ordering is an evaluation error and not a silent 0 or "".
                                       Comparing it by == with a value is false. Ask with has(...)
    object with properties             a message; has(...) says whether it is there
    object with additionalProperties   map(string, T) of scalars or objects; absent is empty
    array                              list(T) of scalars or objects; absent is empty, has(...) is "not empty"
    anything else                      (free form, int-or-string, lists of lists) has no type and can't be named in CEL

Property names that are no CEL identifiers are escaped as Kubernetes does it (`foo-bar` is `foo__dash__bar`, `namespace`
is `__namespace__`): https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
#validation-rules, read 2026-12.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2

from portal.domain.cel_errors import CelError
from portal.domain.cel_values import CelType, ListOf, MapOf, Message, Scalar, bound

PACKAGE = "portal"
MAX_FIELDS = 5_000  # of one environment: a bound for the time to load, far above any XRD seen

_ESCAPABLE = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
# Reserved words that Kubernetes escapes, from the page named above.
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        "true false null in as break const continue else for function if import let loop package namespace return",
    )
)

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: dict[str, tuple[int, str, Any]] = {  # OpenAPI type -> protobuf type, its nullable wrapper, CEL type
    "integer": (_Field.TYPE_INT64, "Int64Value", cel.Type.INT),
    "number": (_Field.TYPE_DOUBLE, "DoubleValue", cel.Type.DOUBLE),
    "string": (_Field.TYPE_STRING, "StringValue", cel.Type.STRING),
    "boolean": (_Field.TYPE_BOOL, "BoolValue", cel.Type.BOOL),
}
# Attributes by which the evaluator recognises and reads a message: a field of that name would hide them.
_TAKEN = frozenset({"DESCRIPTOR", "SerializePartialToString", "SerializeToString"})


def escape(name: str) -> str | None:
    """The name a property has in CEL, or None when it can't be named there."""
    if not _ESCAPABLE.fullmatch(name) or name in _TAKEN:
        return None
    if name in _RESERVED:
        return f"__{name}__"
    for raw, escaped in _ESCAPES:
        name = name.replace(raw, escaped)
    return name


class TypePool:
    """The descriptors of one environment: one protobuf pool, in which each variable's schema becomes a type.

    Raises CelError when a schema has too many fields, or a variable's schema has no CEL type at all.
    """

    def __init__(self, variables: Mapping[str, Mapping[str, Any]]) -> None:
        self._file = descriptor_pb2.FileDescriptorProto(name="portal.proto", package=PACKAGE, syntax="proto2")
        self._file.dependency.append(wrappers_pb2.DESCRIPTOR.name)
        self._field_count = 0
        self.messages: dict[str, Message] = {}
        self.types: dict[str, CelType] = {}
        for name, schema in variables.items():
            # Variables of one schema share its type: two values can be compared as a whole (`self == oldSelf`).
            like = next((known for known in self.types if variables[known] == schema), None)
            made = self.types[like] if like else self._type_of(schema, name, always=True)
            if isinstance(made, str):
                raise CelError(f"variable {name} can't be used in CEL: {made}")
            self.types[name] = made
        self.pool = descriptor_pool.DescriptorPool()
        wrappers = descriptor_pb2.FileDescriptorProto()
        wrappers_pb2.DESCRIPTOR.CopyToProto(wrappers)
        self.pool.Add(wrappers)
        try:
            self.pool.Add(self._file)
        except TypeError as error:  # such as two maps, tags and Tags: protobuf names both entry types TagsEntry
            raise CelError(f"the schema's field names can't all be used together in CEL: {error}") from error
        self._classes = {
            full_name: message_factory.GetMessageClass(self.pool.FindMessageTypeByName(full_name))
            for full_name in self.messages
        }

    def _type_of(self, schema: Mapping[str, Any], path: str, always: bool) -> CelType | str:
        """The CEL type of a schema, or why it has none. `always`: the value is there whenever its parent is."""
        kind = schema.get("type")
        if schema.get("x-kubernetes-int-or-string"):
            return "it may be a number or a string (x-kubernetes-int-or-string)"
        if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
            return "it is free form (x-kubernetes-preserve-unknown-fields)"
        if kind in _SCALARS:
            return Scalar(kind, nullable=not always or bool(schema.get("nullable")))
        if kind == "array":
            return self._list_of(schema, path)
        if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
            return self._map_of(schema["additionalProperties"], path)
        if kind == "object":
            return self._message(schema, path, always and not schema.get("nullable"))
        return f"its type is {kind!r}"

    def _list_of(self, schema: Mapping[str, Any], path: str) -> CelType | str:
        item = self._item_type(schema.get("items") or {}, f"{path}[]")
        return item if isinstance(item, str) else ListOf(item)

    def _map_of(self, schema: Mapping[str, Any], path: str) -> CelType | str:
        value = self._item_type(schema, f"{path}{{}}")
        return value if isinstance(value, str) else MapOf(value)

    def _item_type(self, schema: Mapping[str, Any], path: str) -> Scalar | Message | str:
        """The type of a list's items or a map's values, or why they have none."""
        made = self._type_of(schema, path, always=True)
        if isinstance(made, ListOf | MapOf):
            return "it nests lists or maps directly in each other"
        if isinstance(made, Scalar) and made.nullable:
            return "its items may be null"
        return made

    def _message(self, schema: Mapping[str, Any], path: str, always: bool) -> Message:
        proto = self._file.message_type.add(name=self._free_name(path))
        made = Message(f"{PACKAGE}.{proto.name}", path, required=frozenset(schema.get("required") or ()))
        self.messages[made.full_name] = made
        for name, sub in (schema.get("properties") or {}).items():
            there = always and (name in made.required or "default" in sub)
            inner = self._type_of(sub, f"{path}.{name}", there)
            cel_name = escape(name)
            if isinstance(inner, str):
                made.unreachable[cel_name or name] = inner
            elif cel_name is None:
                made.unreachable[name] = "its name can't be written in CEL"
            else:
                made.fields[name] = (cel_name, inner)
                self._add_field(proto, cel_name, inner)
        return made

    def _free_name(self, path: str) -> str:
        base = re.sub(r"[^A-Za-z0-9_]", "_", path)
        name, number = base, 1
        while f"{PACKAGE}.{name}" in self.messages:
            name, number = f"{base}_{number}", number + 1
        return name

    def _add_field(self, proto: descriptor_pb2.DescriptorProto, name: str, made: CelType) -> None:
        self._field_count += 1
        if self._field_count > MAX_FIELDS:
            raise CelError(f"the schema has more than {MAX_FIELDS} fields; split it or make parts of it free form")
        number = len(proto.field) + 1
        # A JSON name of its own: protobuf refuses foo_bar beside fooBar, which share the default one.
        if isinstance(made, MapOf):
            entry = proto.nested_type.add(name=_entry_name(name))
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
            entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL, **_field_type(made.value))
            proto.field.add(
                name=name,
                number=number,
                label=_Field.LABEL_REPEATED,
                json_name=f"j{number}",
                type=_Field.TYPE_MESSAGE,
                type_name=f".{PACKAGE}.{proto.name}.{entry.name}",
            )
            return
        label = _Field.LABEL_REPEATED if isinstance(made, ListOf) else _Field.LABEL_OPTIONAL
        shape = _field_type(made.item if isinstance(made, ListOf) else made)
        proto.field.add(name=name, number=number, label=label, json_name=f"j{number}", **shape)

    def cel_type(self, made: CelType) -> Any:
        """The CEL compiler's word for a type."""
        if isinstance(made, Scalar):
            return _SCALARS[made.name][2]
        if isinstance(made, Message):
            return cel.Type(made.full_name)
        if isinstance(made, ListOf):
            return cel.Type.List(self.cel_type(made.item))
        return cel.Type.Map(cel.Type.STRING, self.cel_type(made.value))

    def bind(self, variable: str, value: Any) -> Any:
        """A JSON value as what the evaluator takes for this variable. CelError names the path that does not fit."""
        return bound(self.types[variable], value, variable, self._classes)


def _field_type(made: Scalar | Message | MapOf) -> dict[str, Any]:
    if isinstance(made, Message):
        return {"type": _Field.TYPE_MESSAGE, "type_name": f".{made.full_name}"}
    assert isinstance(made, Scalar)  # noqa: S101  # maps have their entry type; this tells mypy
    proto_type, wrapper, _ = _SCALARS[made.name]
    if made.nullable:
        return {"type": _Field.TYPE_MESSAGE, "type_name": f".google.protobuf.{wrapper}"}
    return {"type": proto_type}


def _entry_name(name: str) -> str:
    """protobuf demands that a map's entry type is named after its field: CamelCase plus Entry."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
