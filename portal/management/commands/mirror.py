"""`manage.py mirror`: watch a control plane and record what it reports. One at a time per control plane."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from portal.adapters import control_plane
from portal.mirroring import Mirror
from portal.running.ready import announce


class Command(BaseCommand):
    help = "Watch the control plane's claims and keep the portal's picture of them. Runs until it is stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--control-plane", default=settings.CONTROL_PLANE)

    def handle(self, *args: Any, **options: Any) -> None:
        announce(settings.STATE_DIR, "mirror", os.getpid())
        Mirror(control_plane(options["control_plane"])).run()
