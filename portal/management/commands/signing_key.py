"""`manage.py signing_key`: the keys that approvals are signed with: show, rotate, retire, sign living claims anew."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from portal.adapters import control_plane
from portal.models import SigningKey
from portal.ports import RetryableError
from portal.services import reapplying, signing
from portal.services.errors import ServiceError


class Command(BaseCommand):
    help = (
        "Approvals are signed with a key that is made at the first start. `rotate` makes another one; it signs once "
        "every control plane has it. `resign` gives living claims approvals of it; then the old one can `retire`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="every key, whether it signs, where it is published, how many claims rest on it")
        verbs.add_parser("rotate", help="make a new key and publish it")
        resign = verbs.add_parser("resign", help="apply living claims again with approvals of the key that signs now")
        resign.add_argument("--all", action="store_true", help="also those that have one: their validity begins anew")
        retire = verbs.add_parser("retire", help="withdraw a key that nothing living rests on")
        retire.add_argument("kid")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            {"list": self._list, "rotate": self._rotate, "resign": self._resign, "retire": self._retire}[verb](options)
        except ServiceError as error:
            raise CommandError(error.message) from None

    def _list(self, options: dict[str, Any]) -> None:
        carried = Counter(signing.kid_of(instance.claim) for instance in signing.living_instances())
        for key in SigningKey.objects.order_by("created_at", "kid"):
            where = ", ".join(sorted(key.published)) or "nowhere"
            self.stdout.write(f"{key.kid}  {_state(key)}  published: {where}  living claims: {carried[key.kid]}")
        if not SigningKey.objects.exists():
            self.stdout.write("No key yet: the first start makes one.")
        if carried[None]:
            self.stdout.write(f"{carried[None]} living claims carry no approval; `signing_key resign` gives them one.")

    def _rotate(self, options: dict[str, Any]) -> None:
        key = signing.rotate()
        failed = []
        for name in sorted(signing.control_planes()):
            try:
                signing.publish(control_plane(name), again=True)
                self.stdout.write(f"{name}: published")
            except RetryableError as error:
                failed.append(name)
                self.stderr.write(f"{name}: {error.message}")
        key.refresh_from_db()
        self.stdout.write(f"{key.kid}  {_state(key)}")
        if failed:
            self.stdout.write(
                f"It signs once {', '.join(failed)} has it too: the mirror publishes it there at its next full "
                "comparison, or run `signing_key rotate` again."
            )
        else:
            self.stdout.write("Then run `signing_key resign`, and `signing_key retire` for the former one.")

    def _resign(self, options: dict[str, Any]) -> None:
        waiting = [key for key in signing.living_keys() if not _signs_by_now(key)]
        if waiting:
            raise CommandError(f"{waiting[0].kid}  {_state(waiting[0])}. Run this again then.")
        chosen = reapplying.ask_new_approvals(all_of_them=options["all"], system="signing_key")
        for instance in chosen:
            self.stdout.write(f"{instance.namespace}/{instance.name}: a new approval is on its way")
        self.stdout.write(f"{len(chosen)} claims get new approvals.")

    def _retire(self, options: dict[str, Any]) -> None:
        key = signing.retire(options["kid"])
        self.stdout.write(f"{key.kid}  {_state(key)}. Control planes forget it within a minute.")


def _signs_by_now(key: SigningKey) -> bool:
    return key.active_from is not None and key.active_from <= timezone.now()


def _state(key: SigningKey) -> str:
    now = timezone.now()
    if key.retired_at is not None:
        return f"retired at {key.retired_at.isoformat(timespec='seconds')}"
    if key.active_from is None:
        missing = ", ".join(sorted(signing.control_planes() - key.published.keys()))
        return f"waits to be published to: {missing}"
    if key.active_from > now:
        return f"signs from {key.active_from.isoformat(timespec='seconds')} on"
    return "signs" if signing.current_key(now) == key else "verifies what it has signed"
