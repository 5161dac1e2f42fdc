"""`python mirror_rounds.py ROUNDS SECONDS`: a mirror that lists and compares so often, watches, and says what it cost.

Run by test_control_plane.py in a process of its own, so that its CPU and memory are the mirror's alone.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

import django

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from portal.adapters import control_plane  # noqa: E402 - after Django is set up
from portal.mirroring import Mirror  # noqa: E402

rounds, seconds = int(sys.argv[1]), float(sys.argv[2])
mirror = Mirror(control_plane("crossplane"))
begin = time.process_time()
for _ in range(rounds):
    mirror._cursor = None
    mirror.cycle(0.2)
compared = time.process_time() - begin
begin = time.process_time()
deadline = time.monotonic() + seconds
while time.monotonic() < deadline:
    mirror.cycle(max(0.1, deadline - time.monotonic()))
watched = time.process_time() - begin
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
print(json.dumps({"cpu": compared, "watch": watched, "memory": memory}))
