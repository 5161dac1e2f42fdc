"""Audit events as sentences: who did what, when, and the words they added."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from portal.models import AuditEvent

Data = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """One step, as it is shown. `said`: what a person wrote with it. `close`: another one was in the same minute."""

    at: dt.datetime
    who: str
    person: bool
    sentence: str
    said: str
    event: AuditEvent
    close: bool = False


def moments(events: Iterable[AuditEvent]) -> list[Moment]:
    return [_moment(event) for event in events]


def story(events: Iterable[AuditEvent]) -> list[Moment]:
    """The moments of one thing, newest first, as one reads them: what was published again and again is told once, and
    times that the minute can't tell apart are marked."""
    found: list[Moment] = []
    published: Counter[str] = Counter()
    for moment in moments(events):
        if moment.event.verb == "catalog.publish":
            published[moment.sentence] += 1
        if published[moment.sentence] < 2:
            found.append(moment)
    minutes = Counter(_minute(moment) for moment in found)
    return [
        replace(moment, sentence=_times(moment.sentence, published), close=minutes[_minute(moment)] > 1)
        for moment in found
    ]


def _times(sentence: str, published: Counter[str]) -> str:
    return f"{sentence}, {published[sentence]} times" if published[sentence] > 1 else sentence


def _minute(moment: Moment) -> dt.datetime:
    return moment.at.replace(second=0, microsecond=0)


def _moment(event: AuditEvent) -> Moment:
    say = SENTENCES.get(event.verb)
    data = event.data if isinstance(event.data, dict) else {}
    return Moment(
        at=event.at,
        who=event.actor.username if event.actor else f"portal ({event.system})",
        person=event.actor is not None,
        sentence=say(data) if say else event.verb.replace(".", " ").replace("_", " "),
        said=str(data.get("comment") or ""),
        event=event,
    )


def _codes(data: Data) -> str:
    codes = dict.fromkeys(map(str, data.get("codes") or []))
    return f" ({', '.join(codes)})" if codes else ""


def _deny(data: Data) -> str:
    if data.get("from") == "Draft":
        return f"asked; the policies denied it{_codes(data)}"
    return "decided again; the policies deny it by now"


def _vote(data: Data) -> str:
    answer = "approved" if data.get("answer") == "approve" else "rejected"
    return f"{answer} it in stage {data.get('stage')}"


def _phase(data: Data) -> str:
    message = str(data.get("message") or "")
    phase = str(data.get("to"))
    return f"saw it {phase}" + (f": {message}" if message and message.lower() != phase.lower() else "")


def _ask_again(data: Data) -> str:
    changed = "; ".join(map(str, data.get("changed") or []))
    return "asks again, since something changed" + (f": {changed}" if changed else "")


def _quota(data: Data) -> str:
    before = data.get("before")
    was = "there was none" if before is None else f"it was {before}"
    return f"set quota {data.get('dimension')} of {data.get('team')} to {data.get('limit')}; {was}"


def _fields(data: Data, values: bool = True) -> str:
    """Fields of a drift: `/spec/replicas/max to 4 (kubectl-edit)`."""
    rows = [row for row in data.get("fields") or [] if isinstance(row, dict)]
    told = [
        f"{row.get('field')} to {row.get('live')} ({row.get('manager') or 'nobody says who'})"
        if values
        else f"{row.get('field')}"
        for row in rows
    ]
    return ", ".join(told) or "nothing"


def _activated(data: Data) -> str:
    return f"activated {data.get('name')}, version {str(data.get('digest'))[:12]}"


SENTENCES: dict[str, Callable[[Data], str]] = {
    "request.ask": lambda data: f"asked; it needs approval{_codes(data)}",
    "request.allow": lambda data: "asked; the policies allowed it at once",
    "request.deny": _deny,
    "request.approve": lambda data: "gave the last vote that was missing: approved",
    "request.reject": lambda data: f"ended it with a no in stage {data.get('stage')}",
    "request.withdraw": lambda data: "withdrew it",
    "request.expire": lambda data: "let it expire: not enough votes in time",
    "request.ask_again": _ask_again,
    "request.deliver": lambda data: "began to deliver it; what was approved is frozen",
    "request.finish": lambda data: "closed it as done",
    "request.fail": lambda data: f"ended it as failed: {data.get('message') or data.get('code') or 'no reason given'}",
    "request.adopt": lambda data: "took it in as done: it was found on its control plane",
    "vote.cast": _vote,
    "request.supersede": lambda data: f"ended it: a later request ({data.get('kind') or 'of its kind'}) took its place",
    "claim.apply": lambda data: f"applied the claim {data.get('namespace')}/{data.get('name')}",
    "claim.reapply-asked": lambda data: f"asked to apply the claim again ({data.get('why')})",
    "claim.reapply": lambda data: "applied the claim again, with a new approval",
    "claim.reapply-failed": lambda data: f"could not apply the claim again: {data.get('message')}",
    "instance.adopt": lambda data: f"imported {data.get('claim')}, which the portal did not know",
    "instance.catch-up": lambda data: "took in what its claim says, after the database was restored",
    "control-plane.pause": lambda data: f"paused {data.get('controlPlane')}: {data.get('reason')}",
    "control-plane.resume": lambda data: f"let {data.get('controlPlane')} go on",
    "signing-key.create": lambda data: f"made signing key {data.get('kid')}",
    "signing-key.publish": lambda data: f"published {len(data.get('kids') or [])} keys to {data.get('controlPlane')}",
    "signing-key.activate": lambda data: f"lets key {data.get('kid')} sign from {data.get('from')} on",
    "signing-key.retire": lambda data: f"retired signing key {data.get('kid')}",
    "claim.delete": lambda data: "asked the control plane to delete the claim",
    "claim.deleted_by_others": lambda data: f"saw that somebody other than the portal deleted {data.get('claim')}",
    "drift.seen": lambda data: f"saw that others set {_fields(data)}",
    "drift.ended": lambda data: f"saw {_fields(data, values=False)} as approved again",
    "drift.ask": lambda data: f"asked for an approval of what others set: {_fields(data)}",
    "drift.take_back": lambda data: f"took back what others set: {_fields(data)}",
    "drift.take_over": lambda data: (
        f"took fields over that others had set to what was approved: {data.get('conflict')}"
    ),
    "instance.create": lambda data: f"recorded the instance {data.get('name')}",
    "instance.phase": _phase,
    "catalog.publish": lambda data: f"{'took it out of' if data.get('removed') else 'wrote its entry in'} the catalog",
    "quota.set": _quota,
    "budget.set": lambda data: f"set budget {data.get('team')} to {data.get('soft')} soft, {data.get('hard')} hard",
    "offering.activate": _activated,
    "bundle.activate": _activated,
    "prices.activate": _activated,
    "team.create": lambda data: "created the team",
    "team.join": lambda data: f"added {data.get('user')} as {data.get('role')}",
    "person.create": lambda data: f"added the person {data.get('user') or data.get('name')}",
    "person.change": lambda data: f"changed the person {data.get('name')}",
    "person.signin": lambda data: "signed in",
    "person.signin_failed": lambda data: f"refused a wrong password for {data.get('user') or 'a name nobody has'}",
    "environment.create": lambda data: f"created the environment {data.get('slug')}",
    "token.create": lambda data: f"made token {data.get('prefix')} for {data.get('user')}",
    "token.revoke": lambda data: f"revoked token {data.get('prefix')}",
}
