"""The wires to Backstage: whose token it is, who people are, what they are told.

In charge of: making each of them from the settings. Not in charge of: what a person may do (services).
"""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from portal.adapters.backstage.directory import BackstageDirectory
from portal.adapters.backstage.notifications import BackstageNotifier
from portal.adapters.backstage.tokens import Tokens


@lru_cache(maxsize=4)
def _tokens(url: str, plugins: tuple[str, ...]) -> Tokens:
    return Tokens(url, frozenset(plugins))


def tokens() -> Tokens | None:
    """What knows Backstage's tokens; None where there is no Backstage."""
    return _tokens(settings.BACKSTAGE_URL, tuple(settings.BACKSTAGE_PLUGINS)) if settings.BACKSTAGE_URL else None


def directory() -> BackstageDirectory:
    """Backstage's catalog, asked for people and groups."""
    return BackstageDirectory(settings.BACKSTAGE_URL, settings.BACKSTAGE_TOKEN, settings.BACKSTAGE_PERSON_ID)


@lru_cache(maxsize=4)
def _notifier(url: str, token: str) -> BackstageNotifier:
    return BackstageNotifier(url, token)


def notifier() -> BackstageNotifier | None:
    """Backstage's notifications; None where there is no Backstage, or no token to show it."""
    if not settings.BACKSTAGE_URL or not settings.BACKSTAGE_TOKEN:
        return None
    return _notifier(settings.BACKSTAGE_URL, settings.BACKSTAGE_TOKEN)


__all__ = ["directory", "notifier", "tokens"]
