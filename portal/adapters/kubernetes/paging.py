"""All items of a kind in pieces: complete or an error, never less.

Not in charge of: claims, of which a control plane has few enough for one answer (observe).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from portal.adapters.kubernetes.client import Client
from portal.adapters.kubernetes.refusals import Action
from portal.ports import RetryableError

PAGE = 500
ATTEMPTS = 3


def pages(client: Client, action: Action, path: str, query: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The pages of a list, all of one state. RetryableError `cursor-expired`: that state was compacted meanwhile."""
    following = ""
    while True:
        more = {"continue": following} if following else {}
        page = client.get(action, path, {**query, "limit": str(PAGE), **more})
        yield page
        following = (page.get("metadata") or {}).get("continue") or ""
        if not following:
            return


def every_item(client: Client, action: Action, path: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """All items; begun anew when the state that was being read is compacted, a few times."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return [item for page in pages(client, action, path, query) for item in page.get("items") or ()]
        except RetryableError as error:
            if error.code != "cursor-expired" or attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")
