"""`manage.py embedded_control_plane`: the embedded control plane's controller, until it is told to stop.

It first applies what the files say: the offerings' XRDs and Compositions, and the fleet.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, connection

from portal.adapters.embedded.controller import Controller
from portal.adapters.embedded.functions import Functions
from portal.adapters.embedded.names import LABEL
from portal.running.ready import announce

log = logging.getLogger(__name__)

FUNCTION_TIMEOUT = 20.0  # seconds for one call
_MOST_WORKERS = 3  # two cores: the function's own process needs one of them
_OTHER_CONNECTIONS = 3  # the simulator's, the listener's and the main thread's


class Command(BaseCommand):
    help = f"Reconcile what was applied to the embedded control plane ({LABEL}). Runs until it is stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workers", type=int, default=_MOST_WORKERS, help="how many composites at once")

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        _wait_for_database(stopping)
        if stopping.is_set():
            return
        call_command("embedded_apply", *settings.OFFERINGS_PATH, settings.FLEET_PATH, stdout=self.stdout)
        functions = Functions(settings.FUNCTION_ENDPOINTS, FUNCTION_TIMEOUT)
        with Controller(functions, settings.EMBEDDED_FAULTS, _workers(options["workers"])) as controller:
            self.stdout.write(f"{LABEL}; functions: {', '.join(sorted(settings.FUNCTION_ENDPOINTS)) or 'none'}")
            announce(settings.STATE_DIR, "embedded_control_plane", os.getpid())
            while not stopping.wait(1.0):
                if controller.failed():
                    raise CommandError("a worker of the embedded control plane has ended; the log says why")


def _wait_for_database(stopping: threading.Event) -> None:
    """Until it answers: ending at once would be a fast failure, and its supervisor gives up after a few of those."""
    while not stopping.is_set():
        try:
            connection.ensure_connection()
            return
        except OperationalError as error:
            log.warning("embedded control plane: the database is away: %s", " ".join(str(error).split()))
            stopping.wait(1.0)


def _workers(wanted: int) -> int:
    """As many as the connection pool allows, since each keeps a connection."""
    pool = settings.DATABASES["default"].get("OPTIONS", {}).get("pool", {})
    allowed: int = pool.get("max_size", wanted + _OTHER_CONNECTIONS) - _OTHER_CONNECTIONS
    if allowed < 1:
        raise CommandError(f"DATABASE_POOL_SIZE must be at least {_OTHER_CONNECTIONS + 1} for this process")
    return max(1, min(wanted, allowed))
