"""How a verb refuses. The doors turn these into answers; nothing was written when one is raised.

ServiceError
 |- InvalidInput   the input is wrong: every problem with its JSON pointer
 |- NotFound       it is not there, or not for this person to see (the two look alike on purpose)
 |- Forbidden      it is seen, but this person may not do it
 |- Conflict       it was right, but not now: the state has moved on
 |- Unavailable    a complete answer can't be given now
"""

from __future__ import annotations

from collections.abc import Sequence

from portal.domain.schema import Problem


class ServiceError(Exception):
    """`code` is stable kebab-case; `message` tells people what would have passed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class InvalidInput(ServiceError):
    """`problems` names each field by JSON pointer into the body."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__("invalid-input", f"{first.pointer or 'the body'}: {first.message}{more}")
        self.problems = list(problems)


class NotFound(ServiceError):
    def __init__(self, what: str, name: object) -> None:
        super().__init__("not-found", f"There is no {what} '{name}' that you can see.")


class Forbidden(ServiceError):
    pass


class Conflict(ServiceError):
    pass


class Unavailable(ServiceError):
    pass
