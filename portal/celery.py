"""In charge of: the Celery app and its timetable.

Tasks bind to it with `@app.task` (portal/tasks.py), never `shared_task`: `portal/__init__.py` imports nothing, so only
who imports this module has a broker.

Not in charge of: what a task does. A message may come twice or get lost: the outbox's lease decides, not the broker.
"""

from __future__ import annotations

import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from django.conf import settings

from portal.running.ready import announce

app = Celery("portal", broker=settings.BROKER_URL, include=["portal.tasks"])
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    result_backend=None,
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_soft_time_limit=60,
    task_time_limit=90,
    worker_prefetch_multiplier=1,
    # Longer than the hard time limit: what still runs is not handed out twice. Should it be anyway, leases decide.
    broker_transport_options={"visibility_timeout": 300, "socket_connect_timeout": 5, "socket_timeout": 30},
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    task_publish_retry=True,
    task_publish_retry_policy={"max_retries": 2, "interval_start": 0.1, "interval_max": 0.5},
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    enable_utc=True,
    timezone="UTC",
    beat_schedule={
        # A beat that slept or a worker that was away must not leave a heap of old ticks: they expire.
        "sweep": {
            "task": "portal.tasks.sweep",
            "schedule": settings.OUTBOX_SWEEP_SECONDS,
            "options": {"expires": 10 * settings.OUTBOX_SWEEP_SECONDS},
        },
        "housekeep": {"task": "portal.tasks.housekeep", "schedule": 60.0, "options": {"expires": 120}},
    },
    beat_schedule_filename=str(settings.STATE_DIR / "beat-schedule"),
)


@setup_logging.connect
def _our_logging(**_: Any) -> None:
    """Celery asks once for logging to be set up: by Django's settings, not its own."""
    logging.config.dictConfig(settings.LOGGING)


@worker_ready.connect
def _worker_is_up(**_: Any) -> None:
    announce(settings.STATE_DIR, "worker", os.getpid())


@beat_init.connect
def _beat_is_up(**_: Any) -> None:
    announce(settings.STATE_DIR, "beat", os.getpid())
