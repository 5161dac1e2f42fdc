"""In charge of: the kinds of values that environment variables may have, reading them all at once, and their table.

Not in charge of: which variables exist (portal/settings.py declares them and alone hands in the process's environment).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class ConfigurationError(ValueError):
    """One or more environment variables hold a value that is not allowed; the message names them all."""


@dataclass(frozen=True)
class Kind:
    """What a value may be. `parse` raises ValueError for anything else; `allowed` ends the sentence "allowed: …"."""

    label: str
    allowed: str
    parse: Callable[[str], Any]


@dataclass(frozen=True)
class Variable:
    """One environment variable. `default` is written as it would be in the environment; None: there is none."""

    name: str
    kind: Kind
    default: str | None
    meaning: str
    secret: bool = False


def read(variables: Sequence[Variable], environment: Mapping[str, str]) -> dict[str, Any]:
    """The parsed value of each variable, None for one that is not set and has no default. Empty counts as not set.

    Raises ConfigurationError with one line per wrong value.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for variable in variables:
        text = environment.get(variable.name) or variable.default
        try:
            values[variable.name] = None if text is None else variable.kind.parse(text)
        except ValueError:
            wrong.append(f"  {variable.name}={_shown(variable, text or '')}; allowed: {variable.kind.allowed}")
    if wrong:
        count = "1 environment variable is" if len(wrong) == 1 else f"{len(wrong)} environment variables are"
        raise ConfigurationError("\n".join([f"{count} wrong:", *wrong, "README.md, Settings, describes each."]))
    return values


def table(variables: Sequence[Variable]) -> str:
    """The variables as a Markdown table, for README.md."""
    rows = [
        f"| `{v.name}` | {v.kind.label} | {'' if v.default is None else f'`{v.default}`'} | {v.meaning} |"
        for v in variables
    ]
    return "\n".join(["| variable | type | default | meaning |", "|---|---|---|---|", *rows])


def _shown(variable: Variable, text: str) -> str:
    """The value as it may be shown: no secrets, no passwords of addresses, not endlessly long."""
    if variable.secret:
        return f"(not shown, {len(text)} characters)"
    hidden = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", text)
    return json.dumps(hidden if len(hidden) <= 80 else hidden[:80] + "…", ensure_ascii=False)


def text(minimum: int = 1) -> Kind:
    """Any text of at least `minimum` characters."""

    def parse(value: str) -> str:
        if len(value) < minimum:
            raise ValueError
        return value

    return Kind("text", f"at least {minimum} characters", parse)


def switch() -> Kind:
    """true or false, nothing else: `DEBUG=off` must not mean yes."""
    words = {"true": True, "1": True, "false": False, "0": False}

    def parse(value: str) -> bool:
        if value.lower() not in words:
            raise ValueError
        return words[value.lower()]

    return Kind("true or false", "true, false, 1 or 0", parse)


def choice(*allowed: str) -> Kind:
    """One of a few words."""

    def parse(value: str) -> str:
        if value not in allowed:
            raise ValueError
        return value

    return Kind(" or ".join(allowed), ", ".join(allowed), parse)


def whole(minimum: int, maximum: int, unit: str = "") -> Kind:
    """A whole number between two limits, both included."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", value) or not minimum <= int(value) <= maximum:
            raise ValueError
        return int(value)

    return Kind(unit or "whole number", f"a whole number from {minimum} to {maximum}", parse)


def seconds(minimum: float, maximum: float) -> Kind:
    """A time in seconds, with a fraction if need be."""

    def parse(value: str) -> float:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", value) or not minimum <= float(value) <= maximum:
            raise ValueError
        return float(value)

    return Kind("seconds", f"seconds from {minimum:g} to {maximum:g}, as 5 or 0.5", parse)


def words() -> Kind:
    """A list, separated by commas."""

    def parse(value: str) -> list[str]:
        items = [item.strip() for item in value.split(",")]
        if not all(items) or any(re.search(r"\s", item) for item in items):
            raise ValueError
        return items

    return Kind("list", "words separated by commas", parse)


def folder(base: Path) -> Kind:
    """A path; a relative one starts at `base`."""
    return Kind("path", "a path", lambda value: (base / value).resolve())


def folders(base: Path) -> Kind:
    """Paths of existing folders separated by colons; relative ones start at `base`."""

    def parse(value: str) -> list[Path]:
        found = [(base / item).resolve() for item in value.split(":")]
        if not all(value.split(":")) or not all(item.is_dir() for item in found):
            raise ValueError
        return found

    return Kind("paths", "existing folders separated by colons", parse)


def address(schemes: Sequence[str], example: str, also: Sequence[str] = ()) -> Kind:
    """A URL with one of the schemes, or one of the words in `also`."""

    def parse(value: str) -> str:
        if value in also:
            return value
        parts = urlsplit(value)  # raises ValueError for a broken IPv6 host
        if parts.scheme not in schemes or not (parts.netloc or parts.path.strip("/")) or re.search(r"\s", value):
            raise ValueError
        _ = parts.port  # raises ValueError when it is no port number
        return value

    also_text = "".join(f", or {word}" for word in also)
    return Kind("address", f"{' or '.join(f'{s}://' for s in schemes)} as in {example}{also_text}", parse)


def mapping(example: str) -> Kind:
    """name=value pairs separated by commas; a name once."""

    def parse(value: str) -> dict[str, str]:
        pairs = [item.strip().partition("=") for item in value.split(",")]
        found = {
            name: given for name, _, given in pairs if re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name) and given
        }
        if len(found) != len(pairs):
            raise ValueError
        return found

    return Kind("name=address list", f"each name once, as in {example}", parse)


def clusters(base: Path) -> Kind:
    """name=kubeconfig pairs separated by commas; a relative path starts at `base`. `embedded` is a name of its own."""
    plain = mapping("")

    def parse(value: str) -> dict[str, str]:
        found = plain.parse(value)
        if "embedded" in found:
            raise ValueError
        made = {}
        for name, given in found.items():
            path, mark, context = given.partition("#")
            made[name] = given if given == "in-cluster" else f"{(base / path).resolve()}{mark}{context}"
        return made

    return Kind(
        "name=kubeconfig list",
        "each name once and none of them embedded, as in prod=/etc/portal/prod.yaml,lab=lab.yaml#portal,own=in-cluster",
        parse,
    )


def faults() -> Kind:
    """`fail:name`, `hang:name` and `keep:name` separated by commas: whose composed objects go wrong, and how."""

    def parse(value: str) -> dict[str, str]:
        pairs = [item.strip().partition(":") for item in value.split(",")]
        found = {name: verb for verb, _, name in pairs if verb in ("fail", "hang", "keep") and name}
        if len(found) != len(pairs):
            raise ValueError
        return found

    return Kind(
        "fault list",
        "fail:NAME, hang:NAME or keep:NAME separated by commas, each name once, as in fail:chat,hang:docs",
        parse,
    )


def host(url: str) -> str:
    """The host name of a URL as Django's ALLOWED_HOSTS wants it: IPv6 addresses in brackets."""
    name = urlsplit(url).hostname or ""
    return f"[{name}]" if ":" in name else name
