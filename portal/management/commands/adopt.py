"""`manage.py adopt`: list claims of known offerings that the portal doesn't know, or import them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.adapters import control_plane
from portal.models import Environment, Team
from portal.ports import ControlPlane, PortError
from portal.services import adopting, signing
from portal.services.errors import ServiceError
from portal.services.finding import Defaults, Found, unknown_claims

HEADER = ("CONTROL PLANE", "NAMESPACE", "NAME", "KIND", "TEAM", "ENVIRONMENT", "MONTHLY", "TAKES", "NOTE")


class Command(BaseCommand):
    help = (
        "List claims of known offerings that no instance is known for: whose they would be, what they cost and take. "
        "--import counts them as instances; the control plane is written to with --take-over only."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--control-plane", help="only this one; else every one that an environment names")
        wanted = parser.add_mutually_exclusive_group()
        wanted.add_argument(
            "--import", dest="names", action="append", metavar="[NAMESPACE/]NAME", help="may be given more than once"
        )
        wanted.add_argument("--all", action="store_true", help="import all that can be")
        parser.add_argument("--default-team", help="whose a claim is that neither a label nor its namespace tells")
        parser.add_argument("--default-environment", help="and in which environment")
        parser.add_argument("--take-over", action="store_true", help="apply them with the portal's marks and approval")
        parser.add_argument("--by", metavar="USER", help="who imports: said in the audit log; needed to import")

    def handle(self, *args: Any, **options: Any) -> None:
        defaults = Defaults(
            _row(Team, options["default_team"], "team"),
            _row(Environment, options["default_environment"], "environment"),
        )
        actor = _actor(options["by"], importing=bool(options["names"] or options["all"]))
        planes = dict(_planes(options["control_plane"]))
        try:
            found = [each for plane in planes.values() for each in unknown_claims(plane, defaults)]
        except PortError as error:
            raise CommandError(f"Nothing was imported: {error.message}") from None
        if options["names"] or options["all"]:
            chosen = found if options["all"] else [_named(name, found) for name in options["names"]]
            self._import(chosen, planes, actor, take_over=options["take_over"])
        else:
            self._list(found, actor)

    def _list(self, found: list[Found], actor: User) -> None:
        if not found:
            self.stdout.write("Every claim of a known offering is an instance of the portal's.")
            return
        rows: list[tuple[str, ...]] = [HEADER]
        rows += [_shown(each, adopting.figures(each, actor=actor)) for each in found]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
            self.stdout.write("  ".join(cells).rstrip())

    def _import(self, chosen: list[Found], planes: dict[str, ControlPlane], actor: User, *, take_over: bool) -> None:
        failed = 0
        for found in chosen:
            try:
                instance = adopting.adopt(found, actor=actor)
                self.stdout.write(f"{found.place}: imported for team {instance.team.slug} as instance {instance.pk}")
                if take_over:
                    adopting.take_over(instance, planes[found.control_plane], actor=actor)
                    self.stdout.write(f"{found.place}: the portal applies it from here on")
            except (ServiceError, PortError) as error:
                failed += 1
                self.stderr.write(f"{found.place}: {error.message}")
        if failed:
            raise CommandError(f"{failed} of {len(chosen)} claims were not imported or not taken over.", returncode=1)


def _shown(found: Found, figures: adopting.Figures) -> tuple[str, ...]:
    team = f"{found.team.slug} (by {found.owner_by})" if found.team else "-"
    quote = figures.quote
    monthly = "-" if quote is None else f"{quote.monthly if quote.monthly is not None else 'unknown'} {quote.currency}"
    takes = ", ".join(f"{amount} {dimension}" for dimension, amount in sorted(figures.demand.items())) or "-"
    notes = [
        *found.problems,
        *(f"over quota: {line}" for line in figures.over),
        *(f"no quota governs {dimension}" for dimension in figures.unlimited),
        *(["made by a portal" + (", approval signed here" if found.signed else "")] if found.facts else []),
    ]
    environment = found.environment.slug if found.environment else "-"
    ref = found.claim.ref
    place = (found.control_plane, ref.namespace, ref.name, ref.kind)
    return (*place, team, environment, monthly, takes, "; ".join(notes))


def _named(wanted: str, found: list[Found]) -> Found:
    hits = [each for each in found if wanted in (each.place, each.claim.ref.name)]
    if len(hits) == 1:
        return hits[0]
    if not hits:
        known = ", ".join(each.place for each in found[:20]) or "none"
        raise CommandError(f"No claim that the portal doesn't know is called '{wanted}'; there are: {known}.")
    places = ", ".join(f"{each.claim.ref.kind} {each.place} on {each.control_plane}" for each in hits)
    raise CommandError(f"'{wanted}' names {len(hits)} claims ({places}): give namespace/name, or --control-plane.")


def _planes(only: str | None) -> Iterator[tuple[str, ControlPlane]]:
    for name in [only] if only else sorted(signing.control_planes()):
        try:
            yield name, control_plane(name)
        except ValueError as error:
            raise CommandError(f"{error}.") from None


def _row(model: Any, slug: str | None, what: str) -> Any:
    if slug is None:
        return None
    found = model.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(model.objects.values_list("slug", flat=True)[:20]) or "none"
        raise CommandError(f"There is no {what} '{slug}'; there are: {known}.")
    return found


def _actor(username: str | None, *, importing: bool) -> User:
    if importing and username is None:
        raise CommandError("Say who imports: --by USER. The audit log keeps it.")
    people = User.objects.filter(is_active=True).order_by("pk")
    found = people.filter(username=username).first() if username else people.first()
    if found is None:
        raise CommandError(f"Nobody active is called '{username}'." if username else "There are no users yet.")
    return found
