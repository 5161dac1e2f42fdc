"""The forms that make a draft: what every request is asked (team, environment, name), and an offering's own fields.

In charge of: one body for parse_draft from what was typed, and each problem at the field that it is about. Not in
charge of: an offering's fields (fields, posted) or what becomes of the draft (services).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from portal.domain.draft import MAX_REASON, Draft, parse_draft
from portal.domain.offerings import Offering
from portal.domain.schema import Problem
from portal.models import Document, Environment, Instance, Request
from portal.services.access import Actor, own_team_ids, visible_teams
from portal.web import posted
from portal.web.fields import MISSING, Choice, Field, give_ids, spec_fields
from portal.web.suggestions import suggest


@dataclass
class SummaryLine:
    """One line of the error summary; `target` is the id of the field that it links to, if there is one."""

    label: str
    message: str
    target: str


@dataclass
class DraftForm:
    """`kind` and `fixed` go into the body as they are; `fields` are asked for. `offering`: whose spec it is."""

    kind: str
    fields: list[Field]
    offering: Offering | None = None
    fixed: dict[str, Any] = field(default_factory=dict)
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    problems: list[Problem] = field(default_factory=list)  # of what was typed
    summary: list[SummaryLine] = field(default_factory=list)

    def __post_init__(self) -> None:
        give_ids(self.fields)

    @property
    def basics(self) -> list[Field]:
        """The short ones that every request begins with."""
        return [field for field in self.fields if field.pointer in ("/team", "/environment", "/name")]

    @property
    def rest(self) -> list[Field]:
        return [field for field in self.fields if field not in self.basics]

    def take(self, data: QueryDict) -> None:
        """Read a posted form."""
        self.key = data.get("idempotencyKey", "")[:200] or self.key
        self.problems = posted.take(self.fields, data)

    def draft(self) -> Draft | list[Problem]:
        """The draft, as far as it can be made. `self.problems` may hold more that is wrong."""
        body: dict[str, Any] = {"kind": self.kind, **self.fixed, "idempotencyKey": self.key}
        for each in self.fields:
            value, problems = posted.make(each)
            self.problems += problems
            if value is not MISSING:
                body[each.pointer[1:]] = value
        draft = parse_draft(body)
        return draft if isinstance(draft, Draft) else [*draft, *self._offering_problems(body)]

    def _offering_problems(self, body: dict[str, Any]) -> list[Problem]:
        """What is wrong with name and spec of a draft that is wrong elsewhere too: all is told at once."""
        if self.offering is None:
            return []
        spec = [("/spec", problem) for problem in self.offering.validate(body.get("spec", {}))]
        name = [("/name", problem) for problem in self.offering.check_name(body["name"], "")] if "name" in body else []
        return [Problem(at + problem.pointer, problem.code, problem.message) for at, problem in [*name, *spec]]

    def show(self, problems: Iterable[Problem]) -> None:
        """Place each problem at its field (the nearest one above, else the whole form), once."""
        fields = [found for top in self.fields for found in top.walk()]
        seen = set()
        for problem in problems:
            owner = _owner(fields, problem.pointer)
            below = problem.pointer[len(owner.pointer) :] if owner else ""
            message = f"{below[1:].replace('/', '.')}: {problem.message}" if below else problem.message
            if (owner.id if owner else "", message) in seen:
                continue
            seen.add((owner.id if owner else "", message))
            if owner:
                owner.errors.append(message)
            self.summary.append(SummaryLine(owner.label if owner else "", message, owner.id if owner else ""))


def merge(own: list[Problem], others: Iterable[Problem]) -> list[Problem]:
    """Problems of what was typed, and what the rules add elsewhere: a field that can't be read isn't "missing"."""
    told = {problem.pointer for problem in own}
    return own + [problem for problem in others if problem.pointer not in told]


def create_form(acting: Actor, offering: Offering, document: Document, source: Request | None = None) -> DraftForm:
    """The form to request an offering. `source`: a request whose values it starts from."""
    spec = _spec(offering, document, source.spec if source else MISSING)
    name = Field(
        "/name",
        "text",
        "Name",
        f"At most {offering.naming.max_length} of a-z, 0-9 and “-”.",
        required=True,
        schema={"maxLength": offering.naming.max_length},
        value=source.name if source else "",
    )
    places = [Choice(row.slug, f"{row.title} ({row.slug})") for row in Environment.objects.order_by("slug")[:200]]
    place = _choice_field("/environment", "Environment", "Where it runs, under which rules.", places)
    team = team_field(acting)
    if source:
        place.value = source.environment.slug if source.environment else ""
        team.value = source.team.slug
    fields = [team, place, name, spec, *reason_fields(source)]
    return DraftForm("Create", fields, offering, {"offering": offering.name})


def quota_form(acting: Actor, dimensions: list[str], team: str = "", dimension: str = "", limit: str = "") -> DraftForm:
    """The form to raise or lower a team's quota."""
    spec = Field(
        "/spec",
        "group",
        "New limit",
        required=True,
        children=[
            Field(
                "/spec/dimension",
                "text",
                "Dimension",
                "What is limited: an accelerator class, or memory of vector databases.",
                required=True,
                value=dimension,
                suggestions=[Choice(name, name) for name in dimensions],
            ),
            Field(
                "/spec/limit",
                "number",
                "Limit",
                "The new ceiling in all, not the difference. It can't be below what is held.",
                required=True,
                schema={"type": "integer", "minimum": 0, "maximum": 1_000_000_000},
                value=limit,
            ),
        ],
    )
    chosen = team_field(acting, "Whose limit it is.")
    chosen.value = team or chosen.value
    return DraftForm("Quota", [chosen, spec, *reason_fields()])


def change_form(offering: Offering, document: Document, instance: Instance, source: Request | None) -> DraftForm:
    """The form to change an instance: what it is, or what `source`, an earlier request of it, says."""
    spec = _spec(offering, document, source.spec if source else instance.spec)
    return DraftForm("Change", [spec, *reason_fields()], offering, {"instance": str(instance.pk)})


def switch_form(kind: str, instance_id: str) -> DraftForm:
    """The form to suspend or resume an instance."""
    reason = reason_fields()[0]
    reason.help = "Why now. It is kept with the request."
    return DraftForm(kind, [reason], fixed={"instance": instance_id})


def _spec(offering: Offering, document: Document, given: Any) -> Field:
    """The fields of a spec, without the one that requests of their own set."""
    schema = dict(offering.spec_schema)
    schema["properties"] = {
        name: node for name, node in schema.get("properties", {}).items() if name != offering.suspend
    }
    spec = spec_fields(schema, given)
    suggest(spec, document)
    return spec


def delete_form(instance_id: str) -> DraftForm:
    """The form to ask for an instance's deletion."""
    reason = reason_fields()[0]
    reason.help = "Why it isn't needed any more. It is kept with the request."
    return DraftForm("Delete", [reason], fixed={"instance": instance_id})


def team_field(acting: Actor, help_text: str = "Whose quota and budget it takes.") -> Field:
    """The teams that this person may ask for."""
    teams = visible_teams(acting)
    if not acting.is_admin:
        teams = teams.filter(pk__in=own_team_ids(acting))
    options = [Choice(team.slug, f"{team.title} ({team.slug})") for team in teams.order_by("slug")[:1000]]
    return _choice_field("/team", "Team", help_text, options)


def reason_fields(source: Request | None = None) -> list[Field]:
    reason = Field(
        "/reason",
        "area",
        "Reason",
        "What it is for. Whoever approves it reads this.",
        f"Optional, at most {MAX_REASON} characters",
        value=source.reason if source else "",
    )
    whom = "User name of the person you ask for, if it isn't you."
    return [reason, Field("/madeFor", "text", "Made for", whom, "Optional")]


def _choice_field(pointer: str, label: str, help_text: str, options: list[Choice]) -> Field:
    only = options[0].value if len(options) == 1 else ""
    choices = [Choice("", "Choose…"), *options]
    return Field(pointer, "choice", label, help_text, required=True, value=only, choices=choices)


def _owner(fields: list[Field], pointer: str) -> Field | None:
    found = [each for each in fields if pointer == each.pointer or pointer.startswith(each.pointer + "/")]
    return max(found, key=lambda each: len(each.pointer), default=None)
