"""`manage.py embedded_apply PATH…`: what kubectl apply is to a cluster, for the embedded control plane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.adapters.embedded.deliver import apply_object
from portal.adapters.embedded.files import manifests
from portal.domain.strict_yaml import StrictYamlError
from portal.ports import PortError


class Command(BaseCommand):
    help = "Apply YAML files (XRDs, Compositions, fleet objects) to the embedded control plane; folders are searched."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = manifests(options["paths"])
        except (OSError, StrictYamlError, ValueError) as error:
            raise CommandError(str(error)) from error
        for path, manifest in found:
            try:
                applied = apply_object(manifest, manager="embedded_apply")
            except PortError as error:
                raise CommandError(f"{path}: {error}") from error
            name = manifest["metadata"]["name"]
            self.stdout.write(f"{manifest['kind']} {name}: generation {applied.generation}")
