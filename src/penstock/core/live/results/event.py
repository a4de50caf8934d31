"""One change of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Event", "Match", "Operation"]

Match = Literal["add", "change", "changeIndex", "remove"]
"""What became of an object in the result."""
Operation = Literal["insert", "update", "delete", "none"]
"""What was done to the object; none: another object was written."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a result."""

    match: Match
    operation: Operation
    document: Any
    """As it is after the write; of an object that left, as it was last known."""
    index: int | None = None
    """Where it stands in the result after the write; None: it left, or there is no order."""
    initial: bool = False
    """Whether it belongs to the first result."""
