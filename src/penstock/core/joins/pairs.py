"""The machine of two tables with the same key: a row of results for each key that both have.

Rows count as they arrive. A side whose table keeps versions ignores a row that is older than the
latest of its key.
"""

from __future__ import annotations

from typing import Any

from penstock.core.joins.output import Output, deletion
from penstock.core.joins.planned import PlannedJoin
from penstock.core.keyed.tablerows import TableRows, Version
from penstock.core.operators.operator import Arrival, MachineOutput, Result
from penstock.core.operators.steady import SteadyMachine
from penstock.core.panes.store import Store

__all__ = ["PairsMachine"]


class PairsMachine(SteadyMachine):
    """Joins two tables by their key."""

    def __init__(
        self,
        plan: PlannedJoin,
        output: Output,
        store: Store,
        *,
        records: tuple[type[Any], type[Any]],
    ) -> None:
        self._feeds = [
            tuple(side for side in (0, 1) if plan.sides[side].input == number)
            for number in range(len(plan.inputs))
        ]
        self._keeps = [side.rows() for side in plan.sides]
        self._how = plan.how
        self._output = output
        self._rows = [
            TableRows(store, record, tag=tag, history=side.history)
            for record, tag, side in zip(records, (b"k", b"r"), plan.sides, strict=True)
        ]
        super().__init__(store, self._rows)

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Give the row of results that a change makes, or its deletion."""
        key, time = arrival.key, arrival.time
        before = (self._rows[0].latest(key), self._rows[1].latest(key))
        changed = False
        for side in self._feeds[arrival.input]:
            row, keeps = arrival.record, self._keeps[side]
            if row is not None and keeps is not None and not keeps(row):
                row = None
            if self._rows[side].accepts(key, time):
                self._rows[side].put(key, row, time)
                changed = True
        if not changed:
            given.dropped += 1
            return
        left, right = self._rows[0].latest(key), self._rows[1].latest(key)
        at = max([time, *(each[0] for each in (left, right) if each is not None and _there(each))])
        made = None
        if self._makes(left, right):
            made = self._output.make(_row(left), _row(right), at)
        if made is not None:
            given.results.append(Result("add", made, at))
        elif self._makes(*before):
            given.results.append(deletion(key, at))

    def _makes(self, left: Version | None, right: Version | None) -> bool:
        """Return whether two rows have a result."""
        if self._how == "inner":
            return _there(left) and _there(right)
        return _there(left) or (self._how == "outer" and _there(right))


def _there(version: Version | None) -> bool:
    return version is not None and version[1] is not None


def _row(version: Version | None) -> Any:
    return None if version is None else version[1]
