"""YAML in and out, so that every reader reads the same.

In charge of: parsing one document into JSON-like values without surprises, and writing values so that YAML 1.1 readers
(PyYAML, Kubernetes' own) and 1.2 readers get back the very same. Not in charge of: what the values mean.

Reading follows the JSON schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#102-json-schema, read 2026-12): an unquoted
scalar is null, true, false or a JSON number when it is spelled exactly so, and a text otherwise. `y`, `no`, `on`,
`True`, `~`, `0123`, `0x1F`, `12:30:45`, `1_000`, `.5`, `2026-01-01` are texts; `1E6` is the number 1000000.0, as in
JSON. An empty value is null. With ambiguous="refuse" such a text is refused where a YAML 1.1 reader sees something else
in it: for files that Kubernetes reads too.

Refused, with line and column: duplicate keys, keys that are no text, anchors and aliases, tags, merge keys, more than
one document, more than MAX_CHARACTERS, deeper than json_limits.MAX_DEPTH, bytes that are not UTF-8, numbers outside
JSON.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NoReturn

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from portal.domain.json_limits import MAX_DEPTH, MAX_DIGITS, first_problem

MAX_CHARACTERS = 256 * 1024  # several times the largest XRDs; the worst text of this size took 6.5 s to parse

Ambiguous = Literal["text", "refuse"]

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_WORDS: dict[str, Any] = {"": None, "null": None, "true": True, "false": False}
# What YAML 1.1 and go-yaml take for something else than text, beyond what PyYAML's own resolver knows
# (https://yaml.org/type/bool.html, https://yaml.org/type/float.html, go-yaml resolve.go; read 2026-12).
_OTHER_READERS = re.compile(
    r"y|n|[-+]?0o[0-7_]+|[-+]?0b[01_]+|[-+]?0x[0-9a-f_]+|[-+]?(\.[0-9]|[0-9])[0-9_.]*(e[-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|[-+]?\.(inf|nan)|=|<<",
    re.ASCII | re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*", re.ASCII)  # texts that need no quotes, whoever reads them


class StrictYamlError(ValueError):
    """The text is refused. `source` is a file's name or what the caller calls it; line and column count from 1."""

    def __init__(self, source: str, reason: str, line: int | None = None, column: int | None = None) -> None:
        place = source if line is None else f"{source}:{line}:{column}"
        super().__init__(f"{place}: {reason}")
        self.source = source
        self.reason = reason
        self.line = line
        self.column = column


def parse(text: str | bytes, source: str = "YAML", ambiguous: Ambiguous = "text") -> Any:
    """The one document in `text` as dict, list, str, int, float, bool or None. Raises StrictYamlError."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise StrictYamlError(source, f"not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    if len(text) > MAX_CHARACTERS:
        raise StrictYamlError(source, f"{len(text)} characters, at most {MAX_CHARACTERS} are read")
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return None if node is None else _Reader(source, ambiguous).value(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        reason = error.problem or "not YAML"
        if mark is None:
            raise StrictYamlError(source, reason) from error
        raise StrictYamlError(source, reason, mark.line + 1, mark.column + 1) from error
    except yaml.YAMLError as error:
        raise StrictYamlError(source, str(error).replace("\n", " ")) from error
    finally:
        if loader is not None:
            loader.dispose()


class _Loader(yaml.SafeLoader):
    """Composes nodes only; refuses what makes a document more than a tree, and bounds its depth before recursing."""

    _depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML's stubs leave it untyped
        refused = None
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            refused = "anchors and aliases are not accepted; write the value out"
        elif getattr(event, "tag", None):
            refused = "tags (!…) are not accepted; quote a text, leave other values as they are"
        elif self._depth > MAX_DEPTH:
            refused = f"nested more than {MAX_DEPTH} levels deep"
        if refused:
            raise yaml.MarkedYAMLError(problem=refused, problem_mark=event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Reader:
    """Nodes to values. Recursion is bounded by the loader."""

    def __init__(self, source: str, ambiguous: Ambiguous) -> None:
        self._source = source
        self._ambiguous = ambiguous

    def value(self, node: Node) -> Any:
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if isinstance(node, SequenceNode):
            return [self.value(item) for item in node.value]
        assert isinstance(node, MappingNode)  # noqa: S101  # the third of three kinds; this tells mypy
        made: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key in made:
                self._refuse(key_node, f"the key '{key}' is there twice; keep one")
            made[key] = self.value(value_node)
        return made

    def _key(self, node: Node) -> str:
        key = self.value(node) if isinstance(node, ScalarNode) else None
        if not isinstance(key, str):
            self._refuse(node, "a key must be a text; write it in quotes")
        if key == "<<" and isinstance(node, ScalarNode) and node.style is None:
            self._refuse(node, "merge keys (<<) are not accepted; write the values out")
        return key

    def _scalar(self, node: ScalarNode) -> Any:
        text: str = node.value
        if node.style is not None:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text):
            return self._number(node, text)
        if self._ambiguous == "refuse" and not _same_for_all(text):
            self._refuse(node, f"{text} is not read as a text by every YAML reader; write it in quotes")
        return text

    def _number(self, node: Node, text: str) -> int | float:
        if len(text) > MAX_DIGITS:
            self._refuse(node, f"a number of more than {MAX_DIGITS} digits; quote it if it is a text")
        if re.fullmatch(r"-?[0-9]+", text):
            return int(text)
        number = float(text)
        if number in (float("inf"), float("-inf")):
            self._refuse(node, f"{text} is too large for a number; quote it if it is a text")
        return number

    def _refuse(self, node: Node, reason: str) -> NoReturn:
        mark = node.start_mark
        raise StrictYamlError(self._source, reason, mark.line + 1, mark.column + 1)


_RESOLVER = yaml.SafeLoader("")


def _same_for_all(text: str) -> bool:
    """Whether an unquoted scalar is a text for YAML 1.1 and 1.2 readers alike."""
    if text in _WORDS or _NUMBER.fullmatch(text) or _OTHER_READERS.fullmatch(text):
        return False
    tag = _RESOLVER.resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # untyped in the stubs
    return bool(tag == "tag:yaml.org,2002:str")


class _Dumper(yaml.SafeDumper):
    """Writes the tree as it is (no anchors), and quotes every text that any reader could take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # list items are indented under their key


def _represent_text(dumper: yaml.SafeDumper, text: str) -> ScalarNode:
    plain = _PLAIN.fullmatch(text) is not None and _same_for_all(text)
    style = None if plain else '"' if _needs_escapes(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _needs_escapes(text: str) -> bool:
    return not text.isprintable()  # line breaks too: folding differs between readers, escapes do not


_Dumper.add_representer(str, _represent_text)


def dump(value: Any) -> str:
    """`value` as one YAML document, keys in their order. Raises ValueError naming what JSON could not hold either.

    Texts such as y, no, 0123, 12:30:45, 1E6, 1_000 are quoted, so that they stay texts whoever reads them.
    """
    problem = first_problem(value)
    if problem:
        where, _, message = problem
        raise ValueError(f"can't be written as YAML: {where or 'the value'}: {message}")
    written: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=float("inf")
    )
    return written
