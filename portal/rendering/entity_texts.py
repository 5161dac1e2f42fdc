"""Texts and addresses in catalog entities: literal, of a bounded length, and no link that could do harm.

In charge of: what may stand in a page of Backstage. Not in charge of: which texts there are (rendering.entity).
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, urlsplit

MAX_TITLE = 100
MAX_TEXT = 1000  # of a description or an annotation's value
MAX_URL = 2000  # longer ones are no links: browsers and proxies cut them

_HOST_LABEL = re.compile(r"(?!xn--)[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")


def page(base_url: str, kind: str, key: str) -> str:
    """The address of a page of the portal: `page(base, "instances", id)`."""
    return f"{base_url.rstrip('/')}/{kind}/{quote(encodable(key), safe='')}/"


def is_web_address(text: str) -> bool:
    """Whether it may be a link. Only http and https: `javascript:` in a status must not run in somebody's browser. A
    host is dotted labels or an IPv4 address; what browsers read in other ways (IPv6, punycode, users) stays text."""
    if len(text) > MAX_URL or not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        return False
    host = parts.hostname or ""
    return parts.scheme in ("http", "https") and parts.username is None and port_is_fine and _is_host(host)


def _is_host(host: str) -> bool:
    labels = host.split(".")
    if all(_HOST_LABEL.match(label) for label in labels) and labels[-1][0].isalpha():
        return True
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


def shown(given: str, limit: int) -> str:
    """The text as it is, cut at `limit` characters with an ellipsis."""
    whole = encodable(given).strip()
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def encodable(text: str) -> str:
    """Half surrogates can't be sent as UTF-8; they become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
