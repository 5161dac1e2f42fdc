"""Names: from what people write to what Kubernetes and Backstage accept, the same each time, no two alike.

In charge of: slugs, shortening, namespaces by an environment's rule, names of claims and catalog entities, label
values, tags. Not in charge of: whether a name is taken (constraints of the database are), or keeping what people wrote
(the row's title and the claim's annotations do).

Where something of the original is lost, a hash of the original follows the marker `-` (label values: `_`, so that
slugs pass through them unchanged). A text that ends like that by itself is hashed too: nobody can write the name that
another text gets. So a made name is kept by its row and not made again from itself.

Limits: Kubernetes "Object Names and IDs" and "Labels and Selectors" (63 characters, RFC 1035 and RFC 1123 labels);
Backstage "Descriptor Format of Catalog Entities" (names, tags). Both read 2026-12-01.
"""

from __future__ import annotations

import hashlib
import json
import re
import string
import unicodedata

ANNOTATION_PREFIX = "portal.aiplatform.example.org/"
MAX_LABEL = 63
SMALLEST_LIMIT = 12  # one character, the marker and the hash

_HASH_DIGITS = 10  # 40 bits: two of 100,000 lossy names are alike with a chance of 1 in 200
_LABEL_OF_ANY_LENGTH = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_LOOKS_HASHED = re.compile(r"-[0-9a-f]{10}\Z")
_LOOKS_HASHED_VALUE = re.compile(r"_[0-9a-f]{10}\Z")
_TAG_SEPARATORS = re.compile(r"[^a-z0-9+#]+")
_RESERVED_NAMESPACES = frozenset({"default", "crossplane-system"})
_RESERVED_PREFIXES = ("kube-", "openshift-")  # kube-: "Namespaces" in Kubernetes' documentation, "Initial namespaces"


class NamingError(ValueError):
    """A name that can't be used. `code` is stable kebab-case; the message names value, limit and way out."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def is_label(text: str) -> bool:
    """Whether it is a name for everything here: 1 to 63 of a-z, 0-9 and `-`, from a letter to no `-` (RFC 1035)."""
    return len(text) <= MAX_LABEL and _LABEL_OF_ANY_LENGTH.match(text) is not None


def slug(title: str, limit: int = MAX_LABEL) -> str:
    """A label (see `is_label`) of at most `limit` characters for any title.

    A title that is such a label already is its own slug. All others get a hash of the title: no two titles share
    a slug. Raises NamingError `name-empty` for an empty title.
    """
    _check_limit(limit)
    if not title:
        raise NamingError("name-empty", "The name is empty. Give at least one character.")
    if len(title) <= limit and is_label(title) and not _LOOKS_HASHED.search(title):
        return title
    return _with_hash(_readable(title), limit, title)


def shorten(name: str, limit: int) -> str:
    """`name` if it fits, otherwise its start and a hash of all of it: exactly `limit` characters, still a label if it
    was one. A name of exactly `limit` characters that looks shortened is hashed as well (see the module)."""
    _check_limit(limit)
    if len(name) < limit or (len(name) == limit and not _LOOKS_HASHED.search(name)):
        return name
    return f"{name[: limit - _HASH_DIGITS - 1]}-{_hash(name)}"


def check_namespace_rule(pattern: str) -> None:
    """Refuse (NamingError `namespace-rule`) a rule that isn't label characters around `{team}` and, optionally,
    `{environment}`, each at most once. `{team}` is needed: two teams never share a namespace."""
    fields = _placeholders(pattern, "namespace-rule")
    unknown = sorted(set(fields) - {"team", "environment"})
    if unknown:
        raise NamingError(
            "namespace-rule", f"The namespace rule {pattern!r} uses {unknown}; only {{team}} and {{environment}} exist."
        )
    if fields.count("team") != 1 or fields.count("environment") > 1:
        raise NamingError(
            "namespace-rule",
            f"The namespace rule {pattern!r} must hold {{team}} once and may hold {{environment}} once.",
        )
    if pattern.startswith(_RESERVED_PREFIXES):
        raise NamingError(
            "namespace-rule", f"Every namespace of the rule {pattern!r} belongs to the cluster itself. Begin otherwise."
        )
    if not is_label(pattern.format(team="a", environment="a")):
        raise NamingError(
            "namespace-rule",
            f"The namespace rule {pattern!r} doesn't give a namespace: around the placeholders only a-z, 0-9 and '-', "
            "first a letter, last no '-'.",
        )


def namespace(pattern: str, team: str, environment: str) -> str:
    """The namespace of a team in an environment, by the environment's rule; both are slugs.

    Different pairs never share one under the same rule: `a` in `b-c` and `a-b` in `c` would with
    `{team}-{environment}`, so only the pair with the shortest environment is plain and all others carry a hash. Raises
    NamingError `namespace-rule`, `name-invalid` or `namespace-reserved`.
    """
    check_namespace_rule(pattern)
    for what, value in (("team", team), ("environment", environment)):
        _require_label(value, f"The {what} {value!r}", MAX_LABEL)
    plain = pattern.format(team=team, environment=environment)
    fits = is_label(plain) and not _LOOKS_HASHED.search(plain)
    unique = fits and not _reads_otherwise(pattern, plain, environment)
    result = plain if unique else _with_hash(plain, MAX_LABEL, pattern, team, environment)
    if result in _RESERVED_NAMESPACES or result.startswith(_RESERVED_PREFIXES):
        raise NamingError(
            "namespace-reserved",
            f"The namespace {result!r} (rule {pattern!r}, team {team!r}, environment {environment!r}) belongs to the "
            "cluster itself. Put a prefix into the environment's rule, such as 'ai-{team}-{environment}'.",
        )
    return result


def claim_name_limit(namespace_name: str, max_length: int, derived: tuple[str, ...] = ()) -> int:
    """How many characters a claim's name may have in this namespace: the offering's `naming.maxLength`, and each of
    `naming.derived` (patterns of `{name}` and `{namespace}`) must fit in 63 characters too.

    Raises NamingError `derived-name` for a pattern with other placeholders, `name-no-room` if nothing would fit.
    """
    limit = min(max_length, MAX_LABEL)
    for pattern in derived:
        fields = _placeholders(pattern, "derived-name")
        if set(fields) - {"name", "namespace"} or "name" not in fields:
            raise NamingError(
                "derived-name", f"The derived name {pattern!r} must hold {{name}} and may hold {{namespace}} only."
            )
        others = len(pattern.format(name="", namespace=namespace_name))
        limit = min(limit, (MAX_LABEL - others) // fields.count("name"))
    if limit < 1:
        raise NamingError(
            "name-no-room",
            f"In namespace {namespace_name!r} no name is short enough: {', '.join(derived)} must fit in {MAX_LABEL} "
            "characters. Shorten the team's slug or the environment's namespace rule.",
        )
    return limit


def claim_name(name: str, namespace_name: str, max_length: int, derived: tuple[str, ...] = ()) -> str:
    """The claim's name for an instance's name: the same, once it is known to fit (see `claim_name_limit`).

    Raises NamingError `name-invalid` or `name-too-long`, both with a name that would pass.
    """
    limit = claim_name_limit(namespace_name, max_length, derived)
    _require_label(name, f"The name {name!r}", limit)
    if len(name) > limit:
        raise NamingError(
            "name-too-long",
            f"The name {name!r} has {len(name)} characters; here {limit} are allowed"
            + (f", as {', '.join(derived)} must fit in {MAX_LABEL}" if limit < max_length else "")
            + f".{_suggestion(name, limit)}",
        )
    return name


def entity_name(team: str, environment: str, name: str, offering: str, *, apart: str = "") -> str:
    """The catalog entity's name: `name.team.environment.offering`, in 63 characters, else cut and hashed.

    Backstage compares names without regard to case, and kinds of different offerings may be the same there: so
    `offering` is the offering's name (its plural, unique and lower-case). Pass what the instance was created with: an
    entity's name stays for life. `apart` is something of its own (its id) where another one, renamed since, still has
    the name. Takes any text and never fails: one odd row must not break the feed.
    """
    return _dotted((name, team, environment, offering), apart)


def system_name(team: str, environment: str, *, apart: str = "") -> str:
    """The name of the System of a team in an environment: `team.environment`. All else as for `entity_name`."""
    return _dotted((team, environment), apart)


def _dotted(parts: tuple[str, ...], apart: str) -> str:
    plain = ".".join(parts)
    if not apart and len(plain) <= MAX_LABEL and all(map(is_label, parts)) and not _LOOKS_HASHED.search(parts[-1]):
        return plain
    return _with_hash(".".join(_readable(part) for part in parts), MAX_LABEL, *parts, *([apart] if apart else []))


def label_value(text: str) -> str:
    """A valid Kubernetes label value: the text itself where it is one, else its readable rest and a hash."""
    if not text or (_LABEL_VALUE.match(text) and not _LOOKS_HASHED_VALUE.search(text)):
        return text
    kept = re.sub(r"[^-A-Za-z0-9_.]+", "-", _ascii(text)).strip("-_.")
    return f"{kept[: MAX_LABEL - _HASH_DIGITS - 1] or 'x'}_{_hash(text)}"


def tag(text: str) -> str | None:
    """A valid Backstage tag (lower-case words of a-z, 0-9, + and #, joined by '-', up to 63), or None if nothing is
    left. Tags are for filters: unlike names, two texts may give the same one."""
    words = _TAG_SEPARATORS.sub("-", _ascii(text).lower()).strip("-")
    return words[:MAX_LABEL].rstrip("-") or None


def _reads_otherwise(pattern: str, plain: str, environment: str) -> bool:
    """Whether a pair with a shorter environment gives the same namespace."""
    if "{environment}" not in pattern:
        return False
    form = re.escape(pattern).replace(re.escape("{team}"), "(?P<team>.+)")
    for size in range(1, len(environment)):
        other = re.fullmatch(form.replace(re.escape("{environment}"), f"(?P<environment>.{{{size}}})"), plain)
        if other and is_label(other["team"]) and is_label(other["environment"]):
            return True
    return False


def _placeholders(pattern: str, code: str) -> list[str]:
    try:
        parsed = [(field, spec, conversion) for _, field, spec, conversion in string.Formatter().parse(pattern)]
    except ValueError as error:
        raise NamingError(code, f"The pattern {pattern!r} can't be read: {error}.") from error
    if any(spec or conversion for _, spec, conversion in parsed):
        raise NamingError(code, f"The pattern {pattern!r} may hold plain placeholders only, such as {{name}}.")
    return [field for field, _, _ in parsed if field is not None]


def _require_label(value: str, what: str, limit: int) -> None:
    if not _LABEL_OF_ANY_LENGTH.match(value):
        raise NamingError(
            "name-invalid",
            f"{what} must be a-z, 0-9 and '-', first a letter, last no '-', up to {limit} characters."
            + _suggestion(value, limit),
        )


def _suggestion(value: str, limit: int) -> str:
    return f" For example {slug(value, limit)!r}." if value and limit >= SMALLEST_LIMIT else ""


def _check_limit(limit: int) -> None:
    if not SMALLEST_LIMIT <= limit <= MAX_LABEL:
        raise ValueError(f"limit is {limit}; it must be {SMALLEST_LIMIT} to {MAX_LABEL}")


def _with_hash(readable: str, limit: int, *original: str) -> str:
    return f"{readable[: limit - _HASH_DIGITS - 1].rstrip('-.')}-{_hash(*original)}"


def _readable(text: str) -> str:
    """What of a text can stand in a label: never empty, first a letter, last no '-'; its length is not bounded."""
    words = re.sub(r"[^a-z0-9]+", "-", _ascii(text).lower()).strip("-")
    return words if words and words[0].isalpha() else f"x{words}"


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def _hash(*original: str) -> str:
    """The first digits of sha256 over a JSON list: escapes keep different parts apart, whatever is in them."""
    return hashlib.sha256(json.dumps(original).encode()).hexdigest()[:_HASH_DIGITS]
