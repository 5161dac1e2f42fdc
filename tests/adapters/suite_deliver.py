"""What every control plane's writing half does. A subclass brings the fixture `plane` (see conftest for what it
serves)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from portal.ports import ControlPlane, TerminalError
from tests.adapters.widgets import INSTANCE, KINDS, NAMESPACE, ref, widget

INVALID: list[tuple[str, dict[str, Any], str]] = [
    ("out of range", widget(size=11), "/spec/size"),
    ("a number as text", widget(size="1"), "/spec/size"),
    ("a fraction for an integer", widget(size=1.5), "/spec/size"),
    ("true is not a number", widget(size=True), "/spec/size"),
    ("not in the enum", widget(color="green"), "/spec/color"),
    ("too long", widget(note="x" * 101), "/spec/note"),
    ("an unknown field", widget(colour="red"), "/spec/colour"),
    ("a CEL rule of the XRD", widget(size=3, most=2), "/spec/size"),
    ("a required field", {**widget(), "spec": {}}, "size"),
]


class DeliverSuite:
    """Apply, delete, namespaces, revisions."""

    def test_applying_makes_the_claim(self, plane: ControlPlane) -> None:
        applied = plane.apply(widget(size=2))
        claim = plane.get(ref())
        assert claim is not None
        assert (claim.uid, claim.generation) == (applied.uid, applied.generation)
        assert claim.spec["size"] == 2
        assert claim.labels[INSTANCE] == "i-1"
        assert claim.deletion_requested_at is None

    def test_applying_the_same_again_changes_nothing(self, plane: ControlPlane) -> None:
        first = plane.apply(widget(note="hello"))
        again = plane.apply(widget(note="hello"))
        assert (again.uid, again.generation) == (first.uid, first.generation)

    def test_a_changed_spec_is_a_new_generation_of_the_same_object(self, plane: ControlPlane) -> None:
        first = plane.apply(widget(size=1))
        second = plane.apply(widget(size=2))
        assert second.uid == first.uid
        assert second.generation > first.generation
        assert int(second.resource_version) > int(first.resource_version)

    def test_a_field_that_is_no_longer_applied_is_gone(self, plane: ControlPlane) -> None:
        plane.apply(widget(note="hello"))
        plane.apply(widget())
        claim = plane.get(ref())
        assert claim is not None
        assert "note" not in claim.spec

    @pytest.mark.parametrize("verb", ["apply", "dry_run"])
    def test_what_may_not_change_is_refused_in_the_schemas_words(self, plane: ControlPlane, verb: str) -> None:
        plane.apply(widget(kept="oak"))
        plane.apply(widget(kept="oak", size=2))
        with pytest.raises(TerminalError, match="kept is for life") as refusal:
            getattr(plane, verb)(widget(kept="elm"))
        assert (refusal.value.code, "/spec/kept" in refusal.value.message) == ("claim-invalid", True)
        claim = plane.get(ref())
        assert claim is not None
        assert claim.spec["kept"] == "oak"

    def test_labels_and_annotations_are_no_new_generation(self, plane: ControlPlane) -> None:
        first = plane.apply(widget())
        changed = widget()
        changed["metadata"]["annotations"] = {"portal.aiplatform.example.org/request": "r-2"}
        second = plane.apply(changed)
        claim = plane.get(ref())
        assert second.generation == first.generation
        assert claim is not None
        assert claim.annotations["portal.aiplatform.example.org/request"] == "r-2"

    def test_defaults_of_the_schema_are_filled_in(self, plane: ControlPlane) -> None:
        plane.apply(widget())
        claim = plane.get(ref())
        assert claim is not None
        assert claim.spec["color"] == "blue"

    def test_texts_arrive_as_they_are(self, plane: ControlPlane) -> None:
        for text in ("no", "0123", "1E6", "12:30:45", "{{7*7}}", "'; drop table x; --", "データ 🚀"):
            plane.apply(widget(note=text))
            claim = plane.get(ref())
            assert claim is not None
            assert claim.spec["note"] == text

    @pytest.mark.parametrize(("reason", "claim", "field"), INVALID, ids=[reason for reason, _, _ in INVALID])
    def test_what_is_invalid_is_refused_by_field(
        self, plane: ControlPlane, reason: str, claim: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(TerminalError) as refused:
            plane.apply(copy.deepcopy(claim))
        assert refused.value.code == "claim-invalid", reason
        assert field in refused.value.message, reason
        assert plane.get(ref()) is None, reason

    def test_an_invalid_change_leaves_what_is_there(self, plane: ControlPlane) -> None:
        before = plane.apply(widget(size=2))
        with pytest.raises(TerminalError):
            plane.apply(widget(size=11))
        claim = plane.get(ref())
        assert claim is not None
        assert (claim.spec["size"], claim.resource_version) == (2, before.resource_version)

    def test_a_strangers_object_of_that_name_is_left_alone(self, plane: ControlPlane) -> None:
        theirs = plane.apply(widget(instance="i-theirs", size=5))
        with pytest.raises(TerminalError) as refused:
            plane.apply(widget(instance="i-mine", size=1))
        claim = plane.get(ref())
        assert refused.value.code == "claim-name-taken"
        assert claim is not None
        assert (claim.uid, claim.spec["size"], claim.labels[INSTANCE]) == (theirs.uid, 5, "i-theirs")

    def test_a_namespace_that_is_missing(self, plane: ControlPlane) -> None:
        with pytest.raises(TerminalError) as refused:
            plane.ensure_namespace("nowhere", create=False, labels={})
        assert refused.value.code == "namespace-missing"
        with pytest.raises(TerminalError) as refused:
            plane.apply(widget(namespace="nowhere"))
        assert refused.value.code == "namespace-missing"
        plane.ensure_namespace("nowhere", create=True, labels={"team": "search"})
        plane.ensure_namespace("nowhere", create=False, labels={})
        assert plane.apply(widget(namespace="nowhere")).uid

    def test_revisions(self, plane: ControlPlane) -> None:
        assert plane.composition_revision("widgets").startswith("widgets-")
        with pytest.raises(TerminalError) as refused:
            plane.composition_revision("gadgets")
        assert refused.value.code == "composition-missing"

    def test_deleting_what_is_absent_is_fine(self, plane: ControlPlane) -> None:
        plane.delete(ref("nobody"), None)
        assert plane.list(KINDS)[0] == []

    def test_deleting_another_uid_leaves_what_is_there(self, plane: ControlPlane) -> None:
        plane.apply(widget())
        plane.delete(ref(), "00000000-0000-4000-8000-000000000000")
        claim = plane.get(ref())
        assert claim is not None
        assert claim.deletion_requested_at is None

    def test_deletion_is_foreground(self, plane: ControlPlane) -> None:
        """Without a controller nothing finishes it: the claim stays, marked, with its finalizers."""
        uid = plane.apply(widget()).uid
        plane.delete(ref(), uid)
        claim = plane.get(ref())
        assert claim is not None
        assert claim.deletion_requested_at is not None
        assert "foregroundDeletion" in claim.finalizers
        assert claim.ref.namespace == NAMESPACE
