"""No place, a fleet that vanishes, changes that would move what runs, deletion: what is then done and said."""

import pytest
from composition_function.contract import Outcome, SpecError

from tests.crossplane.samples import MODEL, PRODUCTION, QDRANT, Run, condition, counted_fleet, example, fleet


def test_nothing_fits_composes_nothing_and_says_why_for_each_cluster() -> None:
    run = Run(example(MODEL))
    run.claim["spec"] |= {"accelerator": {"class": "a100-80gb", "count": 2}, "replicas": {"min": 1, "max": 2}}
    outcome = run.step()
    assert (outcome.ready, outcome.resources) == (False, {})
    placed = condition(outcome, "Placed")
    assert (placed.status, placed.reason) == (False, "NoCapacity")
    assert "no cluster has room for 4 a100-80gb (2 x 2 on one node)" in placed.message
    codes = {reason["cluster"]: reason["code"] for reason in outcome.status["placement"]["reasons"]}
    assert codes == {"eu-central-1": "NoSuchPool", "eu-west-1": "NodeTooSmall", "us-east-1": "NoSuchPool"}
    assert all(cluster in placed.message for cluster in codes)
    assert outcome.ttl <= 10, "the fleet is not watched: it must look again soon"
    assert f"looked at again every {outcome.ttl} s" in placed.message, "how long it may take is said"


def test_an_empty_fleet_is_said_to_be_empty() -> None:
    classes = [item for item in fleet() if item["kind"] == "AcceleratorClass"]
    outcome = Run(example(MODEL), classes).step()
    assert condition(outcome, "Placed").reason == "NoFleet"
    assert outcome.resources == {}


def test_an_unknown_accelerator_class_is_an_error_that_names_the_known() -> None:
    run = Run(example(MODEL))
    run.claim["spec"]["accelerator"]["class"] = "tpu-v9"
    with pytest.raises(SpecError, match=r"ModelDeployment search-dev/chat: /spec/accelerator/class .* a100-80gb, h100"):
        run.step()


def test_a_fleet_that_vanishes_leaves_what_runs_as_it_is() -> None:
    """A failed read must not look like an order to delete."""
    run = Run(example(QDRANT))
    before = run.until_composed()
    run.objects = []
    outcome = run.step()
    assert {k: c.manifest for k, c in outcome.resources.items()} == {k: c.manifest for k, c in before.resources.items()}
    assert not outcome.ready
    assert condition(outcome, "Placed").reason == "HeldBack"
    assert outcome.status["placement"]["cluster"] == before.status["placement"]["cluster"]


def test_a_claim_that_is_being_deleted_keeps_its_resources_and_its_slot() -> None:
    run = Run(example(MODEL))
    before = run.until_composed()
    run.claim["metadata"]["deletionTimestamp"] = "2026-12-02T00:00:00Z"
    outcome = run.step()
    assert {k: c.manifest for k, c in outcome.resources.items()} == {k: c.manifest for k, c in before.resources.items()}
    assert outcome.status == before.status


def test_a_claim_deleted_before_it_was_placed_takes_nothing() -> None:
    run = Run(example(MODEL))
    run.claim["metadata"]["deletionTimestamp"] = "2026-12-02T00:00:00Z"
    assert run.step() == Outcome()


def test_a_lost_status_is_rebuilt_from_what_is_composed() -> None:
    """Backups of a control plane leave out status."""
    run = Run(example(MODEL))
    before = run.until_composed()
    del run.claim["status"]
    outcome = run.step()
    assert outcome.resources.keys() == before.resources.keys()
    assert outcome.status["placement"]["cluster"] == before.status["placement"]["cluster"]


def test_a_database_is_not_moved_by_a_change_of_its_spec() -> None:
    run = Run(example(QDRANT))
    before = run.until_composed()
    run.claim["spec"]["regions"] = ["us-east"]
    outcome = run.step()
    assert outcome.resources["qdrant"].manifest == before.resources["qdrant"].manifest
    assert "its data would be lost" in condition(outcome, "Placed").message


def test_a_model_moves_when_its_spec_says_so_and_another_place_is_free() -> None:
    run = Run(example(MODEL))
    run.until_composed()
    run.claim["spec"]["regions"] = ["us-east"]
    assert run.step().status["placement"]["cluster"] == "us-east-1"
    assert run.step().resources["llminferenceservice"].manifest["spec"]["providerConfigRef"]["name"] == "us-east-1"


def test_a_model_that_may_not_stay_and_has_nowhere_to_go_stays_as_it_was() -> None:
    run = Run(example(MODEL))
    before = run.until_composed()
    run.claim["spec"]["regions"] = ["the-moon"]
    outcome = run.step()
    assert outcome.resources["llminferenceservice"].manifest == before.resources["llminferenceservice"].manifest
    assert not outcome.ready
    assert "no other slot fits" in condition(outcome, "Placed").message


def test_one_unreadable_claim_of_somebody_else_stops_nobody() -> None:
    stranger = example(PRODUCTION)
    stranger["metadata"]["uid"] = "stranger"
    stranger["spec"]["replicas"] = {"min": 1}
    run = Run(example(MODEL), [*counted_fleet(), stranger])
    outcome = run.step()
    assert outcome.status["placement"]["cluster"]
    assert outcome.warnings == [
        "left out: ModelDeployment search-prod/assistant: /spec/replicas/max is missing; "
        "it must be an integer of at least 1"
    ]


def test_every_answer_has_every_condition() -> None:
    """A condition that is left out keeps its old value in Crossplane, and would go on saying that all is well."""
    run = Run(example(MODEL))
    seen = []

    def step() -> None:
        outcome = run.step()
        assert [c.type for c in outcome.conditions] == ["Placed", "WorkloadReady", "Suspended", "Approved"]
        seen.append(tuple(c.reason for c in outcome.conditions[:2]))

    step()
    step()
    run.claim["spec"]["regions"] = ["the-moon"]
    step()
    run.observed = {}
    del run.claim["status"]
    step()
    assert seen == [
        ("Reserved", "NotComposed"),
        ("Placed", "Progressing"),
        ("HeldBack", "HeldBack"),
        ("NoCapacity", "NotComposed"),
    ]


def test_a_slot_from_an_old_read_does_not_move_what_was_composed() -> None:
    """A call with a claim from before it had a slot chooses one, and the core writes that one to the newest claim. What
    is composed outweighs it: moved, the database would be there twice, the old one for ever, and empty."""
    run = Run(example(QDRANT))
    before = run.until_composed()
    there = before.status["placement"]["cluster"]
    other = {"eu-central-1": "eu-west-1", "eu-west-1": "eu-central-1"}[there]
    run.claim["status"]["placement"] |= {"cluster": other, "reasons": []}
    outcome = run.step()
    assert outcome.status["placement"]["cluster"] == there
    assert {k: c.manifest for k, c in outcome.resources.items()} == {k: c.manifest for k, c in before.resources.items()}
