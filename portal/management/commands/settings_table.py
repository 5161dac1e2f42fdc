"""`manage.py settings_table`: README.md's table of environment variables, printed or written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.configuration import table
from portal.settings import VARIABLES

START, END = "<!-- settings: written by manage.py settings_table --write -->", "<!-- end of settings -->"


def with_table(readme: str) -> str:
    """The text with the table between its two marks. Raises ValueError when a mark is missing."""
    pattern = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(readme):
        raise ValueError(f"README.md lacks the lines {START} and {END}")
    return pattern.sub(lambda _: f"{START}\n{table(VARIABLES)}\n{END}", readme)


class Command(BaseCommand):
    help = "Prints the table of environment variables, or writes it into README.md."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write", action="store_true", help="write it into README.md, between its marks")

    def handle(self, *args: Any, write: bool, **options: Any) -> None:
        if not write:
            self.stdout.write(table(VARIABLES))
            return
        path: Path = settings.BASE_DIR / "README.md"
        try:
            path.write_text(with_table(path.read_text()))
        except ValueError as error:
            raise CommandError(str(error)) from None
