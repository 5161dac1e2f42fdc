"""Names are valid, the same each time, and no two texts get the same one."""

import re
import subprocess
import sys
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from portal.rendering import names

LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")
BACKSTAGE_NAME = re.compile(r"(?=.{1,63}\Z)[A-Za-z0-9]+([-_.]+[A-Za-z0-9]+)*")
BACKSTAGE_TAG = re.compile(r"(?=.{1,63}\Z)[a-z0-9:+#]+(-[a-z0-9:+#]+)*")

odd_text = st.text(max_size=90)
label = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
written = st.one_of(odd_text, label, st.from_regex(r"[a-zA-Z](-[0-9a-f]{10}){1,2}", fullmatch=True))


@pytest.mark.parametrize(
    ("title", "start", "reason"),
    [
        ("data-team", "data-team", "a slug already: taken as it is"),
        ("a", "a", "one letter is a slug"),
        ("data_engineering_dept.", "data-engineering-dept-", "case 2: underscores and a last dot"),
        ("データ team", "team-", "case 2: Japanese and Latin"),
        ("データ", "x-", "case 2: nothing readable is left"),
        ("🚀 Launch", "launch-", "case 2: emoji"),
        ("Müller & Söhne", "muller-sohne-", "accents are dropped, the letters stay"),
        ("ibm-granite/granite-3.1-8b-instruct", "ibm-granite-granite-3-1-8b-instruct-", "case 3: a model id as a name"),
        ("7b", "x7b-", "some derived names must begin with a letter"),
        ("Search", "search-", "another title, so another slug than search"),
        ("{{7*7}}", "x7-7-", "case 18: text, never evaluated"),
        ("search-0123456789", "search-0123456789-", "looks like somebody's hash"),
        ("search\n", "search-", "a line end isn't part of a slug"),
        ("x" * 64, "x" * 52 + "-", "one character too long"),
        ("---", "x-", "separators only"),
    ],
)
def test_slug_of(title: str, start: str, reason: str) -> None:
    made = names.slug(title)
    hash_ = "[0-9a-f]{10}" if start.endswith("-") else ""
    assert re.fullmatch(re.escape(start) + hash_, made), reason


def test_an_empty_title_is_refused() -> None:
    with pytest.raises(names.NamingError, match="at least one character") as refused:
        names.slug("")
    assert refused.value.code == "name-empty"


@pytest.mark.parametrize("limit", [0, 11, 64])
def test_a_limit_without_room_for_a_hash_is_a_mistake_of_the_caller(limit: int) -> None:
    with pytest.raises(ValueError, match="it must be 12 to 63"):
        names.slug("search", limit)
    with pytest.raises(ValueError, match="it must be 12 to 63"):
        names.shorten("search", limit)


@given(title=written.filter(bool), limit=st.integers(12, 63))
@example(title="\ud800", limit=63)
@example(title="\x00", limit=12)
def test_every_slug_is_a_label_within_its_limit(title: str, limit: int) -> None:
    made = names.slug(title, limit)
    assert LABEL.fullmatch(made)
    assert len(made) <= limit
    assert names.is_label(made)
    assert names.slug(title, limit) == made


@given(one=written.filter(bool), other=written.filter(bool))
@example(one="Search", other="search")
@example(one="é", other="e\u0301")
def test_different_titles_have_different_slugs(one: str, other: str) -> None:
    assert (names.slug(one) == names.slug(other)) == (one == other)


@given(title=written.filter(bool))
def test_nobody_can_write_the_slug_that_another_title_gets(title: str) -> None:
    made = names.slug(title)
    assert (names.slug(made) == made) == (made == title)


def test_a_slug_is_the_same_in_every_process() -> None:
    program = "from portal.rendering import names; print(names.slug('データ team'))"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == names.slug("データ team") == "team-39c486526d"


@given(name=st.from_regex(r"[a-z]([-a-z0-9]{0,80}[a-z0-9])?", fullmatch=True), limit=st.integers(12, 63))
def test_a_shortened_label_is_a_label(name: str, limit: int) -> None:
    made = names.shorten(name, limit)
    assert len(made) <= limit
    assert LABEL.fullmatch(made)
    assert made == name or len(made) == limit
    assert names.shorten(made, limit) == made or made != name, "what was shortened can't be written by somebody else"


def test_a_shortened_name_is_not_what_another_name_stays() -> None:
    long = "search-" * 12 + "x"
    made = names.shorten(long, 63)
    assert made != long
    assert names.shorten(made, 63) != made
    assert names.shorten(made + "x", 63) != made


@pytest.mark.parametrize(
    ("pattern", "team", "environment", "expected", "reason"),
    [
        ("{team}-{environment}", "search", "dev", "search-dev", "the usual rule"),
        ("{team}-{environment}", "data-eng", "dev", "data-eng-dev", "a hyphen in the team is not ambiguous"),
        ("{environment}-{team}", "data-eng", "dev", "dev-data-eng", "the other order"),
        ("ai-{team}", "search", "dev", "ai-search", "one environment on a control plane of its own"),
        ("ai-{team}-x-{environment}-y", "search", "dev", "ai-search-x-dev-y", "text everywhere"),
        ("{team}{environment}", "a", "b", "ab", "no separator"),
    ],
)
def test_namespace_of(pattern: str, team: str, environment: str, expected: str, reason: str) -> None:
    assert names.namespace(pattern, team, environment) == expected, reason


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("{environment}", "must hold {team} once"),
        ("{team}-{team}", "must hold {team} once"),
        ("{team}-{environment}-{environment}", "may hold {environment} once"),
        ("{team}-{region}", "uses ['region']"),
        ("{team.__class__}", "uses ['team.__class__']"),
        ("{}", "uses ['']"),
        ("{team!r}", "plain placeholders only"),
        ("{team:>99999999}", "plain placeholders only"),
        ("{team", "can't be read"),
        ("Team-{team}", "doesn't give a namespace"),
        ("{team}-", "doesn't give a namespace"),
        ("{{team}}-{team}", "doesn't give a namespace"),
        ("", "must hold {team} once"),
        ("kube-{team}", "belongs to the cluster"),
    ],
)
def test_a_wrong_rule_is_refused(pattern: str, says: str) -> None:
    with pytest.raises(names.NamingError, match=re.escape(says)) as refused:
        names.check_namespace_rule(pattern)
    assert refused.value.code == "namespace-rule"
    assert repr(pattern) in refused.value.message


@pytest.mark.parametrize(
    ("team", "environment", "namespace"),
    [
        ("kube", "system", "kube-system"),
        ("crossplane", "system", "crossplane-system"),
        ("openshift", "x", "openshift-x"),
    ],
)
def test_no_team_gets_a_namespace_of_the_cluster(team: str, environment: str, namespace: str) -> None:
    with pytest.raises(names.NamingError, match=f"'{namespace}'.*prefix") as refused:
        names.namespace("{team}-{environment}", team, environment)
    assert refused.value.code == "namespace-reserved"


@pytest.mark.parametrize(
    ("team", "environment"), [("Data Team", "dev"), ("search", "de v"), ("", "dev"), ("7b", "dev")]
)
def test_only_slugs_become_namespaces(team: str, environment: str) -> None:
    with pytest.raises(names.NamingError, match="must be a-z, 0-9 and '-'") as refused:
        names.namespace("{team}-{environment}", team, environment)
    assert refused.value.code == "name-invalid"


rules = st.sampled_from(
    ["{team}-{environment}", "{environment}-{team}", "{team}{environment}", "ai-{team}-in-{environment}"]
)
few_letters = st.from_regex(r"a([-a]{0,4}a)?", fullmatch=True)


@given(pattern=rules, one=st.tuples(few_letters, few_letters), other=st.tuples(few_letters, few_letters))
@example(pattern="{team}-{environment}", one=("a", "b-c"), other=("a-b", "c"))
def test_two_teams_never_share_a_namespace(pattern: str, one: tuple[str, str], other: tuple[str, str]) -> None:
    same = names.namespace(pattern, *one) == names.namespace(pattern, *other)
    assert same == (one == other)


@given(pattern=rules, team=written.filter(bool).map(names.slug), environment=written.filter(bool).map(names.slug))
def test_every_namespace_is_a_label(pattern: str, team: str, environment: str) -> None:
    assert LABEL.fullmatch(names.namespace("x-" + pattern, team, environment))


PREDICTOR = ("{name}-predictor-{namespace}",)


@pytest.mark.parametrize(
    ("max_length", "derived", "expected", "reason"),
    [
        (40, (), 40, "the offering's own limit"),
        (100, (), 63, "Kubernetes' limit"),
        (40, ("{name}-cluster",), 40, "the derived name fits anyway"),
        (63, ("{name}-cluster",), 55, "case 1: name-cluster"),
        (63, PREDICTOR, 42, "case 1: 63 - len('-predictor-search-dev')"),
        (63, ("{name}-{name}",), 31, "the name twice"),
        (63, ("{name}-cluster", *PREDICTOR), 42, "the tightest of several"),
    ],
)
def test_limit_of_a_claim_name(max_length: int, derived: tuple[str, ...], expected: int, reason: str) -> None:
    assert names.claim_name_limit("search-dev", max_length, derived) == expected, reason


def test_a_name_that_only_just_fits_is_taken_and_one_more_is_refused_with_the_limit() -> None:
    assert names.claim_name("x" * 42, "search-dev", 63, PREDICTOR) == "x" * 42
    with pytest.raises(
        names.NamingError, match=r"has 43 characters; here 42 are allowed, as \{name\}-predictor"
    ) as refused:
        names.claim_name("x" * 43, "search-dev", 63, PREDICTOR)
    assert refused.value.code == "name-too-long"
    offered = re.search(r"For example '(.*)'", refused.value.message)
    assert offered is not None
    assert names.claim_name(offered[1], "search-dev", 63, PREDICTOR) == offered[1]


@pytest.mark.parametrize(
    "name", ["Chat", "chat_bot", "ibm-granite/granite-3.1", "-chat", "chat-", "7b", "", "ch at", "chat\n"]
)
def test_a_name_that_is_no_label_is_refused_with_one_that_would_pass(name: str) -> None:
    with pytest.raises(names.NamingError, match="must be a-z, 0-9 and '-'") as refused:
        names.claim_name(name, "search-dev", 40)
    assert refused.value.code == "name-invalid"
    assert not name or names.slug(name, 40) in refused.value.message


@pytest.mark.parametrize("derived", ["{namespace}-x", "{name}-{uid}", "{name", "{name:>50}"])
def test_a_derived_name_with_other_placeholders_is_refused(derived: str) -> None:
    with pytest.raises(names.NamingError) as refused:
        names.claim_name_limit("search-dev", 40, (derived,))
    assert refused.value.code == "derived-name"


def test_a_namespace_that_leaves_no_room_says_what_to_shorten() -> None:
    with pytest.raises(names.NamingError, match="Shorten the team's slug") as refused:
        names.claim_name_limit("n" * 60, 40, PREDICTOR)
    assert refused.value.code == "name-no-room"


@pytest.mark.parametrize(
    ("parts", "expected", "reason"),
    [
        (("search", "dev", "chat", "modeldeployments"), "chat.search.dev.modeldeployments", "fits"),
        (("データ team", "dev", "chat", "modeldeployments"), r"chat\.team\.dev\.modeldeployments-[0-9a-f]{10}", "odd"),
        (("s" * 40, "dev", "chat", "modeldeployments"), r"chat\.s{40}\.dev\.[a-z]+-[0-9a-f]{10}", "too long"),
    ],
)
def test_entity_name_of(parts: tuple[str, str, str, str], expected: str, reason: str) -> None:
    assert re.fullmatch(expected, names.entity_name(*parts)), reason


@given(one=st.tuples(*[written] * 4), other=st.tuples(*[written] * 4))
def test_entity_names_are_valid_and_different_without_regard_to_case(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    first, second = names.entity_name(*one), names.entity_name(*other)
    assert BACKSTAGE_NAME.fullmatch(first)
    assert first == names.entity_name(*one) == first.lower()
    assert (first == second) == (one == other)


@given(one=st.tuples(*[written] * 2), other=st.tuples(*[written] * 2))
def test_system_names_are_valid_and_different_without_regard_to_case(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    first, second = names.system_name(*one), names.system_name(*other)
    assert BACKSTAGE_NAME.fullmatch(first)
    assert first == names.system_name(*one) == first.lower()
    assert (first == second) == (one == other)


@given(parts=st.tuples(*[written] * 4), ids=st.tuples(st.uuids(), st.uuids()))
def test_what_is_kept_apart_has_a_name_that_nobody_else_gets(
    parts: tuple[str, str, str, str], ids: tuple[UUID, UUID]
) -> None:
    plain, *apart = [names.entity_name(*parts, apart=key) for key in ("", *map(str, ids))]
    assert all(BACKSTAGE_NAME.fullmatch(name) for name in apart)
    assert plain not in apart
    assert (apart[0] == apart[1]) == (ids[0] == ids[1])
    assert names.system_name(*parts[:2], apart="1.1") not in (plain, names.system_name(*parts[:2]))


@given(parts=st.lists(label, min_size=4, max_size=4), data=st.data())
def test_entities_of_different_places_have_different_names(parts: list[str], data: st.DataObject) -> None:
    other = data.draw(st.permutations(parts))
    same = names.entity_name(*parts) == names.entity_name(*other)
    assert same == (parts == other)


@pytest.mark.parametrize(
    ("text", "expected", "reason"),
    [
        ("", "", "empty is a valid value"),
        ("search", "search", "valid"),
        ("team-39c486526d", "team-39c486526d", "a slug with a hash stays what it is"),
        ("Ada.Lovelace_1", "Ada.Lovelace_1", "capitals, dot and underscore are valid"),
        ("ada@example.org", r"ada-example\.org_[0-9a-f]{10}", "an address isn't"),
        ("データ", "x_[0-9a-f]{10}", "nothing is left"),
        ("x" * 64, "x{52}_[0-9a-f]{10}", "too long"),
        ("_x", "x_[0-9a-f]{10}", "must begin with a letter or digit"),
    ],
)
def test_label_value_of(text: str, expected: str, reason: str) -> None:
    assert re.fullmatch(expected, names.label_value(text)), reason


@given(one=st.one_of(written, st.from_regex(r"x_[0-9a-f]{10}", fullmatch=True)), other=written)
def test_label_values_are_valid_and_different(one: str, other: str) -> None:
    assert LABEL_VALUE.fullmatch(names.label_value(one))
    assert (names.label_value(one) == names.label_value(other)) == (one == other)
    made = names.label_value(one)
    assert (names.label_value(made) == made) == (made == one)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LLM", "llm"),
        ("C++", "c++"),
        ("vector database", "vector-database"),
        ("データ", None),
        ("", None),
        ("a--b", "a-b"),
        ("y" * 70, "y" * 63),
        ("z" * 62 + " b", "z" * 62),
    ],
)
def test_tag_of(text: str, expected: str | None) -> None:
    assert names.tag(text) == expected


@given(text=odd_text)
def test_every_tag_is_valid(text: str) -> None:
    made = names.tag(text)
    assert made is None or BACKSTAGE_TAG.fullmatch(made)
