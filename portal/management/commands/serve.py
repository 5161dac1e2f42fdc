"""`manage.py serve`: the whole portal on this machine, until SIGTERM or Ctrl-C."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.running.errors import RunningError
from portal.running.plan import Options, running_portal
from portal.running.signals import end_on_signals


def options_from_settings(**changes: Any) -> Options:
    """What the settings ask for."""
    return Options(
        **{
            "state": settings.STATE_DIR,
            "database_url": None if settings.EMBEDDED_DATABASE else settings.DATABASE_URL,
            "broker_url": None if settings.EMBEDDED_BROKER else settings.BROKER_URL,
            "http_bind": settings.HTTP_BIND,
            "http_port": settings.HTTP_PORT,
            "web_workers": settings.WEB_WORKERS,
            "worker_concurrency": settings.WORKER_CONCURRENCY,
            "control_plane": settings.CONTROL_PLANE,
            "control_planes": settings.CONTROL_PLANES,
            "cache": settings.CACHE_DIR,
            "function_endpoints": settings.FUNCTION_ENDPOINTS,
            **changes,
        }
    )


class Command(BaseCommand):
    help = "Starts everything the portal is made of and keeps it running; embedded servers too, where none are given."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--lines", action="store_true", help="show every line that a process prints, not only events"
        )

    def handle(self, *args: Any, lines: bool, **options: Any) -> None:
        end_on_signals(lambda: self._say("ending"))
        try:
            with running_portal(options_from_settings(verbose=lines), self._say) as portal:
                self._say(f"The portal serves {portal.url} (logs: {settings.STATE_DIR}/log)")
                portal.supervisor.wait()
        except RunningError as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            self._say("ended")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
