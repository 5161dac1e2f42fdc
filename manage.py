#!/usr/bin/env python3
"""Runs the portal's commands: `python manage.py help` lists them.

Without DATABASE_URL a command that needs the database uses the state folder's embedded PostgreSQL: it joins the one
that runs, or starts it and stops it again when nobody else uses it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

# These start their own servers, or need no database at all.
WITHOUT_DATABASE = {
    "serve",
    "demo",
    "crossplane",
    "help",
    "version",
    "--help",
    "-h",
    "--version",
    "check",
    "spectacular",
    "settings_table",
}
# These wait for a database that is away by themselves.
WAITING = {"mirror", "embedded_control_plane"}


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    try:
        import django  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        python = Path(__file__).resolve().parent / ".venv" / "bin" / "python"
        way = "Run" if python.exists() else "Run make serve once, which installs it; then"
        print(f"{sys.executable} has no Django. {way} {python} manage.py {' '.join(sys.argv[1:])}", file=sys.stderr)
        return 2

    from portal.configuration import ConfigurationError

    try:
        from portal import settings  # noqa: F401 - reads the environment
        from portal.running.errors import RunningError
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        _run(sys.argv[1] if len(sys.argv) > 1 else "help")
    except RunningError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(command: str) -> None:
    """One command, with its database at hand. Raises RunningError."""
    from django.core.management import execute_from_command_line
    from django.db import ProgrammingError
    from psycopg.errors import UndefinedTable

    from portal import settings
    from portal.running import addresses, reach
    from portal.running.errors import NoTables
    from portal.running.postgres import embedded_postgres

    with contextlib.ExitStack() as stack:
        if settings.EMBEDDED_DATABASE and command not in WITHOUT_DATABASE:
            stack.enter_context(embedded_postgres(addresses.postgres_folder(settings.STATE_DIR)))
        elif settings.DATABASES and command not in WITHOUT_DATABASE | WAITING:
            reach.database(settings.DATABASE_URL)
        try:
            execute_from_command_line(sys.argv)
        except ProgrammingError as error:
            if not isinstance(error.__cause__, UndefinedTable):
                raise
            raise NoTables(
                f"The database of {_place()} lacks the portal's tables (all, or new ones): run manage.py migrate, "
                "or set PORTAL_STATE_DIR to the folder of the portal that is meant (var/demo while the demo runs)."
            ) from None


def _place() -> str:
    from portal import settings

    return f"the state folder {settings.STATE_DIR}" if settings.EMBEDDED_DATABASE else "DATABASE_URL"


if __name__ == "__main__":
    sys.exit(main())
