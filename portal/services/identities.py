"""Who comes in from Backstage: the account behind a reference, and what its groups mean here.

In charge of: making an account for a person who is first seen, reading their groups again when they are old, and taking
away what the directory no longer gives. Not in charge of: whether a token is good (adapters.backstage), or what an
account may do (access).

A directory that does not answer adds nothing. What it last said holds for DIRECTORY_STALE_SECONDS; then the rights that
it gave lapse until it answers again. A name that goes to somebody else begins anew: another account, which inherits
nothing; the old one ends.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.utils import timezone

from portal.domain.directory_rules import Rights, Rules
from portal.models import Identity, Membership, Team
from portal.ports import Directory, DirectoryPerson, RetryableError
from portal.services import journal, loading
from portal.services.access import Actor
from portal.services.errors import Unavailable

BACKSTAGE = "backstage"  # the issuer of these identities
SYSTEM = "directory"
SERVICE_SCOPES = frozenset({"feed"})
MAX_USERNAME = 150  # Django's


def person(ref: str, directory: Directory) -> Actor | None:
    """The person of a reference (user:default/ada), with the rights that they have now. None: there is no such person
    any more. Raises Unavailable where somebody who was never seen can't be looked up."""
    found = _current(ref)
    now = timezone.now()
    if found is not None and not _old(found, now, settings.DIRECTORY_TTL_SECONDS):
        return _actor(found.user)
    try:
        said = directory.person(ref)
    except RetryableError as error:
        if found is None:
            raise Unavailable(
                "directory-unavailable", f"Backstage does not say who {ref} is ({error.message}). Try again later."
            ) from None
        return _actor(_as_last_read(found, now))
    user = _seen(ref, said, loading.directory_rules())
    return _actor(user) if user is not None else None


def service(ref: str) -> Actor:
    """A plugin of Backstage that acts for nobody (plugin:catalog): it may read the feed and nothing else."""
    found = _current(ref)
    if found is None:
        with _Locked(ref):
            nobody = DirectoryPerson(ref, "", "", "", ())
            found = _current(ref) or _begin(ref, "", _free_username(ref.replace(":", "-")), nobody)
    return Actor(found.user, SERVICE_SCOPES)


def ref_of(user: User) -> str | None:
    """How Backstage calls this person, if they were seen there or said to be there."""
    return Identity.objects.filter(user=user, issuer=BACKSTAGE, ended_at=None).values_list("ref", flat=True).first()


def _actor(user: User) -> Actor | None:
    return Actor(user) if user.is_active else None


def _current(ref: str) -> Identity | None:
    return Identity.objects.select_related("user").filter(issuer=BACKSTAGE, ref=ref, ended_at=None).first()


def _old(found: Identity, now: dt.datetime, seconds: float) -> bool:
    return found.groups_read_at is None or now - found.groups_read_at > dt.timedelta(seconds=seconds)


def _as_last_read(found: Identity, now: dt.datetime) -> User:
    """While the directory does not answer: as it last said, for a while; then without what it gave."""
    if _old(found, now, settings.DIRECTORY_STALE_SECONDS):
        with _Locked(found.ref):
            held = Identity.objects.select_for_update().get(pk=found.pk)
            if held.ended_at is None and _old(held, now, settings.DIRECTORY_STALE_SECONDS):
                _give(held, Rights(), "the directory has not answered for too long")
    return found.user


def _seen(ref: str, said: DirectoryPerson | None, rules: Rules) -> User | None:
    """Bring account and rights to what the directory says now."""
    with _Locked(ref):
        found = _current(ref)
        if found is not None and said is None:
            _end(found, "not in the directory any more")
            return None
        if said is None:
            return None
        if found is not None and found.person_id and found.person_id != said.person_id:
            _end(found, "the name is somebody else's now")
            found = None
        if found is None:
            found = _begin(ref, said.person_id, _free_username(ref.rpartition("/")[2]), said)
        found.person_id = said.person_id
        found.groups = sorted(said.groups)
        found.groups_read_at = timezone.now()
        found.save(update_fields=["person_id", "groups", "groups_read_at"])
        _give(found, rules.rights(said.groups), "as the directory says")
        return found.user


class _Locked:
    """A transaction in which nobody else deals with this reference: two first visits at once make one account."""

    def __init__(self, ref: str) -> None:
        self._ref = ref
        self._transaction = transaction.atomic()

    def __enter__(self) -> None:
        self._transaction.__enter__()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"identity:{self._ref}"])

    def __exit__(self, *error: object) -> None:
        self._transaction.__exit__(*error)  # type: ignore[arg-type]


def _begin(ref: str, person_id: str, username: str, said: DirectoryPerson) -> Identity:
    user = User.objects.create_user(username, email=said.email[:254], first_name=said.name[:150])
    journal.record("person.create", system=SYSTEM, data={"user": username, "ref": ref})
    return Identity.objects.create(issuer=BACKSTAGE, ref=ref, person_id=person_id, user=user)


def _end(found: Identity, why: str) -> None:
    """The account is kept, for what it did, and may do nothing more."""
    _give(found, Rights(), why)
    found.ended_at = timezone.now()
    found.save(update_fields=["ended_at"])
    User.objects.filter(pk=found.user_id).update(is_active=False)
    journal.record("identity.end", system=SYSTEM, data={"user": found.user.username, "ref": found.ref, "why": why})


def _free_username(name: str) -> str:
    """A name that nobody has or had: equal names are no proof of being the same person."""
    stem = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.") or "person"
    wanted = stem[: MAX_USERNAME - 8]
    taken = set(User.objects.filter(username__startswith=wanted).values_list("username", flat=True))
    return next(each for each in (wanted, *(f"{wanted}-{n}" for n in range(2, 10_000))) if each not in taken)


@dataclass(frozen=True)
class _Change:
    """What the directory gives or takes away, for the audit log."""

    given: list[str]
    taken: list[str]


def _give(found: Identity, rights: Rights, why: str) -> None:
    """Rights of an account as far as they are the directory's; what it was given otherwise stays."""
    teams, groups = _teams(found.user, rights.teams), _approvers(found, rights.approvers)
    given, taken = [*teams.given, *groups.given], [*teams.taken, *groups.taken]
    if given or taken:
        data = {"user": found.user.username, "ref": found.ref, "given": given, "taken": taken, "why": why}
        journal.record("identity.rights", system=SYSTEM, data=data)


def _teams(user: User, wanted: dict[str, str]) -> _Change:
    there = {each.team.slug: each for each in Membership.objects.filter(user=user).select_related("team")}
    own = {slug: each for slug, each in there.items() if each.from_directory}
    given, taken = [], []
    for slug, each in own.items():
        if wanted.get(slug) != each.role:
            each.delete()
            taken.append(f"{each.role} of {slug}")
    for team in Team.objects.filter(slug__in=[slug for slug, role in wanted.items()]):
        role, kept = wanted[team.slug], there.get(team.slug)
        if kept is None or (kept.from_directory and kept.role != role):
            Membership.objects.create(team=team, user=user, role=role, from_directory=True)
            given.append(f"{role} of {team.slug}")
    return _Change(given, taken)


def _approvers(found: Identity, wanted: frozenset[str]) -> _Change:
    own, there = set(found.approver_groups), set(found.user.groups.values_list("name", flat=True))
    taken, given = sorted(own - wanted), sorted(wanted - there)
    found.user.groups.remove(*Group.objects.filter(name__in=taken))
    new = list(Group.objects.filter(name__in=given))
    found.user.groups.add(*new)
    found.approver_groups = sorted((own & wanted) | {group.name for group in new})
    found.save(update_fields=["approver_groups"])
    return _Change(sorted(group.name for group in new), taken)
