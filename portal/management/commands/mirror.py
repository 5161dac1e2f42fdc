"""`manage.py mirror`: watch control planes and record what they report. One process leads per control plane.

Without --control-plane: all that an Environment names, each in a thread of its own; one that is named later is taken
up without a restart. A mirror mostly waits, so threads serve, and one process is one thing to run and to look at.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, close_old_connections

from portal.adapters import control_plane
from portal.mirroring import Mirror
from portal.models import Environment
from portal.ports import ControlPlane
from portal.running.ready import announce
from portal.running.signals import end_on_signals
from portal.services.leading import Lead

log = structlog.get_logger()

LOOK_SECONDS = 2.0  # between two looks whether an Environment names another one


class Command(BaseCommand):
    help = "Watch the control planes' claims and keep the portal's picture of them. Runs until it is stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--control-plane", help="only this one; else all that an Environment names")

    def handle(self, *args: Any, **options: Any) -> None:
        end_on_signals()
        only = options["control_plane"]
        try:
            mirrors = Mirrors([_plane(only)] if only else None)
            announce(settings.STATE_DIR, "mirror", os.getpid())
            while True:
                mirrors.look()
                time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            return  # locks and connections end with the process


class Mirrors:
    """A thread per control plane; one that has ended is started again."""

    def __init__(self, planes: list[ControlPlane] | None) -> None:
        self._only = planes
        self._threads: dict[str, threading.Thread] = {}
        self._unknown: set[str] = set()

    def look(self) -> None:
        """Start what is not running."""
        for plane in self._planes() if self._only is None else self._only:
            thread = self._threads.get(plane.name)
            if thread is None or not thread.is_alive():
                mirror = Mirror(plane, Lead(f"mirror of {plane.name}"))
                thread = threading.Thread(target=mirror.run, name=f"mirror of {plane.name}", daemon=True)
                thread.start()
                self._threads[plane.name] = thread

    def _planes(self) -> list[ControlPlane]:
        close_old_connections()
        try:
            names = set(Environment.objects.values_list("control_plane", flat=True))
        except Error as error:  # what runs goes on
            log.warning("mirror.database_down", message=(str(error).splitlines() or [""])[0])
            return []
        found = []
        for name in sorted(names):
            try:
                found.append(control_plane(name))
            except ValueError as error:
                if name not in self._unknown:
                    log.error("mirror.unknown_control_plane", control_plane=name, message=str(error))
                self._unknown.add(name)
        return found


def _plane(name: str) -> ControlPlane:
    try:
        return control_plane(name)
    except ValueError as error:
        raise CommandError(str(error)) from None
