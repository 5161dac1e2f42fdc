"""`manage.py bootstrap FILE`: load the first teams, quotas, budgets, prices and policies, once, audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.services.bootstrapping import bootstrap
from portal.services.errors import ServiceError


class Command(BaseCommand):
    help = "Load the first people, teams, environments, quotas, budgets, prices and the policy bundle from a YAML file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            notes = bootstrap(file, settings.OFFERINGS_PATH)
        except ServiceError as error:
            raise CommandError(f"Nothing was loaded.\n{error.message}") from None
        for note in notes:
            self.stdout.write(note)
        self.stdout.write(f"{file} is loaded.")
