"""`manage.py backstage`: a portal with sample teams and a real Backstage backend, wired both ways, until Ctrl-C."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.demo import world
from portal.demo.accounts import SERVICE
from portal.management.commands.serve import options_from_settings
from portal.running.backstage import install, plan
from portal.running.errors import RunningError
from portal.running.plan import Portal, running_portal
from portal.running.signals import end_on_signals

EXAMPLE = (
    'TOKEN=$(curl -s -H \'x-local-user: ada\' {url}/api/auth/local/refresh | sed \'s/.*"token":"\\([^"]*\\)".*/\\1/\')',
    "curl -s -H \"Authorization: Bearer $TOKEN\" '{url}/api/catalog/entities/by-query?filter=kind=template'",
    "curl -s -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' {url}/api/scaffolder/v2/tasks \\",
    "  -d @portal/demo/backstage-task.json",
    'curl -s -H "Authorization: Bearer $TOKEN" {url}/api/scaffolder/v2/tasks/ID/events',
)


class Command(BaseCommand):
    help = "Start a portal of its own with sample teams and a Backstage backend, wired both ways, and keep serving."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--install-only", action="store_true", help="install what is missing, start nothing")
        parser.add_argument("--sample", type=Path, default=world.SAMPLE, help="another bootstrap file")
        parser.add_argument("--once", action="store_true", help="end as soon as everything is up")
        parser.add_argument(
            "--lines", action="store_true", help="show every line that a process prints, not only events"
        )

    def handle(self, *args: Any, install_only: bool, sample: Path, once: bool, lines: bool, **options: Any) -> None:
        end_on_signals(lambda: self._say("ending"))
        try:
            folder = install.built(settings.CACHE_DIR, self._say)
            if install_only:
                self._say(str(folder))
                return
            self._run(settings.STATE_DIR / "with-backstage", sample, once, lines)
        except RunningError as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            self._say("ended")

    def _run(self, state: Path, sample: Path, once: bool, lines: bool) -> None:
        started = time.monotonic()
        world.clear(state)
        at = plan.address(state / "backstage")
        environment = {"PORTAL_DEMO": "true", "LOG_FORMAT": "console", **at.settings}
        chosen = options_from_settings(state=state, next_free_port=True, environment=environment, verbose=lines)
        with running_portal(chosen, self._say) as portal:
            accounts = world.populate(portal, sample)
            wanted = plan.Options(
                state=state / "backstage",
                cache=settings.CACHE_DIR,
                portal_url=portal.url,
                portal_token=next(account["token"] for account in accounts if account["username"] == SERVICE),
                database_url=portal.database_url,
                sample=sample,
                verbose=lines,
            )
            with plan.running_backstage(wanted, at, self._say) as backstage:
                self._tell(portal, backstage, time.monotonic() - started)
                while not once:
                    portal.supervisor.wait(1)
                    backstage.supervisor.wait(0)

    def _tell(self, portal: Portal, backstage: plan.Backstage, seconds: float) -> None:
        self._say(f"Both are up, {seconds:.0f} s after their start (logs: {portal.environment['PORTAL_STATE_DIR']}).")
        self._say(f"  the portal         {portal.url}")
        self._say(f"  Backstage backend  {backstage.url}  (its API alone: no pages)")
        self._say("Anybody on this machine may sign in there as anybody of the sample: it is for this machine only.")
        self._say("A token, the templates, running one, and what it says; in another terminal, in this folder:")
        for line in EXAMPLE:
            self._say("  " + line.format(url=backstage.url))
        if portal.crossplane is None:
            self._say("Workloads are simulated: no cluster is behind this. Ctrl-C ends it.")
        else:
            self._say(f"Claims go to a real Crossplane: kubectl --kubeconfig {portal.crossplane.kubeconfig}")
            self._say("Ctrl-C ends it.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
