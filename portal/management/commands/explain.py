"""`manage.py explain REQUEST`: make a request's decisions again from their stored inputs, and compare."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.domain import strict_yaml
from portal.models import Request
from portal.services.explaining import Explanation, explain


class Command(BaseCommand):
    help = "Show each decision of a request and whether it comes out the same again. Exits 1 where it does not."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("request", type=uuid.UUID)

    def handle(self, *args: Any, request: uuid.UUID, **options: Any) -> None:
        if not Request.objects.filter(pk=request).exists():
            raise CommandError(f"There is no request {request}.")
        explanations = explain(request)
        for explanation in explanations:
            self._show(explanation)
        if any(explanation.differences for explanation in explanations):
            raise CommandError("Some decisions do not come out as they were stored.", returncode=1)

    def _show(self, explanation: Explanation) -> None:
        record = explanation.record
        self.stdout.write(f"{record.moment} at {record.decided_at.isoformat()}: {record.outcome}")
        self.stdout.write(f"  policy bundle {record.inputs.get('bundle_digest')}")
        for reason in record.result.get("reasons", []):
            self.stdout.write(f"  {reason['effect']}: {reason['code']}: {reason['message']}")
        if not explanation.differences:
            self.stdout.write("  made again from the stored inputs: the same")
        for difference in explanation.differences:
            self.stdout.write(f"  differs at {difference.path}")
            self.stdout.write(f"    stored: {strict_yaml.dump(difference.stored).strip()}")
            self.stdout.write(f"    again:  {strict_yaml.dump(difference.again).strip()}")
