"""A control plane in a hurry, as a model: what the function answers takes effect late, and what it is shown is old.

As Crossplane v2.2.1 does it (internal/controller/apiextensions/composite, read 2026-12-01): claims come from one cache
that lags behind all writes, the claim's own included; references are written first, then objects, then the status, each
by itself and over whatever is there; only objects that the claim, as shown, refers to are observed, and those as they
are. Workloads start at once and end later. Used by tests of placement; in charge of the model, not of what must hold.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from composition_function.contract import Outcome, Request, SpecError
from composition_function.fleet import read_cluster
from composition_function.kinds import KINDS
from composition_function.memory import Memory
from composition_function.modeldeployment import MAIN, STOP
from composition_function.objects import granted, slot_of
from composition_function.slots import Placement, Slot

Manifest = dict[str, Any]
READY = [{"type": "Ready", "status": "True"}]
STOPPED = [{"type": "WorkloadsReady", "status": "False", "reason": "Stopped"}]


@dataclass(frozen=True)
class Call:
    """A call that is under way: its answer, and what it was shown."""

    claim: Manifest
    fleet: int  # which of the plane's fleets
    outcome: Outcome
    seen: frozenset[str]  # keys of the objects that were observed


@dataclass
class Plane:
    """Everything as written so far, and the cache's place in the history of claims."""

    fleet: list[Manifest]
    classes: list[Manifest]
    claims: dict[str, Manifest] = field(default_factory=dict)
    objects: dict[str, dict[str, Manifest]] = field(default_factory=dict)
    ending: dict[str, dict[str, Manifest]] = field(default_factory=dict)
    running: dict[str, dict[Slot, int]] = field(default_factory=dict)
    under_way: dict[str, Call] = field(default_factory=dict)
    answers: dict[str, Placement] = field(default_factory=dict)  # each claim's last
    cached: dict[str, Manifest] = field(default_factory=dict)
    fleets: list[list[Manifest]] = field(default_factory=list)  # the fleet as it was and is
    fleet_cached: int = 0  # which of them the cache has
    history: list[dict[str, Manifest]] = field(default_factory=list)
    now: float = 0.0
    memory: Memory = field(init=False)

    def __post_init__(self) -> None:
        self.memory = Memory(lambda: self.now)
        self.fleets = [self.fleet]

    # What people and nodes do.

    def create(self, claim: Manifest) -> None:
        self._write(claim["metadata"]["uid"], copy.deepcopy(claim))

    def change(self, uid: str, **spec: Any) -> None:
        """Change a claim's spec."""
        found = self.claims[uid]
        self._write(uid, {**found, "spec": {**found["spec"], **spec}})

    def delete(self, uid: str) -> None:
        """Mark it; once it is marked and nothing is under way, it goes with all that is left of it."""
        found = self.claims[uid]
        if "deletionTimestamp" not in found["metadata"]:
            marked = {**found["metadata"], "deletionTimestamp": "2026-12-01T13:00:00Z"}
            self._write(uid, {**found, "metadata": marked})
        elif uid not in self.under_way:
            for held in (self.claims, self.objects, self.ending, self.running):
                held.pop(uid, None)
            self.history.append(dict(self.claims))

    def alter_cluster(self, number: int, spec: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """Change a cluster as it is and as it is seen."""
        old = self.fleet[number]
        new = {**old, "spec": {**old["spec"], **spec}, "status": {**old["status"], **status}}
        self.fleet = [*self.fleet[:number], new, *self.fleet[number + 1 :]]
        self.fleets.append(self.fleet)

    # What the control plane does.

    def catch_up(self, steps: int) -> None:
        """The cache takes in some of what was written."""
        del self.history[: max(0, min(steps, len(self.history)) - 1)]
        if self.history:
            self.cached = self.history.pop(0)
        self.fleet_cached = len(self.fleets) - 1

    def read(self, uid: str) -> None:
        """A call begins, with what the cache has; the function may refuse to answer to that."""
        claim = self.cached.get(uid)
        if uid in self.under_way or claim is None or uid not in self.claims:
            return
        kind = KINDS[claim["kind"]]
        refs = claim["spec"].get("crossplane", {}).get("resourceRefs", [])
        observed = {key: item for key, item in self.objects.get(uid, {}).items() if key in refs}
        if self.memory.is_old(claim, observed):
            return
        everything = [*self.classes, *self.fleets[self.fleet_cached], *self.cached.values(), *self._of(uid)]
        required = {s.name: [item for item in everything if item["kind"] == s.kind] for s in kind.selectors(claim)}
        request = Request(*copy.deepcopy((claim, observed, required)), self.memory.placement(claim))
        try:
            outcome = kind.compose(request)
        except SpecError:
            return
        self.memory.keep(claim, outcome)
        if outcome.placement is not None:
            self.answers[uid] = outcome.placement
        self.under_way[uid] = Call(claim, self.fleet_cached, outcome, frozenset(observed))

    def write(self, uid: str) -> Call | None:
        """The call's answer takes effect."""
        call = self.under_way.pop(uid, None)
        if call is None or uid not in self.claims:
            return None
        self._collect(uid, call)
        found = self.claims[uid]
        refs = {"crossplane": {"resourceRefs": sorted(call.outcome.resources)}}
        self._write(uid, {**found, "spec": {**found["spec"], **refs}})
        for key, composed in call.outcome.resources.items():
            self._apply(uid, key, composed.manifest)
        conditions = [
            {"type": c.type, "status": "True" if c.status else "False", "reason": c.reason, "message": c.message}
            for c in call.outcome.conditions
        ]
        ready = {"type": "Ready", "status": "True" if call.outcome.ready else "False"}
        status = {**call.outcome.status, "conditions": [*conditions, ready]}
        self._write(uid, {**self.claims[uid], "status": status})
        return call

    # What providers and workload clusters do.

    def report(self, uid: str) -> None:
        """The workload does what its object says by now, and says so."""
        for key, item in self.objects.get(uid, {}).items():
            manifest = copy.deepcopy(item["spec"]["forProvider"]["manifest"])
            stopped = manifest["metadata"].get("annotations", {}).get(STOP) == "true"
            manifest["status"] = {"conditions": STOPPED if stopped else READY, "url": "http://a.example.org"}
            self.objects[uid][key] = {**item, "status": {"atProvider": {"manifest": manifest}}}
        main = self.objects.get(uid, {}).get(MAIN)
        slot = slot_of(main)
        if main is not None and slot is not None:
            self.running[uid][slot] = granted(main) or 0

    def let_go(self, uid: str) -> None:
        """What was to end has ended."""
        for item in self.ending.pop(uid, {}).values():
            slot = slot_of(item)
            current = slot_of(self.objects.get(uid, {}).get(MAIN))
            if slot is not None and slot != current:
                self.running.get(uid, {}).pop(slot, None)

    def taken(self, slot: Slot) -> int:
        """Units of workloads that are in a slot, started or not gone yet."""
        return sum(slots.get(slot, 0) for slots in self.running.values())

    def _collect(self, uid: str, call: Call) -> None:
        """What was observed and isn't desired any more is to end."""
        for key in call.seen - call.outcome.resources.keys():
            item = self.objects.get(uid, {}).pop(key, None)
            if item is not None:
                self.ending.setdefault(uid, {})[key] = item

    def _apply(self, uid: str, key: str, manifest: Manifest) -> None:
        """Server-side apply. An object of that name that is about to end ends all the same."""
        if key in self.ending.get(uid, {}):
            return
        before = self.objects.setdefault(uid, {}).get(key, {})
        owner = {"uid": uid, "controller": True}
        meta = {**manifest["metadata"], "ownerReferences": [owner]}
        self.objects[uid][key] = {**before, **copy.deepcopy(manifest), "metadata": meta}
        slot, units = slot_of(manifest), granted(manifest) or 0
        if key == MAIN and slot is not None:
            slots = self.running.setdefault(uid, {})
            slots[slot] = max(slots.get(slot, 0), units)

    def _of(self, uid: str) -> list[Manifest]:
        return [*self.objects.get(uid, {}).values(), *self.ending.get(uid, {}).values()]

    def _write(self, uid: str, manifest: Manifest) -> None:
        self.claims = {**self.claims, uid: manifest}
        self.history.append(self.claims)


def capacity(fleet: list[Manifest], slot: Slot) -> int:
    """Capacity of a slot in a view of the fleet."""
    found = [pool for cluster in fleet if cluster["metadata"]["name"] == slot.cluster for pool in _pools(cluster)]
    return sum(pool.capacity for pool in found if pool.name == slot.pool)


def _pools(cluster: Manifest) -> Any:
    return read_cluster(cluster).pools
