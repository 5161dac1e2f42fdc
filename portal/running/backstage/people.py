"""In charge of: the people and teams of a bootstrap file as Backstage's User and Group entities.

Teams become groups with their parent, and each approver group becomes one. Whoever is in neither is a service, and not
a person. Not in charge of: what belonging to a group means to the portal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Entity = dict[str, Any]
API_VERSION = "backstage.io/v1alpha1"


def entities(sample: Path) -> list[Entity]:
    """User and Group entities of the file, which is one that `manage.py bootstrap` has taken in."""
    world = yaml.safe_load(sample.read_text(encoding="utf-8"))
    groups = [*(_team(team, world["teams"]) for team in world["teams"]), *map(_approvers, world["groups"])]
    users = [_user(user, world) for user in world["users"]]
    return [*groups, *(user for user in users if user["spec"]["memberOf"])]


def write(sample: Path, path: Path) -> None:
    """A catalog file of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(entities(sample), sort_keys=False, allow_unicode=True), encoding="utf-8")


def _team(team: dict[str, Any], teams: list[dict[str, Any]]) -> Entity:
    children = [other["slug"] for other in teams if other.get("parent") == team["slug"]]
    parent = {"parent": team["parent"]} if team.get("parent") else {}
    return _group(team["slug"], team["title"], {"type": "team", **parent, "children": children})


def _approvers(name: str) -> Entity:
    return _group(name, name.replace("-", " ").capitalize(), {"type": "approvers", "children": []})


def _group(name: str, title: str, spec: dict[str, Any]) -> Entity:
    profile = {"displayName": title}
    return {
        "apiVersion": API_VERSION,
        "kind": "Group",
        "metadata": {"name": name, "title": title},
        "spec": {"profile": profile, **spec},
    }


def _user(user: dict[str, Any], world: dict[str, Any]) -> Entity:
    name = user["username"]
    teams = [t["slug"] for t in world["teams"] if any(member["user"] == name for member in t.get("members", []))]
    approves = [group for group, members in world["groups"].items() if name in members]
    profile = {"displayName": user.get("firstName") or name, "email": user.get("email")}
    return {
        "apiVersion": API_VERSION,
        "kind": "User",
        "metadata": {"name": name},
        "spec": {
            "profile": {key: value for key, value in profile.items() if value},
            "memberOf": [*teams, *approves],
        },
    }
