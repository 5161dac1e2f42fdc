"""People and groups in Backstage's catalog (catalog API: entities/by-name and entities/by-refs, read 2026-12).

In charge of: a person's groups with all groups above them, complete or an error. Not in charge of: what they mean.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from portal.adapters.backstage.reading import fetch
from portal.ports import DirectoryPerson, RetryableError

MAX_DEPTH = 20  # groups above groups
MAX_GROUPS = 1_000


class BackstageDirectory:
    """`token` is a static one of backend.auth.externalAccess; `person_id` the annotation that stays with a person, ""
    for metadata.uid (which changes when an entity is registered anew)."""

    def __init__(self, url: str, token: str, person_id: str = "") -> None:
        self._catalog, self._token, self._person_id = f"{url}/api/catalog", token, person_id

    def person(self, ref: str) -> DirectoryPerson | None:
        kind, _, rest = ref.partition(":")
        namespace, _, name = rest.partition("/")
        path = "/".join(quote(step, safe="") for step in (kind, namespace, name))
        status, entity = fetch("GET", f"{self._catalog}/entities/by-name/{path}", self._token)
        if status == 404:
            return None
        if status != 200 or not isinstance(entity, dict):
            raise RetryableError("backstage-unavailable", f"its catalog answered {status}; is BACKSTAGE_TOKEN right?")
        profile = _at(entity, "spec", "profile")
        return DirectoryPerson(
            ref=ref,
            person_id=self._id(entity),
            name=_text(profile, "displayName") or name,
            email=_text(profile, "email"),
            groups=tuple(sorted(self._with_those_above(_related(entity, "memberOf")))),
        )

    def _id(self, entity: dict[str, Any]) -> str:
        metadata = _at(entity, "metadata")
        found = _text(_at(metadata, "annotations"), self._person_id) if self._person_id else _text(metadata, "uid")
        if not found:
            what = f"annotation {self._person_id}" if self._person_id else "metadata.uid"
            raise RetryableError("backstage-unavailable", f"the entity has no {what} to know the person by")
        return found[:255]

    def _with_those_above(self, groups: set[str]) -> set[str]:
        found, new = set(groups), set(groups)
        for _ in range(MAX_DEPTH):
            if not new:
                return found
            above = {parent for group in self._entities(sorted(new)) for parent in _related(group, "childOf")}
            new = above - found
            found |= new
            if len(found) > MAX_GROUPS:
                break
        raise RetryableError(
            "backstage-unavailable", f"groups are nested over {MAX_DEPTH} levels, or are more than {MAX_GROUPS}"
        )

    def _entities(self, refs: list[str]) -> list[dict[str, Any]]:
        """Those of these groups that exist; a group that is only named has none above it."""
        body = {"entityRefs": refs, "fields": ["kind", "metadata.name", "metadata.namespace", "relations"]}
        status, answer = fetch("POST", f"{self._catalog}/entities/by-refs", self._token, body)
        items = answer.get("items") if isinstance(answer, dict) else None
        if status != 200 or not isinstance(items, list) or len(items) != len(refs):
            raise RetryableError("backstage-unavailable", f"its catalog answered {status} to a question for groups")
        return [item for item in items if isinstance(item, dict)]


def _related(entity: dict[str, Any], kind: str) -> set[str]:
    rows = entity.get("relations")
    found = (row.get("targetRef") for row in rows if isinstance(row, dict) and row.get("type") == kind) if rows else ()
    return {ref.lower() for ref in found if isinstance(ref, str)}


def _at(value: Any, *steps: str) -> dict[str, Any]:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""
