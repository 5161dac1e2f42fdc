"""HTTP to Backstage: bounded in time and size, its failures as the ports' errors."""

from __future__ import annotations

import json
from typing import Any

import httpx

from portal.ports import RetryableError

TIMEOUT = httpx.Timeout(5.0)  # seconds, of each step
MAX_BYTES = 4 * 1024 * 1024


def fetch(method: str, url: str, token: str = "", body: Any = None) -> tuple[int, Any]:
    """Status and parsed JSON (None where there is none). Raises RetryableError `backstage-unavailable` when it doesn't
    answer, answers 429 or 5xx, or with something else than it should."""
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    try:
        with httpx.stream(method, url, headers=headers, json=body, timeout=TIMEOUT) as answer:
            content = b""
            for part in answer.iter_bytes():
                content += part
                if len(content) > MAX_BYTES:
                    raise RetryableError("backstage-unavailable", f"its answer has more than {MAX_BYTES} bytes")
            if answer.status_code == 429 or answer.status_code >= 500:
                raise RetryableError("backstage-unavailable", f"it answered {answer.status_code}")
            return answer.status_code, json.loads(content) if content.strip() else None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RetryableError("backstage-unavailable", f"it can't be reached: {type(error).__name__}") from None
    except ValueError:
        raise RetryableError("backstage-unavailable", "its answer is no JSON") from None
