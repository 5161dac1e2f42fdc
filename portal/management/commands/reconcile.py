"""`manage.py reconcile`: after a restore, compare control planes with the database, adopt what it forgot, and go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.adapters import control_plane
from portal.ports import PortError
from portal.services import adopting, pausing, reconciling, signing
from portal.services.errors import ServiceError
from portal.services.finding import manifest_of
from portal.services.reconciling import Comparison


class Command(BaseCommand):
    help = (
        "Without an option: show what each control plane has and the database does not know, and the other way round. "
        "A database that was restored: --pause before the portal starts, then look, --adopt, look again, --resume."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--control-plane", help="only this one; else every one that an environment names")
        verbs = parser.add_mutually_exclusive_group()
        verbs.add_argument("--pause", action="store_true", help="deliver and publish nothing until --resume")
        verbs.add_argument("--adopt", action="store_true", help="take in what was approved and signed by this portal")
        verbs.add_argument("--resume", action="store_true", help="end the pause")
        parser.add_argument(
            "--by", metavar="USER", help="who does it: said in the audit log; needed to change anything"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        only = options["control_plane"]
        names = [only] if only else sorted(signing.control_planes())
        verb = next((each for each in ("pause", "adopt", "resume") if options[each]), "")
        actor = _actor(options["by"]) if verb else None
        if verb == "pause" and actor is not None:
            self._pause(names, actor)
            return
        done: dict[str, Callable[[Comparison, User], bool]] = {"adopt": self._adopt, "resume": self._resume}
        well = True
        for name in names:
            comparison = _compared(name)
            well = (done[verb](comparison, actor) if verb and actor else self._show(comparison)) and well
        if not well:
            raise CommandError("Something is left to do.", returncode=1)

    def _pause(self, names: list[str], actor: User) -> None:
        for name in names:
            new = pausing.pause(name, f"Paused by {actor.username}, to compare it with the database.", actor=actor)
            self.stdout.write(f"{name}: {'paused' if new else 'was paused already'}")

    def _adopt(self, comparison: Comparison, actor: User) -> bool:
        steps: list[tuple[str, Callable[[], Any]]] = [
            *((each.place, lambda found=each: adopting.adopt(found, actor=actor)) for each in comparison.unknown),
            *(
                (str(each.instance), lambda newer=each: reconciling.catch_up(newer, actor=actor))
                for each in comparison.newer
            ),
        ]
        failed = 0
        for place, step in steps:
            try:
                step()
                self.stdout.write(f"{comparison.control_plane}: {place}: taken in")
            except ServiceError as error:
                failed += 1
                self.stderr.write(f"{comparison.control_plane}: {error.message}")
        self.stdout.write(f"{comparison.control_plane}: {len(steps) - failed} of {len(steps)} taken in")
        return not failed

    def _resume(self, comparison: Comparison, actor: User) -> bool:
        try:
            ended = reconciling.resume(comparison, actor=actor)
        except ServiceError as error:
            self.stderr.write(error.message)
            return False
        self.stdout.write(f"{comparison.control_plane}: {'goes on' if ended else 'was not paused'}")
        return True

    def _show(self, found: Comparison) -> bool:
        paused = (
            f"paused since {found.pause.since:%Y-%m-%d %H:%M}: {found.pause.reason}" if found.pause else "not paused"
        )
        self.stdout.write(f"{found.control_plane}: {paused}")
        self._section("signed here, unknown to the database (--adopt)", [_unknown(each) for each in found.unknown])
        newer = [f"{each.instance}: its claim is of {each.why}" for each in found.newer]
        self._section("known, and changed since (--adopt)", newer)
        strangers = [f"{each.claim.ref.kind} {each.place}{_key(each)}" for each in found.strangers]
        self._section("not signed by a key of this database (manage.py adopt)", strangers)
        gone = [f"{each} ({each.phase})" for each in found.gone]
        self._section("known, and not there any more (given back after --resume)", gone)
        drifted = [f"{instance}: {', '.join(fields)}" for instance, fields in found.drifted]
        self._section("changed by others", drifted)
        waiting = [f"{each} of {each.instance} by {each.requester.username}" for each in found.waiting]
        self._section("waiting to be delivered (withdraw what should not be, before --resume)", waiting)
        return found.is_settled

    def _section(self, title: str, lines: list[str]) -> None:
        if lines:
            self.stdout.write(f"  {title}:")
        for line in lines:
            self.stdout.write(f"    {line}")


def _unknown(found: Any) -> str:
    problems = f": {'; '.join(found.problems)}" if found.problems else ""
    team = found.team.slug if found.team else "nobody"
    return f"{found.claim.ref.kind} {found.place} of {team}{problems}"


def _key(found: Any) -> str:
    """A key that is newer than the backup proves nothing any more."""
    kid = signing.kid_of(manifest_of(found.claim))
    return f", approval by key {kid}, which is not in the database" if kid else ""


def _compared(name: str) -> Comparison:
    try:
        return reconciling.compare(control_plane(name))
    except PortError as error:
        raise CommandError(f"{name} could not be compared: {error.message}") from None
    except ValueError as error:
        raise CommandError(f"{error}.") from None


def _actor(username: str | None) -> User:
    if username is None:
        raise CommandError("Say who does this: --by USER. The audit log keeps it.")
    found = User.objects.filter(username=username, is_active=True).first()
    if found is None:
        raise CommandError(f"Nobody active is called '{username}'.")
    return found
