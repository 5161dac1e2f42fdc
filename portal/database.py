"""In charge of: turning a PostgreSQL address into Django's DATABASES, with pool and time limits.

Not in charge of: reading the address (portal/settings.py), starting a server (portal/running/postgres.py).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from portal.configuration import ConfigurationError

# libpq's parameters that may come in the address (PostgreSQL 18 documentation, 32.1.2, read 2026-12).
_PARAMETERS = frozenset(
    {
        "application_name",
        "connect_timeout",
        "host",
        "port",
        "sslcert",
        "sslkey",
        "sslmode",
        "sslrootcert",
        "target_session_attrs",
    }
)


def django_database(url: str, *, pool_size: int, statement_timeout: float, lock_timeout: float) -> dict[str, Any]:
    """DATABASES for a postgresql:// address; empty for "none". Timeouts in seconds.

    Raises ConfigurationError for an address without a database name or with a parameter that libpq does not know.
    """
    if url == "none":
        return {}
    parts = urlsplit(url)
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ConfigurationError(
            "DATABASE_URL names no database; it ends in /name, as in postgresql://host:5432/portal"
        )
    unknown = sorted(set(parameters) - _PARAMETERS)
    if unknown:
        raise ConfigurationError(
            f"DATABASE_URL has the parameter {unknown[0]!r}; allowed: {', '.join(sorted(_PARAMETERS))}"
        )
    limits = {
        "statement_timeout": round(statement_timeout * 1000),
        "lock_timeout": round(lock_timeout * 1000),
        "idle_in_transaction_session_timeout": 120_000,  # who hangs in a transaction must not hold locks for ever
    }
    return {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": name,
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": parameters.pop("host", None) or unquote(parts.hostname or ""),
            "PORT": parameters.pop("port", None) or str(parts.port or ""),
            "CONN_MAX_AGE": 0,  # the pool keeps connections
            "ATOMIC_REQUESTS": False,  # services open their own transactions
            "OPTIONS": {
                **parameters,
                "options": " ".join(f"-c {key}={value}" for key, value in limits.items()),
                "pool": {"min_size": 0, "max_size": pool_size, "timeout": 10},
            },
        }
    }
