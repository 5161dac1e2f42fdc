"""`manage.py demo`: the whole portal with sample teams, the main job before one's eyes, then it keeps serving."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.demo import world
from portal.demo.accounts import Account
from portal.demo.scenario import READY_WITHIN, Row, Scenario
from portal.management.commands.serve import options_from_settings
from portal.running.errors import RunningError
from portal.running.plan import Portal, running_portal
from portal.running.signals import end_on_signals

WIDTHS = (16, 30, 10, 11)


class Command(BaseCommand):
    help = "Start a portal of its own with sample teams, show the main job over HTTP, and keep serving."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="end after the table; exit 1 on a wrong outcome")
        parser.add_argument("--sample", type=Path, default=world.SAMPLE, help="another bootstrap file")
        parser.add_argument("--ready-within", type=float, default=READY_WITHIN, help="seconds to wait for Ready")

    def handle(self, *args: Any, once: bool, sample: Path, ready_within: float, **options: Any) -> None:
        started = time.monotonic()
        end_on_signals()
        state = settings.STATE_DIR / "demo"
        try:
            world.clear(state)
            environment = {"PORTAL_DEMO": "true", "LOG_FORMAT": "console"}
            chosen = options_from_settings(state=state, next_free_port=True, environment=environment)
            with running_portal(chosen, self._say) as portal:
                self._act(portal, sample, ready_within, started, once)
        except RunningError as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            self._say("ended")

    def _act(self, portal: Portal, sample: Path, ready_within: float, started: float, once: bool) -> None:
        accounts = world.populate(portal, sample)
        self._say("")
        self._line("who", "does", "outcome", "USD/month", "because")
        scenario = Scenario(portal.url, {a["username"]: a["token"] for a in accounts}, self._row, ready_within)
        good = scenario.run()
        self._say("")
        if not once:
            self._serve(portal, accounts, good)
            return
        tally = scenario.tally
        figures = {
            "requests": tally.requests,
            "ready": tally.ready,
            "denied": tally.denied,
            "refused": tally.refused,
            "seconds": round(time.monotonic() - started, 1),
        }
        self._say(json.dumps(figures))
        if not good:
            sys.exit(1)

    def _serve(self, portal: Portal, accounts: list[Account], good: bool) -> None:
        if not good:
            self._say("Some outcomes are not the expected ones: see the table.")
        self._say(f"The portal serves {portal.url} with sign-ins that exist in this demo alone:")
        for account in accounts:
            if account["password"]:
                self._say(f"  {account['username']:10} {account['password']:14} {account['role']}")
        if portal.crossplane is None:
            self._say("Workloads are simulated: no cluster is behind this demo. Ctrl-C ends it.")
        else:
            self._say(f"Claims go to a real Crossplane: kubectl --kubeconfig {portal.crossplane.kubeconfig}")
            self._say("On its workload clusters a test-only actor reports for the operators; nothing runs there.")
            self._say("Ctrl-C ends it.")
        portal.supervisor.wait()

    def _row(self, row: Row) -> None:
        self._line(row.who, row.what, row.outcome, row.monthly, row.why)

    def _line(self, who: str, what: str, outcome: str, monthly: str, why: str) -> None:
        cells = [f"{text:{width}}" for text, width in zip((who, what, outcome, monthly), WIDTHS, strict=True)]
        self._say("  ".join([*cells, why]))

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
