"""Bodies that are nearly right: whatever stands in one place, the answer is a 201 or a clear 4xx that wrote nothing."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.conftest import As, Unwritten
from tests.sample import model_body, quota_body
from tests.world import OWN_APPROVER

BODIES = [
    model_body(reason="x", labels={"a": "b"}, madeFor=OWN_APPROVER, idempotencyKey="k"),
    quota_body(6, team="search"),
    {"kind": "Delete", "instance": "0198f2a4-6c1e-4c7a-9a5e-3b8f0f6d2c11"},
]


def places(value: Any, steps: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a body."""
    yield steps
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*steps, key))


PLACES = [(body, steps) for body in BODIES for steps in places(body)]
odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["{{7*7}}", "\x00", "\ud800", "'; drop table x", "a" * 10_001, "0", "no", "ß", "́", "../..", " "]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


def changed(body: dict[str, Any], steps: tuple[Any, ...], value: Any, extra: str | None) -> Any:
    """The body with another value in that place, and with one more member beside it if `extra` names one."""
    if not steps:
        return value
    made = copy.deepcopy(body)
    holder: Any = made
    for step in steps[:-1]:
        holder = holder[step]
    holder[steps[-1]] = value
    if extra is not None and isinstance(holder, dict):
        holder[extra] = value
    return made


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), value=odd, extra=st.one_of(st.none(), st.text(max_size=5)))
def test_any_value_anywhere(
    call_as: As,
    nothing_written: Unwritten,
    place: tuple[dict[str, Any], tuple[Any, ...]],
    value: Any,
    extra: str | None,
) -> None:
    body = changed(*place, value, extra)
    with nothing_written():
        _refused_or_undone(call_as, body)


def _refused_or_undone(call_as: As, body: Any) -> None:
    """A submission that is taken is undone here; what one that is refused has written is not."""
    with transaction.atomic():
        answer = call_as("ada").post("requests/", json.dumps(body).encode())
        if answer.status == 201:
            assert answer.json["reason"] == body.get("reason", "")
            transaction.set_rollback(True)
            return
    assert 400 <= answer.status < 500, answer.text
    assert answer.json["detail"]
    assert len(answer.text) < 20_000
    for problem in answer.json.get("errors", []):
        assert problem["message"]
        assert problem["pointer"] == "" or problem["pointer"].startswith("/")
