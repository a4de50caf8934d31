"""What is wrong with an expression, as a value: where in the text, why, and what to write."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import DefinitionError, Place, Problem

__all__ = ["Fault", "FaultError", "definition_error"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong, from ``start`` up to ``end`` in the text (offsets in characters)."""

    code: str
    message: str
    start: int
    end: int
    hint: str = ""

    def pointer(self, text: str) -> str:
        """Return the line of the text that is meant, and under it carets at the place."""
        begin = text.rfind("\n", 0, self.start) + 1
        line = text[begin:].partition("\n")[0]
        width = max(min(self.end, begin + len(line)) - self.start, 1)
        return f"{line}\n{' ' * (self.start - begin)}{'^' * width}"

    def problem(self, text: str, place: Place | None = None) -> Problem:
        """Return the fault as a problem of the application that holds the text."""
        pointer = "".join(f"\n      {line}" for line in self.pointer(text).split("\n"))
        message = f"{self.message}, at {self.start + 1} in the expression{pointer}"
        return Problem(self.code, message, self.hint, place)


class FaultError(Exception):
    """Ends the reading of a text at its first fault; never leaves this package."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def definition_error(faults: Iterable[Fault], text: str) -> DefinitionError:
    """Return the error that shows every fault of an expression."""
    return DefinitionError(tuple(fault.problem(text) for fault in faults))
