"""What a user has said of a pattern, before anything is read or checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from penstock.core.patterns.steps import Chain, Element, Group, Step
from penstock.errors import Place

__all__ = ["MOST_BEGUN", "DeclaredPattern", "Skip", "WithinOf", "steps_of"]

MOST_BEGUN = 1_000
"""The begun matches that a key has at most, where the declaration says nothing else."""

Skip = Literal["none", "to-next", "past-last", "to-first", "to-last"]
WithinOf = Literal["match", "gap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPattern(Chain):
    """Steps that follow one another in time, for each key, and what becomes of a match."""

    by: tuple[str, ...]
    within: str | timedelta | None = None
    within_of: WithinOf = "match"
    lateness: str | timedelta = "0s"
    most_begun: int = MOST_BEGUN
    skip: Skip = "none"
    skip_step: str | None = None
    skip_must: bool = False
    mode: Literal["final", "early"] = "final"
    timeouts: bool = False
    fields: tuple[tuple[str, str], ...] | None = None
    """None: a field for each step, with its records."""
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def reads(self) -> tuple[Any, ...]:
        """The streams that its steps read, each once."""
        found: list[Any] = []
        for each in steps_of(self.elements):
            if each.stream not in found:
                found.append(each.stream)
        return tuple(found)


def steps_of(elements: tuple[Element, ...]) -> Iterator[Step]:
    """Yield all steps of a chain, those of its groups too, in their order."""
    for element in elements:
        if isinstance(element, Group):
            yield from steps_of(element.sequence.elements)
        else:
            yield element
