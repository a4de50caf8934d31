"""The last step of a join of two tables by a foreign key: left rows beside their answers.

:mod:`penstock.core.joins.answers` has the steps before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.core.instants import micros
from penstock.core.joins.output import Output, deletion
from penstock.core.joins.planned import PlannedJoin
from penstock.core.joins.rekey import key_text, keyless
from penstock.core.keyed.tablerows import TableRows
from penstock.core.operators.operator import Arrival, MachineOutput, Result
from penstock.core.operators.steady import SteadyMachine
from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING

__all__ = ["ForeignMachine"]


class _Answer(NamedTuple):
    """What a left row was answered."""

    of: str
    time: int
    row: Any | None
    offset: int
    """Of the left row that asked."""


class _Held(NamedTuple):
    """A left row and what it was answered."""

    time: int = BEGINNING
    row: Any | None = None
    of: str | None = None
    """Where it points. Of a row that is gone: about what it was not answered yet."""
    offset: int = -1
    answer: _Answer | None = None
    """About the row that it points at."""
    shown: bool = False
    """Whether there is a result."""
    ahead: _Answer | None = None
    """About a row that a later version of the left row points at."""


class ForeignMachine(SteadyMachine):
    """Joins left rows with what they were answered."""

    def __init__(
        self,
        plan: PlannedJoin,
        output: Output,
        store: Store,
        *,
        records: tuple[type[Any], type[Any]],
    ) -> None:
        left = plan.sides[0]
        self._key = key_text(left.schema, left.on)
        self._none = keyless(left.schema, left.on)
        self._keeps = left.rows()
        self._outer = plan.how == "left"
        self._output = output
        self._rows = TableRows(store, _held_class(*records), tag=b"k")
        self._times = TableRows(store, bool, tag=b"t", history=left.history)
        """Where the left table keeps versions: the latest time of each row."""
        super().__init__(store, (self._rows, self._times))

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Take in a left row or an answer."""
        found = self._rows.row(arrival.key)
        held = _NOTHING if found is None else _held(found)
        if arrival.input == 0:
            if not self._times.accepts(arrival.key, arrival.time):
                given.dropped += 1
                return
            self._times.put(arrival.key, None if arrival.record is None else True, arrival.time)
            now = self._take_row(held, arrival, given)
        else:
            now = self._take_answer(held, arrival, given)
        if now.row is None and now.ahead is None and now.of is None:
            if found is not None:
                self._rows.put(arrival.key, None, now.time)
        elif now is not held:
            self._rows.put(arrival.key, now, now.time)

    def _take_row(self, held: _Held, arrival: Arrival, given: MachineOutput) -> _Held:
        row, time, offset = arrival.record, arrival.time, arrival.offset
        if row is not None and self._keeps is not None and not self._keeps(row):
            row = None
        ahead = held.ahead if held.ahead is not None and held.ahead.offset > offset else None
        if row is None:
            known = held.answer is not None and held.answer.row is not None
            at = max(time, held.answer.time) if held.answer is not None and known else time
            if held.shown:
                given.results.append(deletion(arrival.key, at))
            # The answer that is still to come would otherwise be taken for one that is ahead.
            awaited = held.of if held.answer is None and ahead is None else None
            return _Held(time=time, of=awaited, offset=offset, ahead=ahead)
        of = None
        if self._none is None or not self._none(row):
            of = self._key(row).decode()
        answer = held.answer if held.of == of else None
        if held.ahead is not None and held.ahead.of == of:
            answer = held.ahead
        now = _Held(time, row, of, offset, answer, held.shown, ahead)
        # While nothing is known of a row that it points at now, the result before stays.
        return now if of is not None and answer is None else self._show(now, arrival, given)

    def _take_answer(self, held: _Held, arrival: Arrival, given: MachineOutput) -> _Held:
        found = arrival.record
        answer = _Answer(found.of, micros(found.at), found.row, found.offset)
        if held.row is not None and held.of == answer.of:
            return self._show(held._replace(answer=answer), arrival, given)
        if held.row is None and held.of == answer.of and 0 <= answer.offset <= held.offset:
            return held._replace(of=None)
        ahead = held.ahead
        if ahead is not None and ahead.of == answer.of:
            offset = max(ahead.offset, answer.offset)
            return held._replace(ahead=answer._replace(offset=offset))
        if answer.offset > (held.offset if ahead is None else ahead.offset):
            return held._replace(ahead=answer)
        return held

    def _show(self, held: _Held, arrival: Arrival, given: MachineOutput) -> _Held:
        """Give the result of a row and its answer, or delete the one that was there."""
        answer, at, right = held.answer, held.time, None
        if answer is not None:
            right = answer.row
            if right is not None or arrival.input == 1:
                at = max(at, answer.time)
        made = None
        if right is not None or self._outer:
            made = self._output.make(held.row, right, at)
        if made is not None:
            given.results.append(Result("add", made, at))
        elif held.shown:
            given.results.append(deletion(arrival.key, at))
        return held._replace(shown=made is not None)


_NOTHING = _Held()


def _held(found: Any) -> _Held:
    """Return what is held; of the store come plain tuples."""
    if isinstance(found, _Held):
        return found
    time, row, of, offset, answer, shown, ahead = found
    return _Held(
        time,
        row,
        of,
        offset,
        None if answer is None else _Answer(*answer),
        shown,
        None if ahead is None else _Answer(*ahead),
    )


def _held_class(left: type[Any], right: type[Any]) -> Any:
    answer = tuple[str, int, right | None, int]  # type: ignore[valid-type]
    return tuple[int, left | None, str | None, int, answer | None, bool, answer | None]  # type: ignore[valid-type]
