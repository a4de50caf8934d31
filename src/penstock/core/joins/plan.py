"""A join made ready to run: plain values that can travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.derived.steps import step_words
from penstock.core.joins.foreign import ForeignMachine
from penstock.core.joins.lookup import LookupMachine, WholeMachine
from penstock.core.joins.output import Output
from penstock.core.joins.pairs import PairsMachine
from penstock.core.joins.planned import PlannedJoin
from penstock.core.joins.rekey import keyless
from penstock.core.joins.spans import span_words
from penstock.core.joins.streams import SideRule, StreamsMachine
from penstock.core.operators.operator import Machine, RowLookup, Shape
from penstock.core.panes.store import Store
from penstock.core.records.record import RecordType

__all__ = ["JoinPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPlan(PlannedJoin):
    """A join ready to run; plain values that can travel."""

    @property
    def stateful(self) -> bool:
        """Whether it remembers anything."""
        return self.kind != "broadcast"

    def result(self, name: str, shape: Shape) -> RecordType[Any]:
        """Return the type of its results."""
        return self.output.record(name, shape)

    def machine(
        self, store: Store, record: RecordType[Any], *, broadcasts: Mapping[str, RowLookup]
    ) -> Machine:
        """Return what does the work.

        Over a finished range two streams are joined in whatever order their records come: nothing
        is late, and what waits for event time is given in :meth:`Machine.finish`.
        """
        output = Output(self.output, record)
        right = self.sides[1]
        match self.kind:
            case "streams":
                rules = (self._rule(0), self._rule(1))
                early = self.early and not self.whole
                return StreamsMachine(
                    self.inputs, rules, output, store, early=early, finished=self.whole
                )
            case "broadcast":
                return WholeMachine(self, broadcasts[self.inputs[right.input].name], output)
            case "lookup":
                return LookupMachine(self, output, store, record=self.class_of(1))
            case "tables":
                return PairsMachine(
                    self, output, store, records=(self.class_of(0), self.class_of(1))
                )
        return ForeignMachine(self, output, store, records=(self.class_of(0), self.class_of(1)))

    def finished(self) -> JoinPlan:
        """Return the same over a range that is finished: only final results, each once."""
        return replace(self, whole=True)

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes; how late rows may come may change without harm."""
        left, right = self.sides
        on = [f"{one} = {other}" for one, other in zip(left.on, right.on, strict=True)]
        found = {
            "streams": ", ".join(each.topic for each in self.inputs),
            "selection": self._selections(),
            "join": f"{self.how} {self.kind}",
            "on": ", ".join(on),
            "results": step_words(self.output.steps),
        }
        if self.kind == "streams":
            before, after = span_words(self.spans.before), span_words(self.spans.after)
            found["within"] = f"{before} before, {after} after"
            found["emits"] = "early" if self.early else "final"
        return found

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds and for how long."""
        left, right = self.sides
        match self.kind:
            case "streams":
                rules = (self._rule(0), self._rule(1))
                return tuple(
                    f"the records of {side.name}, until event time is "
                    f"{span_words(max(rule.kept, rule.closes, 0))} past them"
                    for side, rule in zip(self.sides, rules, strict=True)
                )
            case "broadcast":
                return (f"all rows of {right.name}, on every instance",)
            case "lookup":
                words = f"the rows of {right.name}"
                if right.history is not None:
                    words += f", and those of the last {span_words(right.history)}"
                if self.spans.wait is None:
                    return (words,)
                wait = span_words(self.spans.wait)
                return (words, f"the records of {left.name} that wait {wait} of event time")
        held = [f"the rows of {left.name}", f"the rows of {right.name}"]
        if self.kind == "foreign":
            held[1] += " that are pointed at, each with its result and once beside those it is of"
        return tuple(held)

    def _selections(self) -> str:
        """Return what is selected of each side, in words; empty where all of both is."""
        words = [step_words(side.steps) for side in self.sides]
        return " | ".join(words) if any(words) else ""

    def _rule(self, number: int) -> SideRule:
        side, spans = self.sides[number], self.spans
        back, ahead = (spans.before, spans.after) if number == 0 else (spans.after, spans.before)
        return SideRule(
            input=side.input,
            read=side.rows(),
            record=self.class_of(number),
            keyless=keyless(side.schema, side.on),
            back=back,
            ahead=ahead,
            closes=ahead + spans.lateness,
            late=max(ahead, 0) + spans.lateness,
            kept=ahead + max(back, 0) + spans.lateness,
            alone=self.how == "outer" or (self.how == "left" and number == 0),
        )
