"""How many records a second the machine of patterns takes on one core, without a broker.

``python bench/services/patterns.py`` makes records of 10,000 keys in order of time and gives them
to the machine in moments of 1,000, as a task of a service does; it prints the best of some runs.
Decoding is not part of it, keeping the state is: every ten moments it goes to the store.
"""

import argparse
import random
import time
from datetime import UTC, datetime, timedelta

from penstock import App, EventTime, record
from penstock.core.instants import micros
from penstock.core.operators.operator import Arrival
from penstock.core.panes.store import MemoryStore
from penstock.core.patterns.pattern import Pattern
from penstock.core.patterns.plan import PatternPlan
from penstock.machine.process.garbage import collect_rarely
from penstock.patterns import pattern

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = ("browse", "basket", "pay", "leave")


@record(key="user", time="at")
class Click:
    user: str
    at: datetime
    kind: str
    price: float


def patterns(disorder: str) -> dict[str, Pattern]:
    """Return the patterns that are measured, by name."""
    clicks = App("bench").stream("clicks", Click, event_time=EventTime(disorder=disorder))
    begin = pattern(by="user", within="2m")
    return {
        "three steps": begin.first("browse", clicks, where="kind = 'browse'")
        .then("basket", clicks, where="kind = 'basket'")
        .then("pay", clicks, where="kind = 'pay'")
        .select(user="browse.user", price="pay.price"),
        "three steps, each match alone": begin.first("browse", clicks, where="kind = 'browse'")
        .then("basket", clicks, where="kind = 'basket'")
        .then("pay", clicks, where="kind = 'pay'")
        .after_match("past-last")
        .select(user="browse.user", price="pay.price"),
        "absence": begin.first("basket", clicks, where="kind = 'basket'")
        .never("pay", clicks, where="kind = 'pay'")
        .select(user="basket.user", price="basket.price"),
        "conditions on earlier steps": begin.first("first", clicks, where="kind = 'browse'")
        .then("up", clicks, where="price > first.price", times=(1, 3), greedy=True)
        .then("pay", clicks, where="kind = 'pay' and price > avg(up.price)")
        .select(user="first.user", rises="count(up)"),
    }


def arrivals(count: int, keys: int) -> list[Arrival]:
    """Return records a millisecond apart: each key has one every ten seconds."""
    chance = random.Random(7)
    names = [f"user-{number}" for number in range(keys)]
    found = []
    for number in range(count):
        name = chance.choice(names)
        at = EPOCH + timedelta(milliseconds=number)
        click = Click(name, at, chance.choice(KINDS), chance.random() * 100)
        found.append(Arrival(0, name.encode(), click, micros(at), "0", number))
    return found


def rate(plan: PatternPlan, came: list[Arrival], *, moment: int, commit: int) -> tuple[float, int]:
    """Return records a second of processor time, flushed every so many moments, and the results."""
    made, store = plan.result("found", "stream"), MemoryStore()
    machine = plan.machine(store, made, broadcasts={})
    results = 0
    began = time.process_time()
    for number, start in enumerate(range(0, len(came), moment)):
        given = machine.take(came[start : start + moment], clock=0, limit=10_000)
        results += len(given.results)
        while machine.pending:
            results += len(machine.more(10_000).results)
        if commit and number % commit == commit - 1:
            machine.flush()
    return len(came) / (time.process_time() - began), results


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--moment", type=int, default=1_000)
    parser.add_argument("--commit", type=int, default=10, help="moments between flushes; 0: none")
    parser.add_argument("--disorder", default="0s")
    parser.add_argument("--only", help="only the pattern of this name")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    came = arrivals(options.records, options.keys)
    collect_rarely()  # as the process of a service does; it does not keep what came
    for name, declared in patterns(options.disorder).items():
        if options.only not in (None, name):
            continue
        plan = declared.plan()
        if not isinstance(plan, PatternPlan):
            raise SystemExit("\n".join(map(str, plan)))
        runs = [
            rate(plan, came, moment=options.moment, commit=options.commit)
            for _ in range(options.runs)
        ]
        speed = max(speed for speed, _ in runs)  # what others cost stays out of it
        print(f"{name:32} {speed:10,.0f} records/s and core  {runs[0][1]:,} results")


if __name__ == "__main__":
    main()
