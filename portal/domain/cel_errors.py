"""The one exception of the CEL modules.

In charge of: saying what is wrong with an expression or its data, and where. Not in charge of: anything else.
"""

from __future__ import annotations


class CelError(Exception):
    """An expression that can't be compiled, or an evaluation that has no result of the demanded type.

    `line` and `column` count from 1 and are None when the error has no place in the text (evaluation, limits).
    """

    def __init__(
        self, message: str, expression: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.expression = expression
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = "" if self.line is None else f"{self.line}:{self.column}: "
        shown = "" if self.expression is None else f" in `{_short(self.expression)}`"
        return f"{place}{self.message}{shown}"


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
