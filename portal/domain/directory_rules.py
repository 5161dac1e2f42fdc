"""What a group of the directory means here: whose team somebody is in, and for which group they approve.

In charge of: the file's form, and rights from a person's groups. Not in charge of: whether teams and groups exist
(services.loading), or where groups come from (adapters.backstage).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from portal.domain import strict_yaml
from portal.domain.decision import digest
from portal.domain.schema import validator_for

FILE = "directory.yaml"
API_VERSION = "portal.aiplatform.example.org/v1"
MAX_RULES = 10_000
# Backstage compares references in lower case; a name has 1 to 63 of these characters.
REF = r"^group:[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$"
_SHAPE: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "rules"],
    "properties": {
        "apiVersion": {"type": "string", "enum": [API_VERSION]},
        "kind": {"type": "string", "enum": ["DirectoryRules"]},
        "rules": {
            "type": "array",
            "maxItems": MAX_RULES,
            "items": {
                "type": "object",
                "required": ["group"],
                "properties": {
                    "group": {"type": "string", "pattern": REF},
                    "team": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"},
                    "role": {"type": "string", "enum": ["member", "owner"], "default": "member"},
                    "approvers": {"type": "string", "minLength": 1, "maxLength": 150},
                },
            },
        },
    },
}


class RulesError(ValueError):
    """The file is refused; the message has a line for each problem."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Members of `group` are in `team` with this role, or in the approver group `approvers`."""

    group: str
    team: str = ""
    role: str = "member"
    approvers: str = ""


@dataclass(frozen=True, slots=True)
class Rights:
    """Team -> role, and approver groups."""

    teams: dict[str, str] = field(default_factory=dict)
    approvers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one file, in its order."""

    digest: str
    rules: tuple[Rule, ...]

    def rights(self, groups: Iterable[str]) -> Rights:
        """What somebody in these groups is here. An owner by any rule is an owner."""
        of = {group.lower() for group in groups}
        teams: dict[str, str] = {}
        approvers = set()
        for rule in self.rules:
            if rule.group not in of:
                continue
            if rule.approvers:
                approvers.add(rule.approvers)
            elif teams.get(rule.team) != "owner":
                teams[rule.team] = rule.role
        return Rights(teams, frozenset(approvers))

    def groups_of(self, *, team: str = "", approvers: str = "") -> list[str]:
        """References of the groups that make a team, or an approver group, in the file's order."""
        return [rule.group for rule in self.rules if (rule.team, rule.approvers) == (team, approvers)]


def parse_rules(text: str, source: str = FILE) -> Rules:
    """The rules in a YAML text. Raises RulesError with every problem."""
    try:
        file = strict_yaml.parse(text, source)
    except strict_yaml.StrictYamlError as error:
        raise RulesError(str(error)) from None
    validator = validator_for(_SHAPE)
    if problems := validator.validate(file):
        raise RulesError("\n".join(f"{source}: {problem.pointer}: {problem.message}" for problem in problems))
    found = []
    wrong = []
    for place, row in enumerate(validator.with_defaults(file)["rules"]):
        if ("team" in row) == ("approvers" in row):
            wrong.append(f"{source}: /rules/{place}: {row['group']} names a team or approvers, one of the two")
        found.append(Rule(row["group"], row.get("team", ""), row["role"], row.get("approvers", "")))
    if wrong:
        raise RulesError("\n".join(wrong))
    return Rules(digest({FILE: text}), tuple(found))


NONE = Rules("", ())
"""No rules: nobody gets anything from the directory."""

_USER_REF = re.compile(REF.replace("^group:", "user:").rstrip("$") + r"\Z")


def is_user_ref(text: str) -> bool:
    """Whether this is a full reference to a user, as Backstage writes it in tokens."""
    return _USER_REF.match(text) is not None
