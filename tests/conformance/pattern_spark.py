"""The pattern cases on Spark: what its host does, in its state store; cut at random."""

import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from operator_spark import (
    LATE,
    LETTERS,
    RESULTS,
    CaseQuery,
    Written,
    arrival,
    hosting_of,
    mark,
)
from pattern_form import DISORDER, Case, Outcome, PatternCase

from penstock import App
from penstock.core.instants import micros
from penstock.core.patterns.plan import PatternPlan
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.errors import DefinitionError
from penstock.pipelines.operators.routing import Routed

__all__ = ["SparkEngine"]

MOMENTS = 3
"""Into how many moments a case is cut; each is a micro-batch."""
SIDE_BY_SIDE = 40


class SparkEngine:
    """Runs many cases at a time, in one query."""

    def __init__(self) -> None:
        self._query = CaseQuery()

    def run(self, cases: list[Case]) -> list[Any]:
        """Return the outcome of each case, or what went wrong with it."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as executor:
            return list(executor.map(self._outcome, range(len(cases)), cases))

    def close(self) -> None:
        """End the query."""
        self._query.close()

    def _outcome(self, number: int, case: Case) -> Any:
        try:
            return [self._run(number, case)]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this case's failure
            return f"{type(error).__name__}: {error}"

    def _run(self, number: int, case: Case) -> Outcome:
        made, outcome = PatternCase(case), Outcome()
        _, declared = made.declare(App("cases"))
        plan = declared.plan()
        if not isinstance(plan, PatternPlan):
            outcome.errors += [problem.code for problem in plan]
            if not case.get("error"):
                raise DefinitionError(tuple(plan))
            return outcome
        came, ends = _routed(made)
        chance, hosting = random.Random(number), hosting_of(plan)
        cuts = sorted(chance.randrange(len(came) + 1) for _ in range(MOMENTS - 1))
        written: list[Written] = []
        for start, end in pairwise([0, *cuts, len(came)]):
            last = ends and end == len(came)
            written += self._query.ask(str(number), hosting, came[start:end], end=last)
        made.read(_values(written, RESULTS), outcome)
        outcome.late = [entry["offset"] for entry in _values(written, LATE)]
        letters = [dict(each.headers) for each in written if each.topic == LETTERS]
        outcome.errors = [each["penstock.code"].decode() for each in letters]
        return outcome


def _values(written: Sequence[Written], topic: str) -> list[dict[str, Any]]:
    return [json.loads(each.value or b"null") for each in written if each.topic == topic]


def _routed(made: PatternCase) -> tuple[list[Routed], bool]:
    """Return what comes, and whether the input is at its end then."""
    came: list[Routed] = []
    records: list[Any] = made.records()
    found = record_type(made.record)
    assert found is not None
    codec: JsonCodec[Any] = JsonCodec(found)
    ends = False
    for what, value in made.moments():
        if what == "event":
            record = records[value]
            time = micros(record.case_at)
            came.append(arrival(0, value, codec.key(record), codec.encode(record), time))
        elif what == "end":
            ends = True
        else:
            behind = DISORDER if made.watermarks_only else 0 * DISORDER
            came.append(mark(0, micros(value + behind)))
    return came, ends
