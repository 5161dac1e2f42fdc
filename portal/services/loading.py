"""Takes in what governs (offerings, bundle, prices) from files, by digest; and gives it back, parsed, by digest.

In charge of: which document is active, and a cache of the parsed ones (a digest's meaning never changes: what is stored
under it is hashed again before it governs). Not in charge of: what makes a file wrong (domain), nor of quotas and
budgets (bootstrapping).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from django.contrib.auth.models import Group
from django.db import transaction

from portal.domain.bundle import Bundle, BundleError, check_groups, parse_bundle
from portal.domain.decision import PriceRow
from portal.domain.decision import digest as digest_of
from portal.domain.directory_rules import FILE as DIRECTORY
from portal.domain.directory_rules import NONE, Rules, RulesError, parse_rules
from portal.domain.offerings import Offering, OfferingError, parse_offering
from portal.domain.pricing import parse_prices
from portal.models import ActiveDocument, Document, Price, Team
from portal.services import journal
from portal.services.errors import NotFound, ServiceError

DEFINITION, GOVERNANCE = "definition.yaml", "offering.yaml"
BUNDLE, PRICES = "bundle.yaml", "prices.csv"
DEFAULT = "default"  # bundles and price lists: one of each is active, under this name


def read_offerings(roots: Sequence[Path]) -> list[tuple[Offering, dict[str, str]]]:
    """Parse each folder below `roots` that holds an offering.yaml. Raises ServiceError with all problems of all."""
    found, problems = [], []
    for folder in sorted(path.parent for root in roots for path in root.glob(f"*/{GOVERNANCE}")):
        try:
            texts = {name: (folder / name).read_text(encoding="utf-8") for name in (DEFINITION, GOVERNANCE)}
            found.append((_parsed(folder.name, texts[DEFINITION], texts[GOVERNANCE]), texts))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{folder}: {error}")
        except OfferingError as error:
            problems.append(f"{folder}: {error}")
    names = [offering.name for offering, _ in found]
    problems += [f"offering {name} is defined twice" for name in sorted(set(names)) if names.count(name) > 1]
    if not found and not problems:
        problems.append(f"no */{GOVERNANCE} below {', '.join(map(str, roots))}")
    if problems:
        raise ServiceError("offerings-wrong", "\n".join(problems))
    return found


# A parsed offering can't be changed and depends on its texts alone; compiling its CEL is most of a load.
_parsed = lru_cache(maxsize=64)(parse_offering)


def load_offerings(roots: Sequence[Path], *, system: str) -> list[str]:
    """Store and activate the offerings in files; retire those whose files are gone. Returns names that changed."""
    offerings = read_offerings(roots)
    changed = []
    with transaction.atomic():
        for offering, texts in offerings:
            changed += _activate(Document.Kind.OFFERING, offering.name, offering.digest, texts, system)
        gone = ActiveDocument.objects.filter(kind=Document.Kind.OFFERING).exclude(
            name__in=[o.name for o, _ in offerings]
        )
        for row in gone:
            journal.record("offering.retire", system=system, data={"name": row.name, "digest": row.document_id})
            changed.append(row.name)
        gone.delete()
    return changed


def load_all(
    roots: Sequence[Path], bundle: Path | None, prices: Path | None, directory: Path | None = None, *, system: str
) -> list[str]:
    """Take in changed offerings, and a bundle, prices and directory rules if given, all or nothing. Returns notes.

    The active bundle must fit the offerings that are active then: a policy about a field that is gone could not decide.
    """
    try:
        with transaction.atomic():
            notes = [f"offering {name}: taken in" for name in load_offerings(roots, system=system)]
            active = ActiveDocument.objects.filter(kind=Document.Kind.BUNDLE, name=DEFAULT).first()
            currency = ""
            if bundle is not None:
                currency = load_bundle(bundle.read_text(encoding="utf-8"), system=system).currency
                notes.append(f"policy bundle {bundle}: active")
            elif active is not None:
                text = stored_texts(Document.Kind.BUNDLE, active.document_id)[BUNDLE]
                currency = load_bundle(text, system=system).currency
            if prices is not None:
                if not currency:
                    raise ServiceError("no-bundle", "A price list needs a policy bundle: its currency is the bundle's.")
                review = load_prices(prices.read_text(encoding="utf-8"), currency, system=system)
                notes += [f"price list {prices}: active", *[f"needs review, never free: {line}" for line in review]]
            if directory is not None:
                load_directory(directory.read_text(encoding="utf-8"), system=system)
                notes.append(f"directory rules {directory}: active")
            return notes
    except (OSError, UnicodeDecodeError) as error:
        raise ServiceError("unreadable", str(error)) from None


def load_bundle(text: str, *, system: str) -> Bundle:
    """Store and activate a policy bundle, checked against the active offerings and the approver groups."""
    offerings = [offering(row.document) for row in active_documents(Document.Kind.OFFERING)]
    try:
        bundle = parse_bundle(text, offerings)
    except BundleError as error:
        raise ServiceError("bundle-wrong", str(error)) from None
    sizes = {group.name: group.user_set.filter(is_active=True).count() for group in Group.objects.all()}
    if problems := check_groups(bundle, sizes):
        raise ServiceError("bundle-wrong", "\n".join(f"{p.path}: {p.reason}" for p in problems))
    with transaction.atomic():
        _activate(Document.Kind.BUNDLE, DEFAULT, bundle.digest, {BUNDLE: text}, system)
    return bundle


def load_prices(text: str, currency: str, *, system: str) -> list[str]:
    """Store and activate a price list. Returns what needs review (those rows are kept, without a price)."""
    prices = parse_prices(text, currency)
    if prices.refused:
        raise ServiceError("prices-wrong", "\n".join(f"line {p.line}: {p.message}" for p in prices.refused))
    checksum = digest_of({PRICES: text})
    with transaction.atomic():
        if _activate(Document.Kind.PRICES, DEFAULT, checksum, {PRICES: text}, system):
            document = Document.objects.get(pk=checksum)
            if not document.prices.exists():
                Price.objects.bulk_create(
                    Price(
                        document=document,
                        sku=row.sku,
                        unit=row.unit,
                        price=row.price,
                        currency=row.currency,
                        region=row.region,
                        effective_from=row.effective_from,
                        source=row.source,
                        as_of=row.as_of,
                        problem=row.problem,
                    )
                    for row in prices.rows
                )
    return [f"{row.sku} {row.region}: {row.problem}" for row in prices.rows if row.problem]


def load_directory(text: str, *, system: str) -> Rules:
    """Store and activate what the directory's groups mean. It holds for each person when they are next looked up."""
    try:
        rules = parse_rules(text)
    except RulesError as error:
        raise ServiceError("directory-wrong", str(error)) from None
    teams = set(Team.objects.values_list("slug", flat=True))
    groups = set(Group.objects.values_list("name", flat=True))
    wrong = [f"{rule.group}: there is no team '{rule.team}'" for rule in rules.rules if rule.team not in {"", *teams}]
    wrong += [
        f"{rule.group}: there is no approver group '{rule.approvers}'"
        for rule in rules.rules
        if rule.approvers not in {"", *groups}
    ]
    if wrong:
        raise ServiceError("directory-wrong", "\n".join(wrong))
    with transaction.atomic():
        _activate(Document.Kind.DIRECTORY, DEFAULT, rules.digest, {DIRECTORY: text}, system)
    return rules


def directory_rules() -> Rules:
    """The active rules; none give nobody anything."""
    found = ActiveDocument.objects.filter(kind=Document.Kind.DIRECTORY, name=DEFAULT).first()
    return _directory_rules(found.document_id) if found else NONE


@lru_cache(maxsize=8)
def _directory_rules(digest: str) -> Rules:
    return parse_rules(stored_texts(Document.Kind.DIRECTORY, digest)[DIRECTORY])


def active_documents(kind: Document.Kind) -> list[ActiveDocument]:
    return list(ActiveDocument.objects.filter(kind=kind).select_related("document").order_by("name"))


def active_offering(name: str) -> tuple[Offering, Document]:
    """The offering of this name as it governs now. Raises NotFound."""
    rows = ActiveDocument.objects.filter(kind=Document.Kind.OFFERING, name=name).select_related("document")
    row = rows.defer("document__texts").first()  # they are long, and parsed already
    if row is None:
        raise NotFound("offering", name)
    return offering(row.document), row.document


def active_digests() -> tuple[str, str | None]:
    """Digests of the active policy bundle and of the active price list (None: there is none).

    Without a bundle nothing can be decided: ServiceError.
    """
    kinds = (Document.Kind.BUNDLE, Document.Kind.PRICES)
    active = dict(ActiveDocument.objects.filter(kind__in=kinds, name=DEFAULT).values_list("kind", "document_id"))
    if Document.Kind.BUNDLE not in active:
        raise ServiceError("no-bundle", "No policy bundle is active. Load one with `manage.py bootstrap FILE`.")
    return active[Document.Kind.BUNDLE], active.get(Document.Kind.PRICES)


def stored_texts(kind: Document.Kind, digest: str) -> dict[str, str]:
    """The files of a stored document, by name, hashed again. Raises ServiceError where they are not what was stored."""
    document = Document.objects.get(pk=digest, kind=kind)
    texts: dict[str, str] = document.texts if isinstance(document.texts, dict) else {}
    # As the parsers do: an offering's two files in their order, all else its one file by name.
    whole = [texts.get(DEFINITION), texts.get(GOVERNANCE)] if kind == Document.Kind.OFFERING else texts
    if digest_of(whole) != digest:
        raise _altered(document, "its stored text has another digest")
    return texts


@lru_cache(maxsize=256)
def price_rows(digest: str, skus: frozenset[str]) -> tuple[PriceRow, ...]:
    """The rows of the price list of this digest for these skus, in a stable order."""
    return tuple(row for row in _price_list(digest) if row.sku in skus)


@lru_cache(maxsize=8)
def _price_list(digest: str) -> tuple[PriceRow, ...]:
    """All rows of a price list, which are those that its file gives: compared once, and kept."""
    text = stored_texts(Document.Kind.PRICES, digest)[PRICES]
    document = Document.objects.get(pk=digest)
    rows = sorted((_price_row(row) for row in document.prices.all()), key=_place_of)
    currency = rows[0].currency if rows else ""
    meant = parse_prices(text, currency)  # every row of a list has one currency
    if meant.refused or sorted(meant.rows, key=_place_of) != rows:
        raise _altered(document, "its stored prices are not those of its file")
    return tuple(rows)


def _price_row(row: Price) -> PriceRow:
    return PriceRow(
        sku=row.sku,
        unit=row.unit,
        price=row.price,
        currency=row.currency,
        region=row.region,
        effective_from=row.effective_from,
        source=row.source,
        as_of=row.as_of,
        problem=row.problem,
    )


def _place_of(row: PriceRow) -> tuple[str, str, dt.date]:
    return (row.sku, row.region, row.effective_from)


def _altered(document: Document, how: str) -> ServiceError:
    return ServiceError(
        "document-altered",
        f"The stored {document.kind} '{document.name}' with digest {document.digest} was altered: {how}. Nothing is "
        "decided by it. Restore it from a backup of the database, or load another file.",
    )


def offering(document: Document) -> Offering:
    return offering_by_digest(document.digest)


@lru_cache(maxsize=256)
def offering_by_digest(digest: str) -> Offering:
    """The offering as it was when it had this digest. ServiceError: it was altered."""
    texts = stored_texts(Document.Kind.OFFERING, digest)
    document = Document.objects.get(pk=digest)
    try:
        return _parsed(document.name, texts[DEFINITION], texts[GOVERNANCE])
    except OfferingError as error:  # the digest is of the files alone, not of the folder's name
        raise _altered(document, f"it doesn't load by this name ({error})") from None


@lru_cache(maxsize=256)
def bundle_by_digest(digest: str, offering_digest: str | None) -> Bundle:
    """The bundle of this digest, its rules compiled for the offering of that digest (None: a governed value).

    ServiceError: one of them was altered.
    """
    text = stored_texts(Document.Kind.BUNDLE, digest)[BUNDLE]
    offerings = [offering_by_digest(offering_digest)] if offering_digest else []
    return parse_bundle(text, offerings, partial=True)


def _activate(kind: Document.Kind, name: str, digest: str, texts: dict[str, str], system: str) -> list[str]:
    document, _ = Document.objects.get_or_create(digest=digest, defaults={"kind": kind, "name": name, "texts": texts})
    row = ActiveDocument.objects.select_for_update().filter(kind=kind, name=name).first()
    if row is not None and row.document_id == digest:
        return []
    ActiveDocument.objects.update_or_create(kind=kind, name=name, defaults={"document": document})
    before = row.document_id if row else None
    journal.record(f"{kind}.activate", system=system, data={"name": name, "digest": digest, "before": before})
    return [name]
