"""`manage.py build_templates`: write Backstage's templates from the offerings in OFFERINGS_PATH; --check compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.domain.offerings import Offering
from portal.rendering.templates import files
from portal.rendering.templates.form import FORMS, Hints, HintsError, parse_hints
from portal.services import loading
from portal.services.errors import ServiceError


class Command(BaseCommand):
    help = "Build the templates that Backstage installs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not as built")
        parser.add_argument(
            "--to", type=Path, default=settings.BASE_DIR / "scaffolder-templates", help="the folder they are in"
        )

    def handle(self, *args: Any, check: bool, to: Path, **options: Any) -> None:
        try:
            offerings = [offering for offering, _ in loading.read_offerings(settings.OFFERINGS_PATH)]
            built = files([(offering, _hints(offering, to)) for offering in offerings])
        except ServiceError as error:
            raise CommandError(error.message) from None
        except HintsError as error:
            raise CommandError(str(error)) from None
        there = {str(path.relative_to(to)) for kind in ("http", "actions") for path in (to / kind).glob("*.yaml")}
        wrong = sorted(name for name, text in built.items() if _read(to / name) != text)
        extra = sorted(there - set(built))
        if check:
            if wrong or extra:
                raise CommandError(
                    f"Not as built: {', '.join([*wrong, *extra])} below {to}. Run `manage.py build_templates`."
                )
            return
        for name in wrong:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (to / name).write_text(built[name], encoding="utf-8")
        for name in extra:
            (to / name).unlink()
        self.stdout.write(f"{len(built)} files, {len(wrong)} written, {len(extra)} removed")


def _hints(offering: Offering, folder: Path) -> Hints:
    """What is said of its form beside the templates, if anything is."""
    path = folder / FORMS / f"{offering.name}.yaml"
    if not path.exists():
        return Hints()
    return parse_hints(path.read_text(encoding="utf-8"), f"{FORMS}/{path.name}", offering)


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
