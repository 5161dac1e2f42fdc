"""`manage.py demo_accounts`: a part of `manage.py demo`, run inside its portal. Prints the sign-ins as JSON."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.demo.accounts import make_accounts


class Command(BaseCommand):
    help = "Make the demo's sign-ins. Only in demo mode."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("Sign-ins with shown passwords exist in demo mode alone (PORTAL_DEMO=true).")
        accounts = make_accounts()
        shown = [{key: account[key] for key in ("username", "password", "role")} for account in accounts]
        path = settings.STATE_DIR / "demo-accounts.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps([account for account in shown if account["password"]], indent=1))
        self.stdout.write(json.dumps(accounts))
