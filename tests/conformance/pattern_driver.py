"""The pattern cases in the test driver: services in memory, killed and restarted at random."""

import json
import random
from datetime import UTC, datetime
from typing import Any

from pattern_form import Case, Outcome, PatternCase

from penstock import App
from penstock.errors import DefinitionError
from penstock.testing import Driver

__all__ = ["END_AT", "DriverEngine"]

END_AT = datetime(9000, 1, 1, tzinfo=UTC)
"""When everything that waits for event time has ended."""


class DriverEngine:
    """Runs one case after the other."""

    def run(self, cases: list[Case]) -> list[list[Outcome]]:
        """Return the outcomes of each case."""
        return [[outcome_of(case)] for case in cases]

    def close(self) -> None:
        """There is nothing to close."""


def outcome_of(case: Case) -> Outcome:
    """Run a case; services are killed where its name has chance say so."""
    made, outcome, app = PatternCase(case), Outcome(), App("cases")
    events, declared = made.declare(app)
    found = app.stream("found", declared, on="services", partitions=1)
    try:
        driver = Driver(app, partitions=1)
    except DefinitionError as error:
        if case.get("error"):
            outcome.errors += [problem.code for problem in error.problems]
            return outcome
        raise
    chance, records = random.Random(case["id"]), made.records()
    came: list[Any] = []
    for what, value in made.moments():
        if what == "event":
            came.append(records[value])
            if chance.random() < 0.4:
                continue
        driver.pipe(events, *came)
        came = []
        if what != "event":
            driver.advance_event_time(END_AT if what == "end" else made.told(value))
        if chance.random() < 0.3:
            driver.crash()
            driver.restart()
    driver.pipe(events, *came)
    made.read([json.loads(raw.value() or b"") for raw in driver.read_raw(found)], outcome)
    outcome.late = [late.offset for late in driver.late_records()]
    outcome.errors = [letter.code for letter in driver.dead_letters()]
    return outcome
