"""Environment variables: wrong values are clear errors, all at once; defaults work; README.md has the table."""

from __future__ import annotations

import ast
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portal.configuration import ConfigurationError, read
from portal.database import django_database
from portal.management.commands.settings_table import with_table
from portal.secret import secret_key
from portal.settings import VARIABLES

ROOT = Path(__file__).resolve().parents[1]

WRONG = [
    ("DATABASE_URL", "mysql://db/portal", "postgresql://", "another database"),
    ("DATABASE_URL", "postgresql:///", "postgresql://", "nothing after the scheme"),
    ("DATABASE_URL", "postgresql://h:99999/x", "postgresql://", "no such port"),
    ("DATABASE_POOL_SIZE", "0", "from 1 to 500", "a pool without connections hangs"),
    ("DATABASE_LOCK_TIMEOUT", "1e3", "seconds from 0.1 to 3600", "no exponents"),
    ("DATABASE_STATEMENT_TIMEOUT", "-1", "seconds from 0.1 to 3600", "a negative time"),
    ("BROKER_URL", "amqp://host", "redis://", "a broker of another protocol"),
    ("SECRET_KEY", "short", "at least 32 characters", "a guessable key"),
    ("PUBLIC_URL", "portal.example.org", "https://", "no scheme"),
    ("BACKSTAGE_URL", "ftp://backstage.example.org", "https://", "another scheme"),
    ("BACKSTAGE_APP_URL", "backstage.example.org", "https://", "no scheme"),
    ("BACKSTAGE_TOKEN", "short", "at least 16 characters", "a guessable token"),
    ("BACKSTAGE_PLUGINS", "scaffolder,,x", "words separated by commas", "an empty item"),
    ("DIRECTORY_TTL_SECONDS", "0", "seconds from 1 to 86400", "each call would ask Backstage"),
    ("DIRECTORY_STALE_SECONDS", "for ever", "seconds from 1 to 604800", "rights without an end"),
    ("PUBLIC_URL", "https://portal.example.org/ x", "https://", "a blank"),
    ("ALLOWED_HOSTS", "a,,b", "words separated by commas", "an empty item"),
    ("DEBUG", "off", "true, false, 1 or 0", "a word that Python takes for true"),
    ("DEBUG", "yes", "true, false, 1 or 0", "YAML's yes"),
    ("PORTAL_DEMO", "2", "true, false, 1 or 0", "a number that is neither"),
    ("HTTP_PORT", "0", "from 1 to 65535", "below the range"),
    ("HTTP_PORT", "65536", "from 1 to 65535", "above the range"),
    ("HTTP_PORT", "80 ", "from 1 to 65535", "a trailing blank"),
    ("HTTP_PORT", "٨٠٠٠", "from 1 to 65535", "digits of another script, which int() would take"),
    ("WEB_WORKERS", "1_0", "from 1 to 64", "an underscore, which int() would take"),
    ("CONTROL_PLANE", "Embedded", "embedded", "case counts"),
    ("CONTROL_PLANES", "prod", "prod=/etc/portal/prod.yaml", "a name without a kubeconfig"),
    ("CONTROL_PLANES", "embedded=a.yaml", "none of them embedded", "that name is the embedded one's"),
    ("KUBERNETES_WRITES", "0", "from 1 to 256", "nothing would ever be written"),
    ("OFFERINGS_PATH", "no/such/folder", "existing folders", "a missing folder"),
    ("OFFERINGS_PATH", "crossplane/apis:", "existing folders", "an empty item would mean the whole tree"),
    ("FUNCTION_ENDPOINTS", "composition-function", "composition-function=", "a name without an address"),
    ("FUNCTION_ENDPOINTS", "a=x:1,a=y:2", "each name once", "one name twice"),
    ("FUNCTION_ENDPOINTS", "A b=x:1", "each name once", "no such name in a Composition"),
    ("OUTBOX_SWEEP_SECONDS", "0", "seconds from 0.1 to 60", "a loop without a pause"),
    ("OUTBOX_LEASE_SECONDS", "nan", "seconds from 1 to 3600", "not a number"),
    ("OUTBOX_MAX_ATTEMPTS", "inf", "from 1 to 100", "every retry ends"),
    ("EMBEDDED_FAULTS", "explode:chat", "fail:chat,hang:docs", "no such fault"),
    ("EMBEDDED_FAULTS", "fail:chat,hang:chat", "each name once", "one name with two faults"),
    ("SIMULATOR_DELAY", "1s", "seconds from 0 to 3600", "a unit"),
    ("REQUEST_BODY_LIMIT", "1MiB", "from 1024 to 104857600", "a unit"),
    ("LOG_LEVEL", "TRACE", "DEBUG, INFO, WARNING, ERROR", "no such level"),
    ("LOG_FORMAT", "xml", "json, console", "no such format"),
]


@pytest.mark.parametrize(("name", "value", "allowed", "reason"), WRONG, ids=[f"{w[0]}: {w[3]}" for w in WRONG])
def test_a_wrong_value_names_variable_value_and_what_is_allowed(
    name: str, value: str, allowed: str, reason: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(VARIABLES, {name: value})
    message = str(caught.value)
    assert name in message, reason
    assert allowed in message, reason
    if name not in {"SECRET_KEY", "BACKSTAGE_TOKEN"}:
        assert value in message, reason


def test_every_variable_whose_values_are_limited_has_a_wrong_value_here() -> None:
    free = {"PORTAL_STATE_DIR", "PORTAL_CACHE", "FLEET_PATH", "HTTP_BIND"}  # any text is a path or a host name
    free.add("BACKSTAGE_PERSON_ID")  # or an annotation
    tested = {wrong[0] for wrong in WRONG} | {"OUTBOX_BACKOFF_SECONDS", "OUTBOX_BACKOFF_LIMIT_SECONDS"}
    tested |= {"WORKER_CONCURRENCY", "STUCK_AFTER_SECONDS"}
    assert {variable.name for variable in VARIABLES} == tested | free


def test_all_wrong_values_are_named_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(VARIABLES, {"DEBUG": "perhaps", "HTTP_PORT": "http", "LOG_LEVEL": "loud"})
    assert str(caught.value).startswith("3 environment variables are wrong:")
    assert all(name in str(caught.value) for name in ("DEBUG", "HTTP_PORT", "LOG_LEVEL"))


def test_secrets_and_passwords_are_not_shown() -> None:
    given = {"SECRET_KEY": "hunter2", "DATABASE_URL": "mysql://me:hunter2@db/x", "BROKER_URL": "amqp://:hunter2@mq"}
    with pytest.raises(ConfigurationError) as caught:
        read(VARIABLES, given)
    assert "hunter2" not in str(caught.value)
    assert "me:***@db" in str(caught.value)


def test_empty_counts_as_not_set() -> None:
    assert read(VARIABLES, {variable.name: "" for variable in VARIABLES}) == read(VARIABLES, {})


RIGHT: list[tuple[str, str, Any]] = [
    ("DEBUG", "True", True),
    ("DEBUG", "0", False),
    ("SIMULATOR_DELAY", "0.25", 0.25),
    ("EMBEDDED_FAULTS", "fail:chat, hang:docs", {"chat": "fail", "docs": "hang"}),
    (
        "FUNCTION_ENDPOINTS",
        "composition-function=unix:/a.sock,b=h:1",
        {"composition-function": "unix:/a.sock", "b": "h:1"},
    ),
    ("OFFERINGS_PATH", "crossplane/apis:/tmp", [ROOT / "crossplane/apis", Path("/tmp").resolve()]),  # noqa: S108
    ("PORTAL_STATE_DIR", "var", ROOT / "var"),
    ("ALLOWED_HOSTS", "a.example.org, b", ["a.example.org", "b"]),
    ("BROKER_URL", "redis+socket:///run/valkey.sock", "redis+socket:///run/valkey.sock"),
    ("DATABASE_URL", "none", "none"),
]


@pytest.mark.parametrize(("name", "value", "expected"), RIGHT)
def test_a_right_value_is_parsed(name: str, value: str, expected: object) -> None:
    assert read(VARIABLES, {name: value})[name] == expected


def _manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    names = {variable.name for variable in VARIABLES}
    inherited = {key: value for key, value in os.environ.items() if key not in names}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**inherited, "DATABASE_URL": "none", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_with_wrong_values_ends_with_the_message_alone(tmp_path: Path) -> None:
    done = _manage("check", PORTAL_STATE_DIR=str(tmp_path), DEBUG="maybe")
    assert done.returncode == 2
    assert done.stderr.startswith('1 environment variable is wrong:\n  DEBUG="maybe"; allowed: true, false, 1 or 0')
    assert "Traceback" not in done.stderr


def test_a_state_folder_that_cannot_be_written_is_a_clear_error() -> None:
    done = _manage("check", PORTAL_STATE_DIR="/proc/nowhere")
    assert done.returncode == 2
    assert "SECRET_KEY is not set, and none can be kept in PORTAL_STATE_DIR='/proc/nowhere'" in done.stderr


def test_the_generated_key_is_kept_private_and_the_same_for_everyone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = secret_key(state)
    assert len(first) >= 50
    assert secret_key(state) == first
    assert stat.S_IMODE((state / "secret-key").stat().st_mode) == 0o600
    assert [path.name for path in state.iterdir()] == ["secret-key"]
    (state / "secret-key").write_text("")
    with pytest.raises(ConfigurationError, match="Remove it"):
        secret_key(state)


def test_a_database_address_becomes_djangos_settings() -> None:
    url = "postgresql://me%40x:p%2Fw@db.example.org:6432/por%20tal?sslmode=verify-full"
    made = django_database(url, pool_size=3, statement_timeout=1.5, lock_timeout=0.5)["default"]
    assert (made["USER"], made["PASSWORD"], made["HOST"], made["PORT"]) == ("me@x", "p/w", "db.example.org", "6432")
    assert made["NAME"] == "por tal"
    assert made["OPTIONS"]["sslmode"] == "verify-full"
    assert "statement_timeout=1500" in made["OPTIONS"]["options"]
    assert "lock_timeout=500" in made["OPTIONS"]["options"]


@pytest.mark.parametrize(
    ("url", "message"),
    [("postgresql://host", "names no database"), ("postgresql://host/x?timeout=1", "'timeout'; allowed: ")],
)
def test_a_database_address_that_libpq_would_refuse_is_an_error(url: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        django_database(url, pool_size=1, statement_timeout=1, lock_timeout=1)


def test_the_readme_has_the_table() -> None:
    readme = (ROOT / "README.md").read_text()
    assert with_table(readme) == readme, "run: .venv/bin/python manage.py settings_table --write"


def test_only_settings_reads_the_environment() -> None:
    """Elsewhere it may be handed on whole to a process that is started, never looked into."""
    allowed = {"portal/settings.py", "portal/running/plan.py", "portal/running/postgres.py"}
    allowed |= {"portal/running/crossplane/golang.py", "portal/running/crossplane/plan.py"}
    allowed |= {"portal/running/backstage/plan.py"}
    setdefault = re.compile(r'os\.environ\.setdefault\("DJANGO_SETTINGS_MODULE", "portal\.settings"\)')
    for path in sorted((ROOT / "portal").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        source = setdefault.sub("", path.read_text())
        used = [
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
        ]
        assert not used or name in allowed, f"{name} reads environment variables; declare them in portal/settings.py"
