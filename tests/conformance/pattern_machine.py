"""The pattern cases on the machine itself: cut at random, restarted from its store at random."""

import json
import random
from typing import Any

import msgspec
from pattern_form import NUMBER, Case, Outcome, PatternCase

from penstock import App
from penstock.core.instants import micros
from penstock.core.operators.operator import Arrival, MachineOutput
from penstock.core.panes.store import MemoryStore
from penstock.core.patterns.machine import PatternMachine
from penstock.core.patterns.plan import PatternPlan
from penstock.core.records.record import record_type
from penstock.errors import DefinitionError

__all__ = ["MachineEngine"]

RUNS = 4
"""How often a case is cut at random."""


class MachineEngine:
    """Runs one case after the other, each several times, cut in another way each time."""

    def run(self, cases: list[Case]) -> list[list[Outcome]]:
        """Return the outcomes of each case."""
        return [[outcome_of(case, seed) for seed in range(RUNS)] for case in cases]

    def close(self) -> None:
        """There is nothing to close."""


def outcome_of(case: Case, seed: int) -> Outcome:
    """Run a case; the seed decides where it is cut, and where the machine begins anew."""
    made = PatternCase(case)
    outcome = Outcome()
    _, declared = made.declare(App("cases"))
    plan = declared.plan()
    if not isinstance(plan, PatternPlan):
        outcome.errors += [problem.code for problem in plan]
        if not case.get("error"):
            raise DefinitionError(tuple(plan))
        return outcome
    run = _Run(made, plan, random.Random(seed))
    for what, value in made.moments():
        run.go_on(what, value)
    run.settle()
    made.read(run.results, outcome)
    outcome.late, outcome.errors = run.late, run.errors
    return outcome


class _Run:
    def __init__(self, made: PatternCase, plan: PatternPlan, chance: random.Random) -> None:
        self.results: list[dict[str, Any]] = []
        self.late: list[int] = []
        self.errors: list[str] = []
        self._made = made
        self._plan = plan
        self._chance = chance
        self._records = made.records()
        self._store = MemoryStore()
        self._came: list[Arrival] = []
        self._machine = self._new()

    def go_on(self, what: str, value: Any) -> None:
        if what == "event":
            record = self._records[value]
            time = micros(record.case_at)
            self._came.append(Arrival(0, record.case_key.encode(), record, time, "0", value))
            if self._chance.random() < 0.4:
                self.settle()
            return
        self.settle()
        if what == "end":
            self._take(self._machine.finish())
        else:
            self._take(
                self._machine.advance(clock=0, event_time=micros(self._made.told(value)), limit=1)
            )

    def settle(self) -> None:
        """Take what came as one moment, and perhaps go on from the store."""
        came, self._came = self._came, []
        if came:
            self._take(self._machine.take(came, clock=0, limit=1))
        if self._chance.random() < 0.5:
            self._machine.flush()
            if self._chance.random() < 0.5:
                self._machine = self._new()
            else:
                self._machine.trim(0)

    def _new(self) -> PatternMachine:
        found = self._plan.result("found", "stream")
        machine = self._plan.machine(self._store, found, broadcasts={})
        assert isinstance(machine, PatternMachine)
        assert record_type(found.cls) is not None
        return machine

    def _take(self, given: MachineOutput) -> None:
        while True:
            self.results += [json.loads(msgspec.json.encode(each.record)) for each in given.results]
            self.late += [getattr(each.arrival.record, NUMBER) for each in given.late]
            self.errors += [each.error.code for each in given.refused]
            if not self._machine.pending:
                return
            given = self._machine.more(1)
