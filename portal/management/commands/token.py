"""`manage.py token USER`: make an API token, shown once."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.services.access import SCOPES
from portal.services.errors import InvalidInput
from portal.services.tokens import create_token, revoke_token


class Command(BaseCommand):
    help = "Make an API token for a person or a service, or revoke one. The secret is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", default="command line", help="what it is for")
        parser.add_argument("--scope", action="append", choices=sorted(SCOPES), help="may be given more than once")
        parser.add_argument("--days", type=int, default=30, help="how long it lives (1 to 366)")
        parser.add_argument("--revoke", metavar="PREFIX", help="end the token of that prefix instead")

    def handle(self, *args: Any, user: str, **options: Any) -> None:
        if options["revoke"]:
            if not revoke_token(options["revoke"]):
                raise CommandError(f"No living token has the prefix '{options['revoke']}'.")
            self.stdout.write("revoked")
            return
        person = User.objects.filter(username=user, is_active=True).first()
        if person is None:
            raise CommandError(f"Nobody active is called '{user}'.")
        try:
            secret = create_token(
                person,
                name=options["name"],
                scopes=options["scope"] or ["read", "request", "approve"],
                days=options["days"],
            )
        except InvalidInput as error:
            raise CommandError(error.message) from None
        self.stdout.write(secret)
