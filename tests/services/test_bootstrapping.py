"""The first load: what is wrong is named and nothing is written; a second load changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from portal.domain import strict_yaml
from portal.models import AuditEvent, Quota, Team
from portal.services.bootstrapping import bootstrap
from portal.services.errors import ServiceError
from tests.sample import SAMPLE

pytestmark = pytest.mark.django_db


def written(folder: Path, content: dict[str, Any]) -> Path:
    """A bootstrap file with the shipped policies and prices."""
    policies = SAMPLE.parent.parent / "policies"
    content = {
        **content,
        "bundle": str(policies / "default.yaml"),
        "prices": str(policies / "sample-prices.csv"),
        "directory": str(policies / "sample-directory.yaml"),
    }
    path = folder / "first.yaml"
    path.write_text(strict_yaml.dump(content))
    return path


def sample() -> dict[str, Any]:
    content: dict[str, Any] = strict_yaml.parse(SAMPLE.read_text(), "sample")
    return content


def _chain_of_ten(content: dict[str, Any]) -> None:
    for depth in range(10):
        parent = f"deep-{depth - 1}" if depth else "acme"
        content["teams"].append({"slug": f"deep-{depth}", "title": "Deep", "parent": parent})


def _group_too_small(content: dict[str, Any]) -> None:
    content["groups"]["platform-approvers"] = ["frank"]


def _unknown_member(content: dict[str, Any]) -> None:
    content["teams"][1]["members"].append({"user": "mallory", "role": "owner"})


def _parent_after_child(content: dict[str, Any]) -> None:
    content["teams"].insert(0, {"slug": "early", "title": "Early", "parent": "late"})


def _money_as_a_number(content: dict[str, Any]) -> None:
    content["budgets"][0]["hard"] = 80000


def _soft_above_hard(content: dict[str, Any]) -> None:
    content["budgets"][0]["soft"] = "90000"


def _unknown_member_of_the_file(content: dict[str, Any]) -> None:
    content["quotes"] = []


def _namespace_rule_that_mixes_teams(content: dict[str, Any]) -> None:
    content["environments"][0]["namespaceRule"] = "shared"


@pytest.mark.parametrize(
    ("spoil", "names", "reason"),
    [
        (_chain_of_ten, "deep-", "every request locks the whole chain"),
        (_group_too_small, "platform-approvers", "a stage for two in a group of one could never pass (case 22)"),
        (_unknown_member, "mallory", "nobody is made by a typo"),
        (_parent_after_child, "late", "groups come before their teams"),
        (_money_as_a_number, "/budgets/0/hard", "money is a string and only a string"),
        (_soft_above_hard, "acme", "the soft line would never be reached"),
        (_unknown_member_of_the_file, "quotes", "a typo must not leave out what it meant"),
        (_namespace_rule_that_mixes_teams, "namespace", "each team has a namespace of its own"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path: Path, spoil: Any, names: str, reason: str) -> None:
    content = sample()
    spoil(content)
    with pytest.raises(ServiceError) as refusal:
        bootstrap(written(tmp_path, content), settings.OFFERINGS_PATH)
    assert names in refusal.value.message, reason
    assert (User.objects.count(), Team.objects.count(), AuditEvent.objects.count()) == (0, 0, 0), reason


def test_a_copy_whose_paths_lead_nowhere_says_which_and_why(tmp_path: Path) -> None:
    copy = tmp_path / "copy.yaml"
    copy.write_text(SAMPLE.read_text())
    with pytest.raises(ServiceError, match=r"/bundle: .*relative to the bootstrap file"):
        bootstrap(copy, settings.OFFERINGS_PATH)
    assert User.objects.count() == 0


def test_a_second_load_changes_nothing_and_says_where_the_file_is_behind(tmp_path: Path) -> None:
    content = sample()
    bootstrap(written(tmp_path, content), settings.OFFERINGS_PATH)
    events = AuditEvent.objects.count()
    Quota.objects.filter(team__slug="ads", dimension="gpu.l4").update(limit=2)
    notes = bootstrap(written(tmp_path, content), settings.OFFERINGS_PATH)
    assert [note for note in notes if "quota ads gpu.l4 is 2 by now" in note]
    assert Quota.objects.get(team__slug="ads", dimension="gpu.l4").limit == 2
    assert AuditEvent.objects.count() == events
