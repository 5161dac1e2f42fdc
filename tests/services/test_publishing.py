"""The rows of the feed: entities of an instance, Systems that live as long as something is in them, names that stay."""

from __future__ import annotations

from collections import Counter

import pytest

from portal.domain.lifecycle import InstancePhase
from portal.models import AuditEvent, Environment, FeedEntity, FeedHead, Instance, OutboxRow, Quota, Team
from portal.services import feed, loading, observing, publishing, transitions
from portal.services.feed import Place
from tests.sample import model_body
from tests.world import ready, submit, work

pytestmark = pytest.mark.usefixtures("sample")

DATABASE = {
    "kind": "Create",
    "offering": "vectordatabases",
    "team": "search",
    "environment": "dev",
    "name": "docs",
    "spec": {
        "engine": "pgvector",
        "vectors": 100_000,
        "dimensions": 384,
        "precision": "float32",
        "dataClassification": "internal",
    },
}
RULES = """\
apiVersion: portal.aiplatform.example.org/v1
kind: DirectoryRules
rules:
  - {group: "group:acme/search-engineers", team: search}
  - {group: "group:default/search", team: search}
"""


def shown() -> dict[str, dict[str, object]]:
    """Reference -> spec of all that the feed has."""
    rows = FeedEntity.objects.filter(entity__isnull=False).order_by("sequence")
    return {row.ref: row.entity["spec"] for row in rows if row.entity is not None}


def here() -> Place:
    head = FeedHead.objects.get()
    return Place(head.feed, head.sequence)


def publish(instance: Instance) -> None:
    transitions.publish_later(instance)
    work()


def test_a_model_comes_with_its_api_into_the_system_of_its_team() -> None:
    ready("ada", model_body("chat"))
    model, api, system = (
        "component:default/chat.search.dev.modeldeployments",
        "api:default/chat.search.dev.modeldeployments",
        "system:default/search.dev",
    )
    specs = shown()
    assert set(specs) == {model, api, system}
    assert specs[model]["providesApis"] == [api]
    assert specs[model]["system"] == specs[api]["system"] == system


def test_what_others_refer_to_is_there_before_them() -> None:
    before = here()
    submit("ada", model_body("chat"))
    work()
    kinds = [entity["kind"] for entity in feed.changes(before).upserted]
    assert kinds == ["System", "API", "Component"]


def test_a_resource_has_no_api() -> None:
    ready("ada", DATABASE)
    assert sorted(shown()) == ["resource:default/docs.search.dev.vectordatabases", "system:default/search.dev"]


def test_a_system_goes_with_the_last_that_is_in_it() -> None:
    one, two = ready("ada", model_body("one")), ready("ada", DATABASE)
    before = here()
    observing.observe_gone(one.pk)
    work()
    name = "default/one.search.dev.modeldeployments"
    assert feed.changes(before).removed == [f"component:{name}", f"api:{name}"]
    assert "system:default/search.dev" in shown()
    before = here()
    observing.observe_gone(two.pk)
    work()
    last = ["resource:default/docs.search.dev.vectordatabases", "system:default/search.dev"]
    assert feed.changes(before).removed == last, "backwards: what refers to others goes before them"
    assert shown() == {}


def test_a_system_comes_again() -> None:
    observing.observe_gone(ready("ada", model_body("one")).pk)
    work()
    ready("ada", model_body("one"))
    assert len(shown()) == 3
    assert FeedEntity.objects.count() == 3, "the same rows: a removal and what came after it are never both told"


def test_teams_and_environments_have_systems_of_their_own() -> None:
    Quota.objects.filter(dimension="gpu.l4").update(limit=100)
    for who, team in (("ada", "search"), ("carol", "ads")):
        submit(who, model_body("chat", team=team))
    waiting = submit("ada", model_body("chat", environment="prod")).instance
    assert waiting is not None
    publish(waiting)
    assert {ref for ref in shown() if ref.startswith("system:")} == {
        "system:default/search.dev",
        "system:default/ads.dev",
        "system:default/search.prod",
    }


def test_numbers_are_unique_and_nothing_is_told_twice() -> None:
    before = here()
    instance = ready("ada", model_body("chat"))
    sequences = list(FeedEntity.objects.values_list("sequence", flat=True))
    assert len(set(sequences)) == len(sequences)
    assert max(sequences) == here().sequence
    at = here()
    publish(instance)
    assert here() == at, "it says so already"
    refs = Counter(entity["kind"] for entity in feed.changes(before).upserted)
    assert refs == {"System": 1, "API": 1, "Component": 1}


def test_one_publication_is_one_event_that_names_all() -> None:
    submit("ada", model_body("chat"))
    work()
    first = AuditEvent.objects.filter(verb="catalog.publish").earliest("id")
    assert [ref.partition(":")[0] for ref in first.data["refs"]] == ["system", "api", "component"]


def test_a_team_that_is_renamed_keeps_its_names() -> None:
    instance = ready("ada", model_body("chat"))
    before = set(shown())
    Team.objects.filter(slug="search").update(slug="seek", title="Seek")
    Environment.objects.filter(slug="dev").update(slug="development")
    publish(Instance.objects.get(pk=instance.pk))
    assert set(shown()) == before
    system = FeedEntity.objects.get(ref="system:default/search.dev").entity
    assert system is not None
    assert (system["metadata"]["title"], system["spec"]["owner"]) == ("Seek: Development", "group:default/seek")


def test_an_instance_that_is_renamed_keeps_its_name() -> None:
    instance = ready("ada", model_body("chat"))
    before = set(shown())
    Instance.objects.filter(pk=instance.pk).update(name="talk")
    publish(Instance.objects.get(pk=instance.pk))
    assert set(shown()) == before


def test_a_new_team_of_an_old_name_takes_nothing_over() -> None:
    old = ready("ada", model_body("chat"))
    Team.objects.filter(slug="search").update(slug="seek")
    new = Team.objects.create(slug="search", title="Search anew", parent=Team.objects.get(slug="acme"))
    copy = Instance.objects.get(pk=old.pk)
    copy.pk, copy.team, copy.namespace, copy.claim, copy.claim_uid = None, new, "search-anew-dev", None, ""
    copy._state.adding = True
    copy.pk = Instance._meta.pk.get_default()
    copy.save(force_insert=True)
    before = set(shown())
    publish(copy)
    assert before < set(shown())
    assert len(shown()) == 6
    mine = set(FeedEntity.objects.filter(instance=copy).values_list("ref", flat=True))
    assert not mine & before
    spec = shown()[next(ref for ref in mine if ref.startswith("component:"))]
    assert spec["system"] not in before, "and it is in a System of its own"
    again = set(shown())
    publish(copy)
    assert set(shown()) == again


def test_a_name_goes_to_the_next_when_its_owner_is_gone_although_nobody_said_so_yet() -> None:
    first = ready("ada", model_body("chat"))
    observing.observe_gone(first.pk)  # its row waits
    second = submit("ada", model_body("chat")).instance
    assert second is not None
    transitions.publish_later(second)
    rows = {row.payload["instance"]: row for row in OutboxRow.objects.filter(topic="publish", done_at=None)}
    publishing.publish(rows[str(second.pk)])
    publishing.publish(rows[str(first.pk)])
    assert len(shown()) == 3
    assert set(FeedEntity.objects.exclude(instance=None).values_list("instance", flat=True)) == {second.pk}


def test_an_owner_is_the_group_that_the_rules_name_first() -> None:
    loading.load_directory(RULES, system="tests")
    ready("ada", model_body("chat"))
    assert {spec["owner"] for spec in shown().values()} == {"group:acme/search-engineers"}


def test_everything_is_published_anew_when_rules_change() -> None:
    instance = ready("ada", model_body("chat"))
    observing.observe_gone(ready("ada", DATABASE).pk)
    work()
    loading.load_directory(RULES, system="tests")
    assert publishing.publish_all() == 1, "what is gone is not"
    work()
    assert {spec["owner"] for spec in shown().values()} == {"group:acme/search-engineers"}
    assert FeedEntity.objects.get(instance=instance, part="main").entity is not None


@pytest.mark.parametrize("phase", [phase for phase in InstancePhase if phase != InstancePhase.GONE])
def test_every_phase_is_shown_with_its_api(phase: InstancePhase) -> None:
    instance = ready("ada", model_body("chat"))
    transitions.set_phase(instance, phase, "as it is")
    work()
    states = {
        row.entity["metadata"]["annotations"]["portal.aiplatform.example.org/state"]
        for row in FeedEntity.objects.filter(instance=instance)
        if row.entity is not None
    }
    assert states == {phase.value}
