"""Decisions and votes that were forged in a consistent way, removed or added are found by what the audit log says."""

from __future__ import annotations

from io import StringIO

import msgspec
import pytest
from django.core.management import CommandError, call_command

from portal.domain.decision import Inputs, digest, from_json, to_json
from portal.models import AuditEvent, DecisionRecord, Request, Vote
from portal.services import approving, deciding
from portal.services.attesting import attest
from portal.services.explaining import explain
from tests.sample import actor, model_body
from tests.tampering import tamper
from tests.world import submit, work

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def voted(sample: None) -> Request:
    """A request with a decision of every moment, and two votes."""
    request = submit("ada", model_body(environment="prod"))
    approving.vote(request.pk, "approve", "fine", acting=actor("frank"))
    approving.vote(request.pk, "approve", acting=actor("heidi"))
    work()
    return request


def found(request: Request) -> list[str]:
    """The paths at which rows and log differ; the command then fails and names each."""
    paths = [difference.path for difference in attest(request.pk)]
    shown = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("explain", str(request.pk), stdout=shown)
    assert failed.value.returncode == 1
    assert all(f"differs at {path}" in shown.getvalue() for path in paths)
    return paths


def moment(request: Request, name: str) -> int:
    return DecisionRecord.objects.get(request=request, moment=name).pk


def test_rows_as_they_were_written_are_those_of_the_log(voted: Request) -> None:
    assert attest(voted.pk) == []
    shown = StringIO()
    call_command("explain", str(voted.pk), stdout=shown)
    assert "decisions and votes are those of the audit log" in shown.getvalue()


def test_every_way_a_request_ends_is_in_the_log(sample: None) -> None:
    """Denied at once, rejected by a person, denied after the votes: nothing differs."""
    denied = submit("carol", model_body(team="ads", gpus=2))
    rejected = submit("ada", model_body("other", environment="prod"))
    approving.vote(rejected.pk, "reject", "too dear", acting=actor("frank"))
    assert (denied.state, Request.objects.get(pk=rejected.pk).state) == ("Denied", "Rejected")
    assert attest(denied.pk) == attest(rejected.pk) == []


def test_a_consistent_forgery_is_shown(sample: None) -> None:
    """Inputs, digest, result and outcome all fit each other, so that making it again comes out the same."""
    request = submit("ada", model_body(gpus=3))
    record = DecisionRecord.objects.get(request=request)
    inputs = from_json(Inputs, record.inputs)
    forged = msgspec.structs.replace(inputs, spec={**inputs.spec, "replicas": {"min": 1, "max": 1}})
    decision = deciding.decide(forged)
    assert (record.outcome, decision.outcome) == ("NeedsApproval", "Allowed")
    plain = to_json(forged)
    tamper(
        "UPDATE portal_decisionrecord SET inputs=%s::jsonb, inputs_digest=%s, result=%s::jsonb, outcome=%s WHERE id=%s",
        [_json(plain), digest(plain), _json(to_json(decision)), decision.outcome, record.pk],
    )
    [explanation] = explain(request.pk)
    assert explanation.differences == [], "the forgery is a consistent one"
    decision_at = f"/decisions/{record.pk}"
    assert found(request) == [f"{decision_at}/inputsDigest", f"{decision_at}/outcome", "/stages/1"]


@pytest.mark.parametrize("name", ["approval", "delivery"])
def test_a_removed_decision_is_shown(voted: Request, name: str) -> None:
    pk = moment(voted, name)
    tamper("DELETE FROM portal_decisionrecord WHERE id = %s", [pk])
    assert found(voted) == [f"/decisions/{pk}"]


def test_decisions_that_are_all_gone_are_shown(sample: None) -> None:
    request = submit("ada", model_body())
    pk = moment(request, "submission")
    tamper("DELETE FROM portal_decisionrecord WHERE request_id = %s", [request.pk])
    assert explain(request.pk) == []
    assert found(request) == ["/decisions", f"/decisions/{pk}"]
    tamper("DELETE FROM portal_auditevent WHERE request_id = %s", [request.pk])
    assert found(request) == ["/decisions"], "nothing is left that could differ, but every request has a decision"


def test_an_added_decision_is_shown(voted: Request) -> None:
    added = DecisionRecord.objects.get(pk=moment(voted, "delivery"))
    added.pk = None
    added.save(force_insert=True)
    assert found(voted) == [f"/decisions/{added.pk}"]


def test_a_decision_of_another_moment_is_shown(voted: Request) -> None:
    pk = moment(voted, "delivery")
    tamper("UPDATE portal_decisionrecord SET moment = 'approval' WHERE id = %s", [pk])
    assert found(voted) == [f"/decisions/{pk}/moment"]


def test_a_decision_at_another_time_is_shown(voted: Request) -> None:
    tamper(
        "UPDATE portal_decisionrecord SET decided_at = decided_at - interval '1 day' WHERE request_id=%s", [voted.pk]
    )
    assert [[d.path for d in explanation.differences] for explanation in explain(voted.pk)] == [["/decidedAt"]] * 3


VOTES = [
    pytest.param("answer = 'reject'", id="the answer"),
    pytest.param("comment = 'never'", id="the comment"),
    pytest.param("voter_id = (SELECT id FROM auth_user WHERE username = 'ada')", id="the voter"),
    pytest.param("stage_id = %(other)s", id="the stage"),
    pytest.param("decision_id = (SELECT max(id) FROM portal_decisionrecord)", id="the decision that was seen"),
]


@pytest.mark.parametrize("change", VOTES)
def test_an_altered_vote_is_shown_as_it_is_and_as_it_was(voted: Request, change: str) -> None:
    vote = Vote.objects.filter(stage__request=voted).earliest("id")
    stage = vote.stage
    stage.pk, stage.position, stage.code = None, 99, "another"
    stage.save(force_insert=True)
    tamper(f"UPDATE portal_vote SET {change.replace('%(other)s', str(stage.pk))} WHERE id = %s", [vote.pk])  # noqa: S608
    assert found(voted) == ["/stages/1", "/votes", "/votes"], "the stage that was added beside it is shown too"
    [_, now, before] = attest(voted.pk)
    assert (
        before.again
        == f"approve by frank on stage {Vote.objects.latest('id').stage.code}, of decision "
        + str(moment(voted, "submission"))
        + ": fine"
    )
    assert now.stored and now.stored != before.again


def test_a_removed_vote_is_shown(voted: Request) -> None:
    vote = Vote.objects.filter(stage__request=voted).earliest("id")
    tamper("DELETE FROM portal_vote WHERE id = %s", [vote.pk])
    assert found(voted) == ["/votes"]


def test_an_added_vote_is_shown(sample: None) -> None:
    """The way past the four eyes: a vote that nobody cast."""
    request = submit("ada", model_body(environment="prod"))
    vote = approving.vote(request.pk, "approve", acting=actor("frank")).stages.get().votes.get()
    vote.pk, vote.voter = None, actor("heidi").user
    vote.save(force_insert=True)
    assert found(request) == ["/votes"]


def test_an_event_of_an_odd_form_is_a_difference(voted: Request) -> None:
    """Whoever can write rows can append events too."""
    event = AuditEvent.objects.filter(request=voted, verb="request.deliver").latest("id")
    event.pk, event.data = None, {"decision": {}, "inputs": [], "from": []}
    event.save(force_insert=True)
    assert found(voted) == ["/decisions/{}"]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("quorum = 1", "one yes would be enough"),
        ("\"group\" = 'auditors'", "other people would be asked"),
        ("code = 'other'", "another rule would have asked"),
    ],
)
def test_an_altered_stage_is_shown(sample: None, change: str, reason: str) -> None:
    request = submit("ada", model_body(environment="prod"))
    assert attest(request.pk) == []
    tamper(f"UPDATE portal_stage SET {change} WHERE request_id = %s", [request.pk])  # noqa: S608 - of this table
    assert found(request) == ["/stages/1"], reason


def test_a_removed_stage_is_shown(sample: None) -> None:
    request = submit("ada", model_body(environment="prod"))
    tamper("DELETE FROM portal_stage WHERE request_id = %s", [request.pk])
    assert found(request) == ["/stages/1"]
