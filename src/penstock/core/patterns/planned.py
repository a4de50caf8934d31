"""A pattern with its expressions read: all that its machine needs to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from penstock.core.expression.tree import Expression, Taken
from penstock.core.operators.operator import Input
from penstock.core.patterns.steps import Contiguity
from penstock.core.records.schema import Field

__all__ = ["AnyPart", "Body", "Part", "PlannedPattern", "Skipping", "Taker", "takers_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What steps and groups have in common: how they are reached and repeated."""

    after: Contiguity
    least: int = 1
    most: int | None = 1
    between: Contiguity = "relaxed"
    optional: bool = False
    until: int | None = None
    """The test that ends the repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taker(Part):
    """A step: what it takes, or, if ``absent``, what must not come."""

    name: str
    number: int
    """Its place among all steps of the pattern."""
    test: int
    greedy: bool = False
    absent: bool = False
    several: bool = False
    """Whether a match may have more than one record of it."""
    may_lack: bool = False
    """Whether a result may have none of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body(Part):
    """A group: a sequence that is repeated or left out as a whole."""

    parts: tuple[Taker | Body, ...]


AnyPart: TypeAlias = Taker | Body


@dataclass(frozen=True, slots=True)
class Skipping:
    """Which other matches a match discards."""

    mode: Literal["to-next", "past-last", "to-first", "to-last"]
    step: int | None = None
    must: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPattern:
    """Plain values that can travel."""

    inputs: tuple[Input, ...]
    by: tuple[Field, ...]
    parts: tuple[AnyPart, ...]
    tests: tuple[tuple[int, Expression | None], ...]
    """Conditions that records are tested for: of which input, and what they must fit."""
    taken: tuple[Taken, ...]
    """What conditions ask of earlier steps."""
    within: int | None = None
    gap: bool = False
    """Whether ``within`` is between the last step and the record before it only."""
    lateness: int = 0
    early: bool = False
    skipping: Skipping | None = None
    timeouts: bool = False
    most_begun: int
    fields: tuple[tuple[str, Expression], ...] | None = None
    words: tuple[tuple[str, str], ...] = ()
    """What it computes, aspect by aspect, as it was written."""
    stateful: Literal[True] = True

    @property
    def takers(self) -> tuple[Taker, ...]:
        """All steps, each at its number."""
        return tuple(takers_of(self.parts))


def takers_of(parts: tuple[AnyPart, ...]) -> Iterator[Taker]:
    """Yield the steps of a sequence in their order."""
    for part in parts:
        if isinstance(part, Taker):
            yield part
        else:
            yield from takers_of(part.parts)
