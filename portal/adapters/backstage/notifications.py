"""Notifications to Backstage's notifications backend: POST /api/notifications/notifications.

In charge of: its form and what its answers mean; not asking one that hangs again and again. Not in charge of: who is
told what (services.notifying). Source: @backstage/plugin-notifications-backend 0.6.11, service/router.cjs.js and
schema/openapi (read 2026-12-04): service credentials only; links are http or https; a notification of the same scope
and sender takes the place of the earlier one.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from portal.adapters.backstage.reading import fetch
from portal.ports import Notification, RetryableError, TerminalError

AGAIN_AFTER = 30.0  # seconds until one that is away is asked again
SLOW = 1.0  # seconds: whoever takes longer to fail would hold up workers that have other things to do


class BackstageNotifier:
    """`token` is a static one of backend.auth.externalAccess. May be used by several threads."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = f"{url}/api/notifications/notifications", token
        self._away = threading.Lock()
        self._not_before = float("-inf")

    def send(self, notification: Notification) -> None:
        began = time.monotonic()
        with self._away:
            left = self._not_before - began
        if left > 0:
            raise RetryableError("backstage-unavailable", "it did not answer a moment ago", left)
        try:
            status, answer = fetch("POST", self._url, self._token, _body(notification))
        except RetryableError as error:
            if (now := time.monotonic()) - began > SLOW:
                with self._away:
                    self._not_before = now + AGAIN_AFTER
            raise RetryableError(error.code, error.message, AGAIN_AFTER) from None
        if 200 <= status < 300:
            return
        said = _message(answer)
        # 401 and 403: somebody has to mend BACKSTAGE_TOKEN. A catalog that can't be asked who is in a group is a 400.
        if status in (401, 403) or (status == 400 and said.startswith("Failed to send")):
            raise RetryableError("backstage-unavailable", f"it answered {status}: {said}", AGAIN_AFTER)
        raise TerminalError("notification-refused", f"Backstage's notifications answered {status}: {said}")


def _body(notification: Notification) -> dict[str, Any]:
    recipients: dict[str, Any] = {"type": "entity", "entityRef": list(notification.recipients)}
    if notification.exclude:
        recipients["excludeEntityRef"] = list(notification.exclude)
    return {
        "recipients": recipients,
        "payload": {
            "title": notification.title,
            "description": notification.description,
            "link": notification.link,
            "severity": notification.severity,
            "topic": notification.topic,
            "scope": notification.scope,
        },
    }


def _message(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    found = error.get("message") if isinstance(error, dict) else None
    return found[:500] if isinstance(found, str) else "without saying why"
