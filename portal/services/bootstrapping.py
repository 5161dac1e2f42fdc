"""Loads the first teams, people, groups, environments, quotas, budgets, prices and policies from a file: once, audited.

What governs is governed: after this, quotas change by approved requests. A second run of the same file changes nothing;
a file that differs from what is there is refused where it would change a governed value, and says so.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction

from portal.domain import strict_yaml
from portal.domain.directory_rules import is_user_ref
from portal.models import Budget, Environment, Identity, Membership, Quota, Team
from portal.rendering.names import NamingError, check_namespace_rule
from portal.services import holding, journal, loading
from portal.services.errors import ServiceError
from portal.services.identities import BACKSTAGE
from portal.services.locks import team_chain

SYSTEM = "bootstrap"
_slug = {"type": "string", "pattern": r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}
_name = {"type": "string", "minLength": 1, "maxLength": 150}
_money = {"type": "string", "pattern": r"^[0-9]{1,12}(\.[0-9]{1,2})?$"}


def _rows(required: list[str], **properties: Any) -> dict[str, Any]:
    item = {"type": "object", "additionalProperties": False, "required": required, "properties": properties}
    return {"type": "array", "maxItems": 10_000, "items": item}


SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["users", "teams", "groups", "environments", "bundle", "prices"],
    "properties": {
        "users": _rows(
            ["username"],
            username=_name,
            email={"type": "string"},
            firstName={"type": "string"},
            lastName={"type": "string"},
            superuser={"type": "boolean"},
            backstage={"type": "string", "maxLength": 255},
        ),
        "teams": _rows(
            ["slug", "title"],
            slug=_slug,
            title={"type": "string", "minLength": 1, "maxLength": 200},
            parent=_slug,
            members=_rows(["user", "role"], user=_name, role={"enum": ["member", "owner"]}),
        ),
        "groups": {"type": "object", "additionalProperties": {"type": "array", "items": _name}},
        "environments": _rows(
            ["slug", "title"],
            slug=_slug,
            title={"type": "string", "minLength": 1, "maxLength": 200},
            controlPlane=_slug,
            namespaceRule={"type": "string"},
            createsNamespaces={"type": "boolean"},
            labels={"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}},
        ),
        "quotas": _rows(
            ["team", "dimension", "limit"],
            team=_slug,
            dimension={"type": "string", "pattern": r"^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$"},
            limit={"type": "integer", "minimum": 0, "maximum": 1_000_000_000},
        ),
        "budgets": _rows(
            ["team", "currency", "soft", "hard"],
            team=_slug,
            currency={"type": "string", "pattern": "^[A-Z]{3}$"},
            soft=_money,
            hard=_money,
        ),
        "bundle": {"type": "string"},
        "prices": {"type": "string"},
        "directory": {"type": "string"},
    },
}
_validator = jsonschema_rs.validator_for(SCHEMA)


def bootstrap(file: Path, offerings: list[Path]) -> list[str]:
    """Load `file` and what it names (paths relative to it), in one transaction. Returns notes for whoever ran it.

    Raises ServiceError with every problem; nothing was written then.
    """
    content = _read(file)
    with transaction.atomic():
        return _load(content, file.parent, offerings)


def _read(file: Path) -> dict[str, Any]:
    try:
        content = strict_yaml.parse(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError, strict_yaml.StrictYamlError) as error:
        raise ServiceError("bootstrap-wrong", f"{file}: {error}") from None
    problems = [
        f"{file}: /{'/'.join(map(str, error.instance_path))}: {error.message}"
        for error in _validator.iter_errors(content)
    ]
    if problems:
        raise ServiceError("bootstrap-wrong", "\n".join(problems[:50]))
    return dict(content)


def _load(content: dict[str, Any], folder: Path, offerings: list[Path]) -> list[str]:
    notes: list[str] = []
    users = {row["username"]: _user(row) for row in content["users"]}
    for name, members in sorted(content["groups"].items()):
        group, _ = Group.objects.get_or_create(name=name)
        group.user_set.add(*[_known(users, member, f"/groups/{name}") for member in members])
    for row in content["teams"]:
        _team(row, users)
    for row in content["environments"]:
        _environment(row)
    for row in content.get("quotas", []):
        notes += _quota(row)
    for row in content.get("budgets", []):
        notes += _budget(row)
    changed = loading.load_offerings(offerings, system=SYSTEM)
    notes += [f"offering {name} loaded" for name in changed]
    bundle = loading.load_bundle(_text(content, "bundle", folder), system=SYSTEM)
    review = loading.load_prices(_text(content, "prices", folder), bundle.currency, system=SYSTEM)
    if "directory" in content:
        loading.load_directory(_text(content, "directory", folder), system=SYSTEM)
    return [*notes, *[f"needs review, never free: {line}" for line in review]]


def _text(content: dict[str, Any], key: str, folder: Path) -> str:
    path: Path = folder / content[key]
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ServiceError(
            "bootstrap-wrong", f"/{key}: {path} can't be read ({error}). Its path is relative to the bootstrap file"
        ) from None


def _user(row: dict[str, Any]) -> User:
    user, created = User.objects.get_or_create(
        username=row["username"],
        defaults={
            "email": row.get("email", ""),
            "first_name": row.get("firstName", ""),
            "last_name": row.get("lastName", ""),
            "is_superuser": row.get("superuser", False),
            "is_staff": row.get("superuser", False),
        },
    )
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
        journal.record("person.create", system=SYSTEM, data={"user": user.username})
    if "backstage" in row:
        _identity(user, row["backstage"])
    return user


def _identity(user: User, ref: str) -> None:
    """Who signs in to Backstage by this name is this person: said here, and never guessed from equal names."""
    where = f"/users/{user.username}/backstage"
    if not is_user_ref(ref):
        raise ServiceError("bootstrap-wrong", f"{where}: '{ref}' is no reference such as user:default/ada")
    found, created = Identity.objects.get_or_create(issuer=BACKSTAGE, ref=ref, ended_at=None, defaults={"user": user})
    if found.user != user:
        raise ServiceError("bootstrap-wrong", f"{where}: {ref} is {found.user.username} already")
    if created:
        journal.record("identity.link", system=SYSTEM, data={"user": user.username, "ref": ref})


def _team(row: dict[str, Any], users: dict[str, User]) -> None:
    parent = Team.objects.filter(slug=row["parent"]).first() if "parent" in row else None
    if "parent" in row and parent is None:
        raise ServiceError(
            "bootstrap-wrong", f"/teams/{row['slug']}: no group '{row['parent']}' above it; list groups before teams"
        )
    team, created = Team.objects.get_or_create(slug=row["slug"], defaults={"title": row["title"], "parent": parent})
    try:
        team_chain(team)
    except ValueError as error:
        raise ServiceError("bootstrap-wrong", f"/teams/{row['slug']}: {error}") from None
    if created:
        journal.record("team.create", system=SYSTEM, team=team, data={"parent": row.get("parent")})
    for member in row.get("members", []):
        user = _known(users, member["user"], f"/teams/{row['slug']}")
        _, joined = Membership.objects.get_or_create(team=team, user=user, defaults={"role": member["role"]})
        if joined:
            journal.record("team.join", system=SYSTEM, team=team, data={"user": user.username, "role": member["role"]})


def _environment(row: dict[str, Any]) -> None:
    rule = row.get("namespaceRule", "{team}-{environment}")
    try:
        check_namespace_rule(rule)
    except NamingError as error:
        raise ServiceError("bootstrap-wrong", f"/environments/{row['slug']}: {error.message}") from None
    environment, created = Environment.objects.get_or_create(
        slug=row["slug"],
        defaults={
            "title": row["title"],
            "control_plane": _control_plane(row),
            "namespace_rule": rule,
            "creates_namespaces": row.get("createsNamespaces", True),
            "labels": row.get("labels", {}),
        },
    )
    if created:
        journal.record("environment.create", system=SYSTEM, data={"slug": environment.slug})


def _control_plane(row: dict[str, Any]) -> str:
    """The one that the file names, else the portal's only one."""
    named: str = row.get("controlPlane", settings.DEFAULT_CONTROL_PLANE)
    known = {settings.DEFAULT_CONTROL_PLANE, *settings.CONTROL_PLANES} - {""}
    if named in known:
        return named
    what = f"'{named}' is none of" if named else "is missing, and there are several:"
    message = f"{what} {', '.join(sorted(known))} (setting CONTROL_PLANES)"
    raise ServiceError("bootstrap-wrong", f"/environments/{row['slug']}/controlPlane: {message}")


def _quota(row: dict[str, Any]) -> list[str]:
    team = _known_team(row["team"], "/quotas")
    found = Quota.objects.filter(team=team, dimension=row["dimension"]).first()
    if found is not None:
        if found.limit == row["limit"]:
            return []
        return [f"quota {team.slug} {row['dimension']} is {found.limit} by now: the file's {row['limit']} was left out"]
    holding.set_quota(team, row["dimension"], row["limit"])
    data = {"team": team.slug, "dimension": row["dimension"], "before": None, "limit": row["limit"]}
    journal.record("quota.set", system=SYSTEM, team=team, data=data)
    return []


def _budget(row: dict[str, Any]) -> list[str]:
    team = _known_team(row["team"], "/budgets")
    if Budget.objects.filter(team=team).exists():
        return []
    if Decimal(row["soft"]) > Decimal(row["hard"]):
        lines = f"the soft line {row['soft']} is above the hard line {row['hard']}"
        raise ServiceError("bootstrap-wrong", f"/budgets: {team.slug}: {lines}")
    Budget.objects.create(
        team=team,
        currency=row["currency"],
        soft=row["soft"],
        hard=row["hard"],
        committed=holding.committed_below(team),
    )
    data = {"team": team.slug, "currency": row["currency"], "soft": row["soft"], "hard": row["hard"]}
    journal.record("budget.set", system=SYSTEM, team=team, data=data)
    return []


def _known(users: dict[str, User], name: str, where: str) -> User:
    if name not in users:
        raise ServiceError("bootstrap-wrong", f"{where}: '{name}' is not among /users")
    return users[name]


def _known_team(slug: str, where: str) -> Team:
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        raise ServiceError("bootstrap-wrong", f"{where}: no team '{slug}'")
    return team
