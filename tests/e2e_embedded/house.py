"""A portal on the embedded control plane for these tests, with the parts that they take away.

In charge of: what every test here needs. Not in charge of: any outcome.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.e2e_embedded.parts import Broker, Part, until
from tests.front import Front

LEASE_SECONDS = 5

# What the portal runs with: quick where waiting proves nothing, patient where a test holds a lock.
ENVIRONMENT = {
    "PORTAL_DEMO": "true",  # for tokens of everybody
    "OUTBOX_SWEEP_SECONDS": "0.3",
    "OUTBOX_LEASE_SECONDS": str(LEASE_SECONDS),
    "DATABASE_LOCK_TIMEOUT": "60",
    "DATABASE_STATEMENT_TIMEOUT": "60",
    "SIMULATOR_DELAY": "0.2",
    "EMBEDDED_FAULTS": "fail:unlucky,hang:sleepy",
}


@dataclass(kw_only=True)
class House(Front):
    """The portal, and the parts that the tests own."""

    broker: Broker
    function: Part

    def claims(self, name: str) -> list[str]:
        """The uids of all claims of that name, whatever their kind."""
        query = "SELECT uid::text FROM embedded_object WHERE name = %s AND \"group\" = 'aiplatform.example.org'"
        return [row[0] for row in self.rows(query, name)]

    # --- its processes ------------------------------------------------------------------------------------------------

    def kill_worker(self) -> int:
        """SIGKILL for Celery's parent and all of its children at once; returns the parent's process id."""
        pid = self.portal.supervisor.pids()["worker"]
        os.killpg(pid, signal.SIGKILL)
        until(lambda: not _group(pid), "the whole process group is gone")
        return pid

    def worker_is_back(self, before: int) -> None:
        """Wait until the supervisor has started another worker, and it takes tasks."""
        state = Path(self.portal.environment["PORTAL_STATE_DIR"])
        until(lambda: self.portal.supervisor.pids().get("worker", before) != before, "the worker was started again")
        up = state / "run" / "worker.ready"
        until(lambda: up.read_text() == str(self.portal.supervisor.pids().get("worker")), "it takes tasks again")


def _group(group: int) -> list[int]:
    """The living members of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
