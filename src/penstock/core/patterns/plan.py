"""A pattern made ready: expressions read, types settled. Plain values that can travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.instants import MICROSECOND
from penstock.core.operators.operator import Machine, Plan, RowLookup, Shape
from penstock.core.panes.store import Store
from penstock.core.patterns.machine import PatternMachine
from penstock.core.patterns.planned import PlannedPattern
from penstock.core.patterns.results import result_type
from penstock.core.records.record import RecordType
from penstock.core.units import duration_text

__all__ = ["PatternPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternPlan(PlannedPattern):
    """A pattern ready to run; plain values that can travel."""

    def result(self, name: str, shape: Shape) -> RecordType[Any]:
        """Return the type of its results."""
        return result_type(name, self, shape)

    def machine(
        self,
        store: Store,
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> Machine:
        """Return what finds the matches; a pattern reads no broadcast tables."""
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


def _text(micros: int) -> str:
    return duration_text(micros * MICROSECOND)
