"""What the demo does, and what must come of it: the outcome, the price to the cent, the reason. A difference fails it.

Only over HTTP, each step with the token of the person who takes it; outcomes are read back from the API and the feed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from portal.domain import strict_yaml

READY_WITHIN = 60.0  # seconds until Ready; an order of magnitude above what it takes
FINAL_BAD = {"Denied", "Rejected", "Withdrawn", "Expired", "Superseded", "Failed"}

BODIES = Path(__file__).with_name("requests.yaml")


class Unexpected(Exception):
    """An outcome that is not the one the scenario expects."""


@dataclass
class Row:
    """One line of the table."""

    who: str
    what: str
    outcome: str
    why: str
    monthly: str = ""
    ok: bool = True


@dataclass
class Tally:
    """What the last line of a run counts."""

    requests: int = 0
    ready: int = 0
    denied: int = 0
    refused: int = 0
    rows: list[Row] = field(default_factory=list)


class Scenario:
    """The demo's steps against one portal. `tokens`: user name -> API token."""

    def __init__(
        self,
        base_url: str,
        tokens: dict[str, str],
        show: Callable[[Row], None],
        ready_within: float = READY_WITHIN,
    ) -> None:
        self._people = {
            name: httpx.Client(
                base_url=f"{base_url}/api/v1/", headers={"Authorization": f"Bearer {token}"}, timeout=30.0
            )
            for name, token in tokens.items()
        }
        self._bodies: dict[str, dict[str, Any]] = strict_yaml.parse(BODIES.read_text(encoding="utf-8"), str(BODIES))
        self._show = show
        self._ready_within = ready_within
        self._big = ""  # id of the request for the big model
        self.tally = Tally()

    def run(self) -> bool:
        """Take every step; True when each outcome was the expected one."""
        try:
            for step in self._steps():
                self._take(step)
        finally:
            for client in self._people.values():
                client.close()
        return all(row.ok for row in self.tally.rows)

    def _steps(self) -> Iterator[Callable[[], Row]]:
        yield self._small_model
        yield self._big_model
        yield self._own_approval
        yield self._approved_by_two
        yield self._database
        yield self._over_quota
        yield self._over_budget
        yield self._quota_raise
        yield self._let_in
        yield self._catalog

    def _take(self, step: Callable[[], Row]) -> None:
        try:
            row = step()
        except (Unexpected, httpx.HTTPError, KeyError) as error:
            name = step.__name__.strip("_").replace("_", " ")
            row = Row("", name, "UNEXPECTED", f"{type(error).__name__}: {error}", ok=False)
        self.tally.rows.append(row)
        self._show(row)

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _small_model(self) -> Row:
        body = self._bodies["small-model"]
        price = self._preview("ada", body, "Allowed")
        request = self._submit("ada", body)
        _expect(request["state"], {"Approved", "Delivering", "Done"}, "state")
        _expect_price(request, "584.00", price)
        self._until_ready("ada", request)
        return Row("ada", "Llama-3.1-8B on one L4, dev", "Ready", "approved at once by policy", price)

    def _big_model(self) -> Row:
        body = self._bodies["big-model"]
        price = self._preview("erin", body, "NeedsApproval")
        request = self._submit("erin", body)
        _expect(request["state"], {"Waiting"}, "state")
        _expect_price(request, "8614.00", price)
        self._big = request["id"]
        waits = request["waitsFor"]
        return Row("erin", "Llama-3.1-70B on H100s, prod", "Waiting", _waiting(waits), price)

    def _own_approval(self) -> Row:
        answer = self._people["erin"].post(f"requests/{self._big}/approve/", json={"comment": "Looks good to me"})
        _expect(answer.status_code, {403}, "status")
        _expect(answer.json()["code"], {"own-request"}, "code")
        _expect(self._read("erin", self._big)["state"], {"Waiting"}, "state afterwards")
        self.tally.refused += 1
        return Row("erin", "approves her own request", "Refused", answer.json()["detail"])

    def _approved_by_two(self) -> Row:
        for name, comment in (("frank", "Capacity is there"), ("heidi", "Cost is within plan")):
            answer = self._people[name].post(f"requests/{self._big}/approve/", json={"comment": comment})
            _expect(answer.status_code, {200}, f"status of {name}'s vote: {answer.text[:300]}")
        self._until_ready("erin", self._read("erin", self._big))
        return Row("frank, heidi", "approve the 70B model", "Ready", "two approvers, neither of them the requester")

    def _database(self) -> Row:
        body = self._bodies["database"]
        price = self._preview("ben", body, "Allowed")
        request = self._submit("ben", body)
        _expect_price(request, "215.00", price)
        self._until_ready("ben", request)
        return Row("ben", "Qdrant, 5M x 1536, dev", "Ready", "approved at once by policy", price)

    def _over_quota(self) -> Row:
        request = self._submit("carol", self._bodies["over-quota"])
        _expect(request["state"], {"Denied"}, "state")
        return self._denied("carol", "two L4, quota of one", request, "quota-exceeded")

    def _over_budget(self) -> Row:
        request = self._submit("dave", self._bodies["over-budget"])
        _expect(request["state"], {"Denied"}, "state")
        return self._denied("dave", "two H100s, budget of 1500", request, "budget-exceeded")

    def _quota_raise(self) -> Row:
        request = self._submit("carol", self._bodies["quota-raise"])
        _expect(request["state"], {"Waiting"}, "state")
        answer = self._people["grace"].post(f"requests/{request['id']}/approve/", json={"comment": "Fine"})
        _expect(answer.status_code, {200}, f"status: {answer.text[:300]}")
        _expect(answer.json()["state"], {"Done"}, "state")
        quotas = self._people["carol"].get("quotas/", params={"team": "ads", "dimension": "gpu.l4"}).json()["items"]
        _expect(quotas[0]["limit"], {2}, "limit")
        return Row("carol, grace", "raise ads' quota to two L4", "Done", "an admin approved it")

    def _let_in(self) -> Row:
        request = self._submit("carol", self._bodies["over-quota"])
        self._until_ready("carol", request)
        return Row("carol", "two L4 again", "Ready", "fits the new quota", request["quote"]["monthly"])

    def _catalog(self) -> Row:
        expected = {
            ("Component", "model-endpoint", "Ready"): 3,
            ("Resource", "vector-database", "Ready"): 1,
        }
        found: dict[tuple[str, str, str], int] = {}
        deadline = time.monotonic() + self._ready_within
        while time.monotonic() < deadline:
            found = {}
            for entity in self._entities():
                if entity["kind"] not in ("Component", "Resource"):
                    continue  # the APIs and Systems beside them have no state of their own
                state = entity["metadata"]["annotations"]["portal.aiplatform.example.org/state"]
                key = (entity["kind"], entity["spec"]["type"], state)
                found[key] = found.get(key, 0) + 1
            if found == expected:
                return Row(
                    "catalog-service", "reads the catalog feed", "Complete", "3 components, 1 resource, all Ready"
                )
            time.sleep(0.3)
        raise Unexpected(f"the feed holds {found}, not {expected}")

    # --- over HTTP ----------------------------------------------------------------------------------------------------

    def _preview(self, who: str, body: dict[str, Any], outcome: str) -> str:
        answer = self._people[who].post("requests/preview/", json=body)
        _expect(answer.status_code, {200}, f"status of the preview: {answer.text[:300]}")
        _expect(answer.json()["outcome"], {outcome}, "previewed outcome")
        return str(answer.json()["quote"]["monthly"])

    def _submit(self, who: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._people[who].post("requests/", json=body)
        _expect(answer.status_code, {201}, f"status: {answer.text[:300]}")
        self.tally.requests += 1
        request: dict[str, Any] = answer.json()
        return request

    def _read(self, who: str, request_id: str) -> dict[str, Any]:
        request: dict[str, Any] = self._people[who].get(f"requests/{request_id}/").raise_for_status().json()
        return request

    def _denied(self, who: str, what: str, request: dict[str, Any], code: str) -> Row:
        denials = [reason for reason in request["decision"]["reasons"] if reason["effect"] == "deny"]
        _expect({reason["code"] for reason in denials}, [{code}], "codes")
        self.tally.denied += 1
        return Row(who, what, "Denied", denials[0]["message"], request["quote"]["monthly"] if request["quote"] else "")

    def _until_ready(self, who: str, request: dict[str, Any]) -> None:
        deadline = time.monotonic() + self._ready_within
        state, phase, message = request["state"], "", ""
        while time.monotonic() < deadline:
            state = (seen := self._read(who, request["id"]))["state"]
            if state in FINAL_BAD:
                raise Unexpected(
                    f"request {request['id']} is {state}: {seen['failure'] or seen['decision']['reasons']}"
                )
            if seen["instance"]:
                instance = self._people[who].get(f"instances/{seen['instance']}/").raise_for_status().json()
                phase, message = instance["phase"], instance["message"]
            if state == "Done" and phase == "Ready":
                if not instance["endpoint"]:
                    raise Unexpected("it is Ready without an endpoint")
                self.tally.ready += 1
                return
            time.sleep(0.2)
        raise Unexpected(f"not Ready within {self._ready_within:.0f} s: request {state}, instance {phase}: {message}")

    def _entities(self) -> Iterator[dict[str, Any]]:
        url: str | None = "catalog/entities/"
        while url:
            page = self._people["catalog-service"].get(url).raise_for_status().json()
            yield from page["entities"]
            url = page["next"]


def _waiting(waits: dict[str, Any] | None) -> str:
    return f"for {waits['missing']} of {waits['group']}" if waits else ""


def _expect(value: Any, allowed: Any, what: str) -> None:
    if value not in allowed:
        raise Unexpected(f"{what} is {value!r}, expected {' or '.join(map(repr, allowed))}")


def _expect_price(request: dict[str, Any], monthly: str, previewed: str) -> None:
    _expect(request["quote"]["monthly"], [monthly], "monthly price")
    _expect(previewed, [monthly], "previewed price")
