"""`manage.py explain REQUEST`: make a request's decisions again, and compare them and its votes with the audit log."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.domain import strict_yaml
from portal.models import Request
from portal.services.attesting import Difference, attest
from portal.services.explaining import Explanation, explain


class Command(BaseCommand):
    help = (
        "Show each decision of a request, whether it comes out the same again, and whether the audit log tells the "
        "same of its decisions and votes. Exits 1 where something differs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("request", type=uuid.UUID)

    def handle(self, *args: Any, request: uuid.UUID, **options: Any) -> None:
        if not Request.objects.filter(pk=request).exists():
            raise CommandError(f"There is no request {request}.")
        explanations = explain(request)
        for explanation in explanations:
            self._show(explanation)
        untold = attest(request)
        self._differences(untold, indent="", right="audit log")
        if not untold:
            self.stdout.write("decisions and votes are those of the audit log")
        if untold or any(explanation.differences for explanation in explanations):
            raise CommandError("Some decisions or votes are not as they were stored.", returncode=1)

    def _show(self, explanation: Explanation) -> None:
        record = explanation.record
        self.stdout.write(f"{record.moment} at {record.decided_at.isoformat()}: {record.outcome}")
        self.stdout.write(f"  policy bundle {record.inputs.get('bundle_digest')}")
        for reason in record.result.get("reasons", []):
            self.stdout.write(f"  {reason['effect']}: {reason['code']}: {reason['message']}")
        if not explanation.differences:
            self.stdout.write("  made again from the stored inputs: the same")
        self._differences(explanation.differences, indent="  ", right="again")

    def _differences(self, differences: list[Difference], *, indent: str, right: str) -> None:
        for difference in differences:
            self.stdout.write(f"{indent}differs at {difference.path}")
            self.stdout.write(f"{indent}  stored: {_shown(difference.stored)}")
            self.stdout.write(f"{indent}  {right}: {_shown(difference.again)}")


def _shown(value: Any) -> str:
    return "nothing" if value is None else strict_yaml.dump(value).strip()
