"""An offering: what a developer may ask for, read from its two files and checked as a whole.

In charge of: what an XRD (definition.yaml) and its governance file (offering.yaml) say together: the claim's kind, the
spec's validity and defaults, what a spec takes of quota, what it is priced by, where it may go, how it may be named.
Not in charge of: reading files (services), prices, quotas, policies, or what the claim becomes (the Composition).

Kubernetes reads definition.yaml too, so a scalar in it that YAML 1.1 and 1.2 read differently is refused. How the files
are checked is in definition_file and offering_file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from portal.domain.cel import Bindings, CelError, Environment, Program
from portal.domain.decision import digest
from portal.domain.definition_file import Definition, parse_definition
from portal.domain.offering_file import CatalogShape, Deprecation, Governance, Naming, parse_governance
from portal.domain.offering_problems import FileProblem, OfferingError
from portal.domain.pricing import PriceKey
from portal.domain.schema import Problem, SchemaValidator

__all__ = [
    "CatalogShape",
    "Deprecation",
    "FileProblem",
    "Naming",
    "Offering",
    "OfferingError",
    "PriceKey",
    "parse_offering",
]

MAX_LABEL = 63  # characters of a DNS-1123 label: names of Services and Pods' hostnames, and values of labels
_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)  # RFC 1035 as Kubernetes asks it of Services
MAX_AMOUNT = 2**53 - 1  # of a dimension or a price key: exact in every JSON reader, and far above any quota


class Offering(msgspec.Struct, frozen=True, eq=False):
    """A checked offering. Immutable, safe to share between threads; two with the same digest are the same."""

    name: str  # its folder, and the plural of its claims
    digest: str  # sha256 over both files' contents, 64 hexadecimal digits
    kind: str
    group: str
    version: str
    plural: str
    title: str
    description: str
    owner: str
    composition: str
    catalog: CatalogShape
    naming: Naming
    endpoint: dict[str, str]  # name -> JSON pointer into the claim, e.g. {"url": "/status/endpoint/url"}
    deprecation: Deprecation | None
    spec_schema: dict[str, Any]  # OpenAPI v3, the spec part
    status_schema: dict[str, Any]  # OpenAPI v3, the status part; an empty object when the XRD declares none
    suspend: str | None  # the boolean of the spec that stops it and keeps its data; None: it can't be suspended
    _validator: SchemaValidator
    _environment: Environment
    _metering: tuple[tuple[Program, Program], ...]
    _prices: tuple[tuple[Program, Program], ...]
    _regions: Program | None

    @property
    def api_version(self) -> str:
        """group/version of the claims."""
        return f"{self.group}/{self.version}"

    @property
    def metering(self) -> tuple[tuple[str, str], ...]:
        """What `measure` computes, as it is written: expressions over `spec` for (dimension, amount)."""
        return tuple((dimension.expression, amount.expression) for dimension, amount in self._metering)

    def validate(self, spec: Any) -> list[Problem]:
        """Every problem of a spec, pointers relative to it; also when its quota, prices or regions can't be told."""
        problems = self._validator.validate(spec)
        if problems:
            return problems
        try:
            bindings = self._bind(spec)
            self._measure(bindings)
            self._price_keys(bindings)
            self._placeable(bindings)
        except CelError as error:
            return [Problem("", "unmeasurable", f"what this takes of quota or money can't be computed: {error}")]
        return []

    def validate_change(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Problem]:
        """What of a living instance's spec may not become what `new`, a valid one, says; in the schema's own words."""
        return self._validator.validate_change(dict(old), dict(new))

    def suspended(self, spec: Mapping[str, Any]) -> bool:
        """Whether this spec stops it."""
        return self.suspend is not None and spec.get(self.suspend) is True

    def with_defaults(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a spec with the schema's defaults filled in."""
        filled: dict[str, Any] = self._validator.with_defaults(dict(spec))
        return filled

    def measure(self, spec: Mapping[str, Any]) -> dict[str, int]:
        """Dimension -> how much of it this spec holds at most. Lines of one dimension add up; zeros are left out.

        Raises CelError when an amount is negative, above MAX_AMOUNT or can't be evaluated: never a smaller answer.
        """
        return self._measure(self._bind(spec))

    def price_keys(self, spec: Mapping[str, Any]) -> list[PriceKey]:
        """What is paid for, in the order of the file; quantities of 0 are left out. Raises CelError like measure."""
        return self._price_keys(self._bind(spec))

    def regions(self, spec: Mapping[str, Any]) -> list[str]:
        """Where it may be placed; empty means everywhere. Raises CelError."""
        return self._placeable(self._bind(spec))

    def check_name(self, name: str, namespace: str) -> list[Problem]:
        """Every problem of an instance's name in a namespace, pointer "" (the name itself): its form, its length, and
        that each name derived from it fits MAX_LABEL."""
        return check_name(name, namespace, self.naming)

    def _bind(self, spec: Mapping[str, Any]) -> Bindings:
        return self._environment.bind({"spec": self.with_defaults(spec)})

    def _measure(self, bindings: Bindings) -> dict[str, int]:
        totals: dict[str, int] = {}
        for dimension, amount in _quantities(self._metering, bindings, "dimension"):
            totals[dimension] = totals.get(dimension, 0) + amount
            if totals[dimension] > MAX_AMOUNT:
                raise CelError(f"{dimension}: {totals[dimension]} in all is above {MAX_AMOUNT}")
        return {dimension: amount for dimension, amount in totals.items() if amount}

    def _price_keys(self, bindings: Bindings) -> list[PriceKey]:
        return [PriceKey(sku, quantity) for sku, quantity in _quantities(self._prices, bindings, "sku") if quantity]

    def _placeable(self, bindings: Bindings) -> list[str]:
        regions: list[str] = self._regions.evaluate(bindings) if self._regions else []
        return regions


def _quantities(pairs: tuple[tuple[Program, Program], ...], bindings: Bindings, word: str) -> Iterator[tuple[str, int]]:
    for key_program, amount_program in pairs:
        key, amount = key_program.evaluate(bindings), amount_program.evaluate(bindings)
        if not key.strip():
            raise CelError(f"the {word} is empty", key_program.expression)
        if not 0 <= amount <= MAX_AMOUNT:
            raise CelError(f"{key}: {amount} is not between 0 and {MAX_AMOUNT}", amount_program.expression)
        yield key, amount


def check_name(name: str, namespace: str, naming: Naming) -> list[Problem]:
    """See Offering.check_name."""
    problems = []
    if not _LABEL.fullmatch(name):
        message = (
            f"{_shown(name)} can't be the name of a Service (a DNS-1035 label): use a-z, 0-9 and '-', beginning with a "
            f"letter and ending with a letter or digit{_suggestion(name)}"
        )
        problems.append(Problem("", "bad-name", message))
    if len(name) > naming.max_length:
        message = f"has {len(name)} characters, at most {naming.max_length} are accepted here; shorten it"
        problems.append(Problem("", "too-long", message))
    for template in naming.derived:
        derived = template.replace("{name}", name).replace("{namespace}", namespace)
        excess = len(derived) - MAX_LABEL
        if excess > 0:
            message = (
                f"the platform makes a name {template} of it, which would have {len(derived)} characters in namespace "
                f"{_shown(namespace)}; at most {MAX_LABEL} fit. Shorten the name by {excess}"
            )
            problems.append(Problem("", "too-long", message))
    return problems


def _shown(text: str) -> str:
    return f"'{text}'" if len(text) <= 80 else f"'{text[:79]}…'"


def _suggestion(name: str) -> str:
    """A name of the right form made of this one's letters, as an addition to a message; a model id is a common slip."""
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    slug = "".join(char if char.isascii() and char.isalnum() else "-" for char in last)
    slug = "-".join(part for part in slug.split("-") if part).lstrip("0123456789-")[:40].rstrip("-")
    return f", for example {slug}" if slug and slug != name else ""


def parse_offering(folder_name: str, definition_text: str, governance_text: str) -> Offering:
    """The offering of these two files. Raises OfferingError with every problem found: file, path and reason."""
    definition, problems = parse_definition(definition_text, folder_name)
    governance, more = parse_governance(governance_text, folder_name, definition)
    if definition is None or governance is None or problems or more:
        raise OfferingError([*problems, *more])
    return _assemble(folder_name, digest([definition_text, governance_text]), definition, governance)


def _assemble(name: str, contents: str, definition: Definition, governance: Governance) -> Offering:
    return Offering(
        name=name,
        digest=contents,
        kind=definition.kind,
        group=definition.group,
        version=definition.version,
        plural=definition.plural,
        title=governance.title,
        description=governance.description,
        owner=governance.owner,
        composition=governance.composition,
        catalog=governance.catalog,
        naming=governance.naming,
        endpoint=governance.endpoint,
        deprecation=governance.deprecation,
        spec_schema=definition.spec_schema,
        status_schema=definition.status_schema,
        suspend=governance.suspend,
        _validator=definition.validator,
        _environment=governance.environment,
        _metering=governance.metering,
        _prices=governance.prices,
        _regions=governance.regions,
    )
