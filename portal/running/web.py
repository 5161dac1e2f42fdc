"""In charge of: gunicorn's configuration (`-c python:portal.running.web`).

Not in charge of: address and number of workers, which the supervisor gives on the command line (plan.py).
"""

from __future__ import annotations

import gc
from typing import Any
from wsgiref.util import setup_testing_defaults

from portal.running.web_worker import BoundedThreads

# Loaded once, before the workers are forked: they share its memory, and one that is replaced answers at once.
preload_app = True
# A slow client holds a thread, not a worker, and for a bounded time. Threads that wait cost little; how many ask the
# database at once is bounded by its pool. Enough slow clients still take all threads for some seconds: where others can
# reach the port, a proxy has to stand in front that takes in a whole request before it passes it on (nginx does, with
# `proxy_request_buffering on`); gunicorn's own documentation asks for one too.
worker_class = BoundedThreads
threads = 32
timeout = 60
graceful_timeout = 10
keepalive = 5
accesslog = None
control_socket_disable = True


def when_ready(server: Any) -> None:
    """Before the first fork: loads what the first request would, and takes it all out of the garbage collector's sight.

    Without this the collector walks every loaded module again and again, which shows in the slowest twentieth of the
    answers, and its marks would unshare the memory.
    """
    environ: dict[str, Any] = {"PATH_INFO": "/healthz", "HTTP_HOST": "localhost"}
    setup_testing_defaults(environ)
    list(server.app.wsgi()(environ, lambda status, headers, error=None: None))
    gc.collect()
    gc.freeze()
