"""`manage.py admission_policy`: print what makes an API server refuse claims that did not come through the portal."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.domain import strict_yaml
from portal.models import Document
from portal.rendering.admission import Actors, AdmissionError, admission_policy
from portal.services import loading
from portal.services.errors import ServiceError

DEFAULT = Actors()


class Command(BaseCommand):
    help = (
        "Print a ValidatingAdmissionPolicy and its binding per offering, for `kubectl apply -f -`. Kubernetes 1.30 or "
        "later. Begin with --warn: it lets through and says what it would refuse."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--offering", action="append", help="only this one; may be given more than once")
        parser.add_argument(
            "--warn", action="store_true", help="warn and note in the cluster's audit log, refuse nothing"
        )
        parser.add_argument("--portal-user", default=DEFAULT.portal, help=f"the portal there; else {DEFAULT.portal}")
        parser.add_argument(
            "--crossplane-user",
            action="append",
            help=f"an account of Crossplane's; may be given more than once; else {', '.join(DEFAULT.crossplane)}",
        )
        parser.add_argument(
            "--admin-group",
            action="append",
            help="a group that may do what the portal may, up to what was approved; may be given more than once; else "
            + ", ".join(DEFAULT.admin_groups),
        )
        parser.add_argument(
            "--controller-user",
            action="append",
            help="a controller of the cluster that deletes what has no owner; may be given more than once; else "
            + ", ".join(DEFAULT.controllers),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        actors = Actors(
            portal=options["portal_user"],
            crossplane=tuple(options["crossplane_user"] or DEFAULT.crossplane),
            admin_groups=tuple(options["admin_group"] or DEFAULT.admin_groups),
            controllers=tuple(options["controller_user"] or DEFAULT.controllers),
        )
        try:
            documents = [
                document
                for name in options["offering"] or _all_offerings()
                for document in admission_policy(
                    loading.active_offering(name)[0], actors, settings.PUBLIC_URL, warn=options["warn"]
                )
            ]
        except (AdmissionError, ServiceError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write("---\n".join(strict_yaml.dump(document) for document in documents), ending="")


def _all_offerings() -> list[str]:
    names = [row.name for row in loading.active_documents(Document.Kind.OFFERING)]
    if not names:
        raise CommandError("No offering is loaded. Run `manage.py bootstrap FILE` or `manage.py load` first.")
    return names
