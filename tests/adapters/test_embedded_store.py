"""The store's own promises: a bounded log, writers one after the other, transactions that are its own, work done
once."""

from __future__ import annotations

import datetime as dt
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from portal.adapters import control_plane
from portal.adapters.composed import without_secrets
from portal.adapters.embedded import queue, store
from portal.adapters.embedded.conditions import Condition, merged
from portal.adapters.embedded.deliver import apply_object
from portal.models.embedded import EmbeddedChange, EmbeddedObject, EmbeddedSequence, EmbeddedWork
from portal.ports import ControlPlane, RetryableError, TerminalError
from tests.adapters.widgets import KINDS, SHELF_XRD, WIDGET_XRD, composition, ref, shelf, widget

NOW = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    assert store.same(value, value)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [(1, 1.0, True), (1, True, False), ([0], [False], False), ({"a": 1}, {"a": 1, "b": 2}, False), ("1", 1, False)],
)
def test_when_two_values_are_the_same(left: Any, right: Any, equal: bool) -> None:
    assert store.same(left, right) is equal


def test_secrets_are_not_shown_however_deep() -> None:
    secret = {"kind": "Secret", "data": {"password": "aHVudGVyMg=="}, "stringData": {"user": "me"}}
    shown = without_secrets({"kind": "Object", "spec": {"manifests": [secret]}, "data": {"kept": "x"}})
    assert shown["data"] == {"kept": "x"}
    assert shown["spec"]["manifests"] == [
        {"kind": "Secret", "data": {"password": "(hidden)"}, "stringData": {"user": "(hidden)"}}
    ]
    assert secret["data"] == {"password": "aHVudGVyMg=="}


@given(st.lists(st.sampled_from(["True", "False", "Unknown"]), min_size=1, max_size=8))
def test_a_conditions_time_moves_with_its_status_only(statuses: list[Any]) -> None:
    entries: list[dict[str, Any]] = []
    last, since = None, ""
    for number, status in enumerate(statuses):
        now = NOW + dt.timedelta(seconds=number)
        entries = merged(entries, [Condition("Ready", status, "Why", f"message {number}")], now)
        since = since if status == last else now.strftime("%Y-%m-%dT%H:%M:%SZ")
        last = status
        assert [(one["status"], one["lastTransitionTime"]) for one in entries] == [(status, since)]


class TestStore:
    """With a plane, without a controller."""

    def test_the_log_is_bounded_and_an_old_cursor_expires(self, plane: ControlPlane) -> None:
        _, cursor = plane.list(KINDS)
        for size in range(5):
            plane.apply(widget(size=size))
        with store.writing() as writer:
            writer.forget_before(keep=2)
        assert EmbeddedChange.objects.count() == 2
        with pytest.raises(RetryableError) as refused:
            list(plane.watch(KINDS, cursor, 0.1))
        assert refused.value.code == "cursor-expired"
        claims, fresh = plane.list(KINDS)
        assert [claim.spec["size"] for claim in claims] == [4]
        assert list(plane.watch(KINDS, fresh, 0.1)) == []

    def test_other_kinds_changes_do_not_hold_a_watch_up(self, plane: ControlPlane) -> None:
        _, cursor = plane.list(KINDS)
        for number in range(5):
            apply_object(shelf(f"s{number}", "red"), "tests")
        plane.apply(widget())
        assert [event.claim.ref.name for event in plane.watch(KINDS, cursor, 0.1)] == ["one"]

    def test_it_refuses_to_be_part_of_the_portals_transaction(self, plane: ControlPlane) -> None:
        """What a control plane has accepted can't be rolled back by a caller."""
        with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
            plane.apply(widget())
        assert plane.get(ref()) is None

    def test_a_failed_write_leaves_no_number_and_no_trace(self, plane: ControlPlane) -> None:
        before = EmbeddedSequence.objects.get().value
        with pytest.raises(ZeroDivisionError), store.writing() as writer:
            writer.change(EmbeddedObject.objects.get(kind="Namespace"), labels={"a": "b"})
            raise ZeroDivisionError
        assert EmbeddedSequence.objects.get().value == before
        assert EmbeddedChange.objects.filter(resource_version__gt=before).count() == 0

    def test_two_applies_of_one_claim_at_once_make_one_object(
        self, transactional_db: None, plane: ControlPlane
    ) -> None:
        uids: list[str] = []
        both = threading.Barrier(4)

        def run() -> None:
            try:
                both.wait()
                uids.append(plane.apply(widget()).uid)
            finally:
                connection.close()

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(uids) == 4
        assert len(set(uids)) == 1
        assert EmbeddedObject.objects.filter(kind="Widget").count() == 1

    def test_two_strangers_at_once_one_gets_the_name(self, transactional_db: None, plane: ControlPlane) -> None:
        answers: list[str] = []
        both = threading.Barrier(2)

        def run(instance: str) -> None:
            try:
                both.wait()
                plane.apply(widget(instance=instance))
                answers.append("applied")
            except TerminalError as error:
                answers.append(error.code)
            finally:
                connection.close()

        threads = [threading.Thread(target=run, args=(name,)) for name in ("i-1", "i-2")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == ["applied", "claim-name-taken"]

    def test_work_is_taken_by_one_and_let_go_when_its_holder_dies(
        self, transactional_db: None, plane: ControlPlane
    ) -> None:
        plane.apply(widget())
        taken = queue.take(store.RECONCILE)
        assert taken is not None
        other: list[Any] = []

        def take_elsewhere() -> None:
            try:
                other.append(queue.take(store.RECONCILE))
            finally:
                connection.close()

        def elsewhere() -> Any:
            thread = threading.Thread(target=take_elsewhere)
            thread.start()
            thread.join()
            return other.pop()

        assert elsewhere() is None
        with connection.cursor() as cursor:  # what the end of a session does
            cursor.execute("SELECT pg_advisory_unlock_all()")
        again = elsewhere()
        assert again is not None
        assert again.object_id == taken.object_id

    def test_a_change_during_the_work_makes_it_due_again(self, plane: ControlPlane) -> None:
        plane.apply(widget(size=1))
        taken = queue.take(store.RECONCILE)
        assert taken is not None
        plane.apply(widget(size=2))
        queue.finish(taken, None, 0)
        again = queue.take(store.RECONCILE)
        assert again is not None
        queue.finish(again, None, 0)
        assert queue.take(store.RECONCILE) is None
        assert EmbeddedWork.objects.get().due_at is None

    def test_a_database_that_does_not_answer_is_retryable(self, transactional_db: None, plane: ControlPlane) -> None:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE embedded_object RENAME TO embedded_away")
        try:
            with pytest.raises(RetryableError) as refused:
                plane.get(ref())
            assert refused.value.code == "control-plane-down"
        finally:
            with connection.cursor() as cursor:
                cursor.execute("ALTER TABLE embedded_away RENAME TO embedded_object")

    def test_the_registry(self, settings: Any, tmp_path: Path) -> None:
        settings.CONTROL_PLANES = {"prod": f"{tmp_path}/prod.yaml#admin", "here": "in-cluster"}
        assert control_plane("embedded").label.startswith("embedded")
        assert control_plane("prod").label.startswith("prod")  # nothing is read before it is used
        assert control_plane("prod") is control_plane("prod")
        assert control_plane("here").name == "here"
        with pytest.raises(ValueError, match="embedded, here, prod"):
            control_plane("elsewhere")


BAD_OBJECTS: list[tuple[str, dict[str, Any], str]] = [
    ("no name", {"apiVersion": "v1", "kind": "Namespace", "metadata": {}}, "/metadata/name"),
    ("a name that is none", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "A_b"}}, "/metadata/name"),
    ("no kind", {"apiVersion": "v1", "metadata": {"name": "a"}}, "/kind"),
    ("a kind without an XRD", {"apiVersion": "x.example.org/v1", "kind": "Y", "metadata": {"name": "a"}}, "/kind"),
    ("a version that is not served", {**shelf("a", "red"), "apiVersion": "test.example.org/v2"}, "/apiVersion"),
    ("a label that is none", shelf("a", "r" * 64), "/metadata/labels/color"),
    ("a zero byte", {**shelf("a", "red"), "spec": {"rows": "\0"}}, "/spec/rows"),
    ("an unknown field at the top", {**shelf("a", "red"), "data": {}}, "/data"),
    ("cluster scope in a namespace", {**shelf("a", "red"), "metadata": {"name": "a", "namespace": "n"}}, "/metadata"),
    ("an XRD of another name", {**SHELF_XRD, "metadata": {"name": "x"}}, "/metadata/name"),
    ("an XRD of an old scope", {**SHELF_XRD, "spec": {**SHELF_XRD["spec"], "scope": "LegacyCluster"}}, "/spec/scope"),
    ("a Composition of an old mode", {**composition("c", "Widget"), "spec": {"mode": "Resources"}}, "/spec/mode"),
]


class TestApplying:
    """Administrators' objects, by function and by command."""

    @pytest.mark.parametrize(("reason", "manifest", "field"), BAD_OBJECTS, ids=[reason for reason, _, _ in BAD_OBJECTS])
    def test_what_is_refused(self, plane: ControlPlane, reason: str, manifest: dict[str, Any], field: str) -> None:
        before = EmbeddedSequence.objects.get().value
        with pytest.raises(TerminalError) as refused:
            apply_object(manifest, "tests")
        assert refused.value.code == "claim-invalid", reason
        assert field in refused.value.message, reason
        assert EmbeddedSequence.objects.get().value == before, reason

    def test_a_schema_that_is_none(self, plane: ControlPlane) -> None:
        broken = {**WIDGET_XRD, "spec": {**WIDGET_XRD["spec"]}}
        broken["spec"]["versions"] = [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"type": "obj"}}}]
        with pytest.raises(TerminalError, match="openAPIV3Schema"):
            apply_object(broken, "tests")

    def test_a_folder_is_applied_in_a_working_order(self, db: None, tmp_path: Any) -> None:
        """A Shelf comes first by name, but needs its XRD; offering.yaml and examples are not the control plane's."""
        from portal.domain.strict_yaml import dump

        (tmp_path / "examples").mkdir()
        (tmp_path / "examples" / "claim.yaml").write_text(dump(widget()))
        (tmp_path / "offering.yaml").write_text("apiVersion: portal.aiplatform.example.org/v1\nkind: Offering\n")
        (tmp_path / "a-shelf.yaml").write_text(dump(shelf("a", "red")))
        (tmp_path / "definition.yaml").write_text(dump(SHELF_XRD))
        call_command("embedded_apply", str(tmp_path))
        assert EmbeddedObject.objects.get(kind="Shelf").manager == "embedded_apply"
        assert not EmbeddedObject.objects.filter(kind="Widget").exists()

    @pytest.mark.parametrize(
        ("text", "message"),
        [("a: 1\na: 2\n", "there twice"), ("- 1\n", "no Kubernetes manifest"), ("a: [", "bad.yaml")],
    )
    def test_a_bad_file_is_named(self, db: None, tmp_path: Any, text: str, message: str) -> None:
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(CommandError, match=r"bad\.yaml") as refused:
            call_command("embedded_apply", str(tmp_path))
        assert message in str(refused.value)
        assert not EmbeddedObject.objects.exists()
