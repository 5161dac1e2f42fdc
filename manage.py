#!/usr/bin/env python3
"""Runs the portal's commands: `python manage.py help` lists them.

Without DATABASE_URL a command that needs the database uses the state folder's embedded PostgreSQL: it joins the one
that runs, or starts it and stops it again when nobody else uses it.
"""

import contextlib
import os
import sys

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


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    from django.core.management import execute_from_command_line

    from portal.configuration import ConfigurationError

    try:
        from portal import settings
        from portal.running.errors import RunningError
        from portal.running.postgres import embedded_postgres
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    try:
        with contextlib.ExitStack() as stack:
            if settings.EMBEDDED_DATABASE and command not in WITHOUT_DATABASE:
                stack.enter_context(embedded_postgres(settings.STATE_DIR / "postgres"))
            execute_from_command_line(sys.argv)
    except RunningError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
