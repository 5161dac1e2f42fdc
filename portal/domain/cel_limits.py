"""What an expression may do, checked on its syntax tree after it compiled.

In charge of: bounds that the CEL evaluator has not. It stops after 10,000 iterations and 32 levels of nesting, but it
has no bound on memory (seen: seven chained `.map(v, v+v+…)` in 260 characters took 3 GB), and it does not check a
field of a value of type dyn (`has(dyn(spec).typo)` compiles, and a guardrail could fail open). Not in charge of: types
(the compiler).

The tree is read from the compiler's serialized CheckedExpr; the few messages needed are declared here by their field
numbers (cel-spec, proto/cel/expr/checked.proto and syntax.proto, read 2026-12).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

from portal.domain.cel_errors import CelError

MAX_LENGTH = 2_048  # characters of an expression
MAX_MACRO_DEPTH = 3  # all, exists, map, filter within or after each other
MAX_JOINS = 48  # `+` and join: with MAX_MACRO_DEPTH this keeps growth under (48/3 + 1)^3, about 5,000 times the data
# Multiply a text's length by a constant per call, or take a width from the text itself.
_REFUSED_FUNCTIONS = frozenset({"replace", "format"})

_Field = descriptor_pb2.FieldDescriptorProto
_MESSAGES: dict[str, tuple[tuple[str, int, int | str, bool], ...]] = {
    # message: (field, number, protobuf type or message, repeated)
    "Empty": (),
    "Type": (("dyn", 1, "Empty", False),),
    "TypeEntry": (("key", 1, _Field.TYPE_INT64, False), ("value", 2, "Type", False)),
    "CheckedExpr": (("type_map", 3, "TypeEntry", True), ("expr", 4, "Expr", False)),
    "Expr": (
        ("id", 2, _Field.TYPE_INT64, False),
        ("select", 5, "Select", False),
        ("call", 6, "Call", False),
        ("list", 7, "List", False),
        ("struct", 8, "Struct", False),
        ("comprehension", 9, "Comprehension", False),
    ),
    "Select": (("operand", 1, "Expr", False), ("field", 2, _Field.TYPE_STRING, False)),
    "Call": (("target", 1, "Expr", False), ("function", 2, _Field.TYPE_STRING, False), ("args", 3, "Expr", True)),
    "List": (("elements", 1, "Expr", True),),
    "Struct": (("entries", 2, "Entry", True),),
    "Entry": (("map_key", 3, "Expr", False), ("value", 4, "Expr", False)),
    "Comprehension": (
        ("iter_range", 2, "Expr", False),
        ("accu_init", 4, "Expr", False),
        ("loop_condition", 5, "Expr", False),
        ("loop_step", 6, "Expr", False),
        ("result", 7, "Expr", False),
    ),
}


def _checked_expr() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="portal_cel_tree.proto", package="tree", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind, repeated in fields:
            label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            made = message.field.add(name=field_name, number=number, label=label)
            if isinstance(kind, str):
                made.type, made.type_name = _Field.TYPE_MESSAGE, f".tree.{kind}"
            else:
                made.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tree.CheckedExpr"))


_CheckedExpr = _checked_expr()


def check_text(expression: str) -> None:
    """Bounds on the text itself. Raises CelError."""
    if not expression.strip():
        raise CelError("an expression is wanted, got an empty text")
    if len(expression) > MAX_LENGTH:
        raise CelError(
            f"the expression has {len(expression)} characters, at most {MAX_LENGTH} are accepted; split the rule",
            expression,
        )


def check_tree(serialized: bytes, expression: str) -> None:
    """Bounds on what the expression does. Raises CelError."""
    wrapped = any_pb2.Any.FromString(serialized)
    checked = _CheckedExpr.FromString(wrapped.value)
    untyped = {entry.key for entry in checked.type_map if entry.value.HasField("dyn")}
    joins = 0
    for node in _walk(checked.expr):
        if node.HasField("select") and node.select.operand.id in untyped:
            raise CelError(
                f"field {node.select.field!r} is asked of a value without a type, where a wrong name goes unnoticed; "
                "don't use dyn(...) or mixed lists",
                expression,
            )
        if node.HasField("call"):
            joins += node.call.function in ("_+_", "join")
            if node.call.function in _REFUSED_FUNCTIONS:
                raise CelError(f"{node.call.function}() is not available here: its result has no bound", expression)
    if joins > MAX_JOINS:
        raise CelError(f"{joins} uses of `+` and join, at most {MAX_JOINS} are accepted; split the rule", expression)
    depth = _macro_depth(checked.expr)
    if depth > MAX_MACRO_DEPTH:
        raise CelError(
            f"all, exists, map and filter are nested or chained {depth} deep, at most {MAX_MACRO_DEPTH} are accepted",
            expression,
        )


def _children(node: Any) -> Iterator[Any]:
    if node.HasField("select"):
        yield node.select.operand
    elif node.HasField("call"):
        if node.call.HasField("target"):
            yield node.call.target
        yield from node.call.args
    elif node.HasField("list"):
        yield from node.list.elements
    elif node.HasField("struct"):
        for entry in node.struct.entries:
            yield from (entry.map_key, entry.value)
    elif node.HasField("comprehension"):
        made = node.comprehension
        yield from (made.iter_range, made.accu_init, made.loop_condition, made.loop_step, made.result)


def _walk(root: Any) -> Iterator[Any]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_children(node))


def _macro_depth(root: Any) -> int:
    """The most comprehensions on one path from the root."""
    deepest, waiting = 0, [(root, 0)]
    while waiting:
        node, above = waiting.pop()
        depth = above + node.HasField("comprehension")
        deepest = max(deepest, depth)
        waiting.extend((child, depth) for child in _children(node))
    return deepest
