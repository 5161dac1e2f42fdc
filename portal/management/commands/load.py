"""`manage.py load`: take in changed offerings, and policies, prices or directory rules if given. Audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.services import loading
from portal.services.errors import ServiceError

SYSTEM = "load"


class Command(BaseCommand):
    help = "Take in the offerings below OFFERINGS_PATH, and a policy bundle, a price list and directory rules if given."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bundle", type=Path, help="a policy bundle (YAML) to activate")
        parser.add_argument("--prices", type=Path, help="a price list (CSV) to activate")
        parser.add_argument("--directory", type=Path, help="what groups of Backstage mean here (YAML), to activate")

    def handle(
        self, *args: Any, bundle: Path | None, prices: Path | None, directory: Path | None, **options: Any
    ) -> None:
        try:
            notes = loading.load_all(settings.OFFERINGS_PATH, bundle, prices, directory, system=SYSTEM)
        except ServiceError as error:
            raise CommandError(f"Nothing was loaded.\n{error.message}") from None
        for note in notes or ["Nothing has changed."]:
            self.stdout.write(note)
