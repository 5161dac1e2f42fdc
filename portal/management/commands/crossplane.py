"""`manage.py crossplane`: a real Crossplane on this machine, until SIGTERM or Ctrl-C. Builds it first if need be."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.running.crossplane import build
from portal.running.crossplane.plan import LocalControlPlane, Options, running_control_plane
from portal.running.errors import RunningError
from portal.running.signals import end_on_signals


class Command(BaseCommand):
    help = (
        "Starts etcd, Kubernetes' API server, Crossplane, this project's composition function, provider-kubernetes "
        "and two workload clusters, without containers. What is missing is built with Go."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--build-only", action="store_true", help="build what is missing, start nothing")
        parser.add_argument(
            "--lines", action="store_true", help="show every line that a program prints, not only events"
        )

    def handle(self, *args: Any, build_only: bool, lines: bool, **options: Any) -> None:
        end_on_signals(lambda: self._say("ending"))
        try:
            if build_only:
                for path in build.built(settings.CACHE_DIR, self._say).values():
                    self._say(str(path))
                return
            started = time.monotonic()
            wanted = Options(settings.STATE_DIR / "crossplane", settings.CACHE_DIR, verbose=lines)
            with running_control_plane(wanted, self._say) as plane:
                self._tell(plane, time.monotonic() - started)
                plane.wait()
        except RunningError as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            self._say("ended")

    def _tell(self, plane: LocalControlPlane, seconds: float) -> None:
        memory = plane.memory()
        for name, megabytes in memory.items():
            self._say(f"  {name:<26}{megabytes:6.0f} MB")
        self._say(f"  {'together':<26}{sum(memory.values()):6.0f} MB")
        self._say("On the workload clusters a test-only actor reports for the operators; nothing runs there.")
        self._say(f"Crossplane runs, {seconds:.0f} s after its start (logs: {plane.layout.state}/log).")
        self._say("Kubeconfigs (they hold tokens):")
        self._say(f"  {plane.kubeconfig}  as the portal, with its rights only")
        for name in plane.servers:
            self._say(f"  {plane.layout.kubeconfig(name)}  as administrator of {name}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
