"""YAML that every reader reads the same: what is refused, what stays a text, and that writing gives it back."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.json_limits import MAX_DEPTH
from portal.domain.strict_yaml import MAX_CHARACTERS, StrictYamlError, dump, parse

WORDS = "y Y n N yes No on OFF true True FALSE null Null NULL ~ = << - --- ... [ ] { } , # & * ! | > % @ ` ? :"
NUMBERS = (
    "0123 0o17 0x1F 0b1 12:30:45 190:20:30 1E6 1e6 1e5 e5 1_000 +1 -1 .5 1. 1.0 .inf -.INF .nan 2026-01-01 "
    "2026-01-01T00:00:00Z 1 0 -0 ._1"
)
TRAPS = [*WORDS.split(), *NUMBERS.split()]
OTHERS = [
    "",
    " ",
    "a ",
    " a",
    "a: b",
    "a #b",
    "a\nb",
    "a\n",
    "\t",
    "\r\n",
    "\u0085",
    "\u2028",
    "\ufeffx",
    "\x07",
    "\x7f",
]
LITERAL = [
    "{{7*7}}",
    "${{ secrets.X }}",
    "<script>alert(1)</script>",
    "'; drop table x; --",
    "データ",
    "😀",
    'say "hi"',
]


@pytest.mark.parametrize("text", TRAPS + OTHERS + LITERAL)
def test_a_written_text_is_read_back_as_that_text(text: str) -> None:
    """Cases 9 and 18: as a value, as an item and as a key, by this reader and by one of YAML 1.1."""
    value = {"value": text, "items": [text], text or "empty": "key"}
    written = dump(value)
    assert parse(written) == value
    assert parse(written, ambiguous="refuse") == value
    assert yaml.safe_load(written) == value


TEXTS = "y no on Yes True ~ Null 0123 12:30:45 1_000"
NO_JSON = "0x1F 0o17 .5 1. +1 .inf .nan 2026-01-01 1e 1__0 ٣"


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        *((trap, trap, "case 9: a text in YAML 1.2") for trap in TEXTS.split()),
        *((trap, trap, "no JSON number") for trap in NO_JSON.split()),
        ("true", True, "JSON's word"),
        ("false", False, "JSON's word"),
        ("null", None, "JSON's word"),
        ("1E6", 1_000_000.0, "a number in JSON, so in YAML 1.2"),
        ("-0.5", -0.5, "a number"),
        ("9007199254740993", 9007199254740993, "case 11: integers above 2^53 stay exact"),
        ("2.0", 2.0, "case 11: not silently an integer"),
        ("'no'", "no", "quoted"),
        ('"1"', "1", "quoted"),
        ("|\n  12", "12", "a block is a text"),
    ],
)
def test_unquoted_scalars(text: str, value: Any, reason: str) -> None:
    read = parse(f"x: {text}")["x"]
    assert read == value, reason
    assert type(read) is type(value), reason


@pytest.mark.parametrize(
    ("text", "place", "part", "reason"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1", "'a' is there twice", "duplicate key"),
        ("x:\n  - {b: 1, 'b': 2}\n", "f.yaml:2:12", "'b' is there twice", "duplicate key in a flow mapping"),
        ("a: &x [1]\nb: *x\n", "f.yaml:1:4", "anchors", "anchor"),
        ("a: *x\n", "f.yaml:1:4", "anchors", "alias"),
        ("a: &a [*a, *a, *a]\n", "f.yaml:1:4", "anchors", "the billion laughs need an anchor"),
        ("a: !!python/object/apply:os.system [x]\n", "f.yaml:1:4", "tags", "Python tag"),
        ("a: !!str 1\n", "f.yaml:1:4", "tags", "any tag"),
        ("1: a\n", "f.yaml:1:1", "key must be a text", "number as key"),
        ("null: a\n", "f.yaml:1:1", "key must be a text", "null as key"),
        ("? [a]\n: b\n", "f.yaml:1:3", "key must be a text", "list as key"),
        ("<<: {a: 1}\n", "f.yaml:1:1", "merge keys", "merge key"),
        ("a: 1\n---\nb: 1\n", "f.yaml:2:1", "document", "two documents"),
        ("a: b: c\n", "f.yaml:1:5", "mapping values", "no YAML"),
        ("a:\n\t- b\n", "f.yaml:2:1", "\\t", "tab as indentation"),
        ('a: "x\n', "f.yaml:2:1", "end of stream", "quote not closed"),
        ("a: 1e999\n", "f.yaml:1:4", "too large", "a number that would be infinite"),
        ("a: " + "9" * 5000, "f.yaml:1:4", "digits", "a number that Python refuses to print"),
        ("[" * 10_000, f"f.yaml:1:{MAX_DEPTH + 2}", "levels deep", "nesting, before any recursion"),
        ("{a: " * 200, "f.yaml:1:", "levels deep", "nesting of mappings"),
        ("a: \x00\n", "f.yaml", "not allowed", "a control character"),
        ("a" * (MAX_CHARACTERS + 1), "f.yaml", "characters", "size"),
    ],
)
def test_refusals_name_place_and_reason(text: str, place: str, part: str, reason: str) -> None:
    with pytest.raises(StrictYamlError) as caught:
        parse(text, "f.yaml")
    assert str(caught.value).startswith(place), reason
    assert part in str(caught.value), reason


def test_bytes_that_are_not_utf8() -> None:
    with pytest.raises(StrictYamlError, match="not UTF-8 at byte 3"):
        parse(b"a: \xff", "f.yaml")


@pytest.mark.parametrize(
    "text", ["no", "y", "On", "True", "~", "0123", "0x1F", "1_000", "12:30:45", "2026-01-01", ".5", "="]
)
def test_what_readers_disagree_about_is_refused_on_demand(text: str) -> None:
    assert parse(f"x: {text}") == {"x": text}
    with pytest.raises(StrictYamlError, match="write it in quotes") as caught:
        parse(f"x: {text}", "definition.yaml", ambiguous="refuse")
    assert (caught.value.line, caught.value.column) == (1, 4)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"a": [float("nan")]}, "/a/0"),
        ({"a": {1: "x"}}, "/a"),
        ({"a": object()}, "object"),
        ("\ud800", "surrogate"),
        ({"a": {"b": b"x"}}, "/a/b"),
    ],
)
def test_what_json_can_not_hold_is_not_written(value: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        dump(value)


def test_shared_values_are_written_out() -> None:
    shared = {"a": [1]}
    assert parse(dump([shared, shared])) == [shared, shared]


_texts = st.one_of(
    st.sampled_from(TRAPS + OTHERS), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
)
_scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _texts)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_texts, inner, max_size=4)),
    max_leaves=20,
)


@given(_values)
def test_round_trip(value: Any) -> None:
    written = dump(value)
    assert parse(written) == value
    assert yaml.safe_load(written) == value


@given(st.one_of(st.text(), st.text("a:-[]{}&*!|>'\"%@`#? \n\t0.", max_size=40), st.binary(max_size=40)))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    try:
        value = parse(text)
    except StrictYamlError:
        return
    assert parse(dump(value)) == value
