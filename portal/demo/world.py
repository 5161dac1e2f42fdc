"""In charge of: a portal with sample people and teams that begins anew at each start.

Not in charge of: what its people do (scenario.py), or who may sign in (accounts.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from portal.demo.accounts import Account
from portal.running import addresses, leftovers, locks, postgres
from portal.running.errors import NotReady
from portal.running.plan import ROOT, Portal

SAMPLE = ROOT / "portal" / "demo" / "sample.yaml"
# Folders below its own in which a supervisor of something else works.
BESIDE = ("crossplane", "backstage")
SECONDS = 120  # for one management command


def clear(state: Path) -> None:
    """Begin anew: end what an earlier run left behind and remove its data. One that runs is left alone."""
    if not state.exists():
        return
    lock = locks.try_exclusive(state / "run" / "supervisor.lock")
    if lock is None:
        return  # running_portal says by whom it is held
    with lock:
        for folder in (state, *(state / name for name in BESIDE)):
            leftovers.end(folder.resolve())
        data = addresses.postgres_folder(state)
        if postgres.has_data(data):
            postgres.stop(data)
    shutil.rmtree(state)


def populate(portal: Portal, sample: Path = SAMPLE) -> list[Account]:
    """Loads the sample and gives everybody a sign-in. Raises NotReady."""
    manage(portal, "bootstrap", str(sample))
    accounts: list[Account] = json.loads(manage(portal, "demo_accounts"))
    return accounts


def manage(portal: Portal, *arguments: str) -> str:
    """What a management command prints, run inside the portal. Raises NotReady."""
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=portal.environment, capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode != 0:
        raise NotReady(f"manage.py {arguments[0]} failed:\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
