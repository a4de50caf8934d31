"""A pattern made ready: expressions read, types settled. Plain values that can travel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from penstock.core.expression.tree import Expression, Taken
from penstock.core.instants import MICROSECOND
from penstock.core.operators.operator import Input, Machine, Plan, RowLookup, Shape
from penstock.core.patterns.steps import Contiguity
from penstock.core.records.schema import Field
from penstock.core.units import duration_text

if TYPE_CHECKING:
    from penstock.core.panes.store import Store
    from penstock.core.records.record import RecordType

__all__ = ["AnyPart", "Body", "Part", "PatternPlan", "Skipping", "Taker", "takers_of"]


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
class PatternPlan:
    """Everything an engine needs to know of one pattern."""

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

    def result(self, name: str, shape: Shape) -> RecordType[Any]:
        """Return the type of its results."""
        from penstock.core.patterns.results import result_type

        return result_type(name, self, shape)

    def machine(
        self,
        store: Store,
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> Machine:
        """Return what finds the matches; a pattern reads no broadcast tables."""
        from penstock.core.patterns.machine import PatternMachine

        return PatternMachine(self, store, record)

    def finished(self) -> Plan:
        """Return the same over a range that is finished: only final results, each once."""
        return replace(self, early=False)

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes, aspect by aspect."""
        return dict(self.words)

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds and for how long."""
        span = "until they end" if self.within is None else f"for {_text(self.within)}"
        if self.within is not None and self.gap:
            span = f"until they end; the last step is waited for {_text(self.within)}"
        found = [
            "records ahead of the watermark, until it has passed them",
            f"begun matches with their records, {span}; at most {self.most_begun} per key",
        ]
        if self.lateness:
            what = "records and results" if self.early else "records"
            found.append(f"{what} for {_text(self.lateness)} after the watermark has passed them")
        if self.skipping is not None:
            found.append("matches that an earlier begun one may discard, until it has ended")
        return tuple(found)


def takers_of(parts: tuple[AnyPart, ...]) -> Iterator[Taker]:
    """Yield the steps of a sequence in their order."""
    for part in parts:
        if isinstance(part, Taker):
            yield part
        else:
            yield from takers_of(part.parts)


def _text(micros: int) -> str:
    return duration_text(micros * MICROSECOND)
