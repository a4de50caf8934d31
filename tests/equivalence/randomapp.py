"""An application made by chance from a seed, and records for it: what crash and engine tests run.

The same seed gives the same application and the same records in every process. What a service tells
must not depend on what no engine promises: how records of different streams mix, and, where the
clock is not the test's, when something is done. So a service of two streams only adds up what is
in a span of event time, and one that goes by the clock never tries again.
"""

import asyncio
import json
import random
import runpy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from penstock import (
    App,
    Context,
    EventTime,
    Output,
    State,
    Timer,
    Timers,
    delete,
    on_error,
    record,
    retry,
    send,
    ttl,
)
from penstock.state import ListState, MapState
from penstock.tables import Change

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_OF_SIGNS = datetime(1970, 1, 1, tzinfo=UTC)
KEYS = "abcdefgh"
OFTEN = ("pair", "chain", "spread", "heard")
SPAN = 20_000
"""Milliseconds of event time that a service of two streams adds up."""
DISORDER = 5_000


@record(key="key", time="at")
class Sign:
    key: str
    at: int
    number: int


@record(key="key")
class Told:
    key: str
    text: str


@record(key="key")
class Row:
    key: str
    value: int


KINDS: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parent / "kinds.py"), init_globals={"Sign": Sign, "Told": Told}
)["KINDS"]


@dataclass
class Probe:
    """Stands in the user's code: what fails for a while, and where a test may kill it."""

    away_until: datetime = EPOCH
    """Before this, by the clock, some calls fail."""
    hit: Callable[[str], None] = field(default=lambda _: None)


@dataclass(frozen=True)
class Plan:
    """What is drawn from a seed."""

    seed: int
    partitions: int
    clocked: bool
    """Whether services go by the clock; otherwise some of them try again what has failed."""
    waits: tuple[str, str] = ("1s", "8s")
    """The first and the longest wait of a retry."""
    tries: int = 12
    parts: frozenset[str] = frozenset()
    sync: frozenset[str] = frozenset()
    """The parts that are not async."""

    @classmethod
    def draw(cls, seed: int, **given: Any) -> "Plan":
        chance = random.Random(f"plan {seed}")
        parts = {"fold"} | {each for each in OFTEN if chance.random() < 0.5}
        parts |= {each for each in sorted(KINDS) if chance.random() < 0.35}
        drawn: dict[str, Any] = {
            "partitions": chance.randint(1, 3),
            "clocked": chance.random() < 0.5,
            "parts": frozenset(parts),
            "sync": frozenset(each for each in ("fold", "pair") if chance.random() < 0.5),
        }
        return cls(seed, **(drawn | given))

    def signs(self, *, number: int = 40) -> list[tuple[str, Sign]]:
        """Return records and the streams they belong to; each stream keeps to its disorder."""
        chance = random.Random(f"signs {self.seed}")
        times = {"left": 0, "right": 0}
        found = []
        for _ in range(number):
            stream = chance.choice(["left", "left", "right"])
            times[stream] += chance.choice([0, 500, 3_000, 3_000, 15_000, 60_000])
            at = max(0, times[stream] - chance.choice([0, 0, DISORDER]))
            found.append((stream, Sign(chance.choice(KEYS), at, chance.randrange(30))))
        return found


class Fold:
    """Everything that a service can remember, by the order of one stream's records."""

    made: "RandomApp"

    def process(
        self,
        sign: Sign,
        context: Context,
        *,
        seen: State[int],
        recent: ListState[int],
        by_number: MapState[int, int],
        fresh: Annotated[State[int], ttl("1000d")],
        brief: Annotated[State[int], ttl("45s")],
        timers: Timers,
    ) -> Iterable[Told | Output[Told] | Output[Row]]:
        made, number = self.made, sign.number
        made.probe.hit("call")
        seen.set(seen.get(0) + 1)
        recent.append(number)
        fresh.set(fresh.get(0) + 1)
        by_number.set(number % 5, by_number.get(number % 5, 0) + number)
        if made.plan.clocked:
            brief.set(brief.get(0) + 1)
        self._set(sign, timers)
        if number % 6 == 3:
            by_number.delete(1)
        if number % 10 == 7 and context.now_at < made.probe.away_until:
            raise OSError("away for a moment")
        if number == 13:
            raise ValueError("unlucky")
        text = f"{seen.get()} {recent.get()[-4:]} {by_number.items()} {fresh.get()} {brief.get()}"
        yield send(made.told, Told(sign.key, text), headers={"n": b"%d" % number})
        if number % 3 == 0:
            yield send(made.rows, Row(sign.key, seen.get(0)))
        elif number % 7 == 0:
            yield delete(made.rows, sign.key)

    def on_timer(
        self, timer: Timer, seen: State[int], recent: ListState[int], timers: Timers
    ) -> Told:
        probe = self.made.probe
        probe.hit("call")
        if timer.name == "silent" and timer.payload[0] % 2:
            timers.set("again", at=timer.due_at + timedelta(seconds=4))
            recent.clear()
        away = timer.name == "again" or seen.get(0) % 3 == 1
        if away and timer.now_at < probe.away_until:
            raise OSError("away for a moment")
        if timer.name == "past" and seen.get(0) % 5 == 4:
            raise ValueError("unlucky")
        now = timer.event_time_at if timer.time == "event" else timer.now_at
        text = f"{timer.name} due {timer.due_at} at {now}: {seen.get()} {recent.get()}"
        return Told(timer.key, text)

    def _set(self, sign: Sign, timers: Timers) -> None:
        timers.set("silent", after="10s", payload=[sign.number])
        if self.made.plan.clocked and sign.number % 4 == 1:
            timers.set("remind", after="7s", time="processing")
        if sign.number % 6 == 2:
            timers.set("past", at=EPOCH_OF_SIGNS + timedelta(milliseconds=sign.at - 30_000))
        if sign.number % 6 == 3:
            timers.cancel("silent")


class SlowFold(Fold):
    """The same, awaited."""

    async def process(
        self,
        sign: Sign,
        context: Context,
        *,
        seen: State[int],
        recent: ListState[int],
        by_number: MapState[int, int],
        fresh: Annotated[State[int], ttl("1000d")],
        brief: Annotated[State[int], ttl("45s")],
        timers: Timers,
    ) -> list[Told | Output[Told] | Output[Row]]:
        for _ in range(sign.number % 3):
            await asyncio.sleep(0)
        states = {"seen": seen, "recent": recent, "by_number": by_number, "fresh": fresh}
        return list(super().process(sign, context, **states, brief=brief, timers=timers))

    async def on_timer(
        self, timer: Timer, seen: State[int], recent: ListState[int], timers: Timers
    ) -> Told:
        await asyncio.sleep(0)
        return super().on_timer(timer, seen, recent, timers)


class RandomApp:
    """The application of a plan."""

    def __init__(self, plan: Plan, name: str = "demo", probe: Probe | None = None) -> None:
        self.plan = plan
        self.probe = probe or Probe()
        self.app = App(name)
        idle = "1m" if plan.clocked else None
        event_time = EventTime(disorder=f"{DISORDER}ms", idle_after=idle)
        self.inputs = {
            each: self.app.stream(
                f"{name}.{each}", Sign, partitions=plan.partitions, event_time=event_time
            )
            for each in ("left", "right")
        }
        self.told = self.app.stream(f"{name}.told", Told, partitions=plan.partitions)
        self.outputs: list[Any] = [self.told]
        self.unordered: set[str] = set()
        """What comes in no certain order."""
        self.latest: set[str] = set()
        """Tables of which only the latest rows are certain."""
        self._fold()
        for part in OFTEN:
            if part in plan.parts:
                getattr(self, f"_{part}")()
        for kind, add in KINDS.items():
            if kind in plan.parts:
                add(self, kind)

    @property
    def services(self) -> list[str]:
        return [part.name for part in self.app.graph.parts]

    def declare(self, data: str, label: str, value: Any) -> None:
        """Declare what is computed on services: a stream or a table."""
        name, partitions = f"{self.app.graph.app}.{label}", self.plan.partitions
        made = getattr(self.app, data)(name, value, on="services", partitions=partitions)
        self.outputs.append(made)

    def stream(self, label: str) -> Any:
        """Declare a stream to write to."""
        self.outputs.append(
            self.app.stream(f"{self.app.graph.app}.{label}", Told, partitions=self.plan.partitions)
        )
        return self.outputs[-1]

    def errors(self) -> Any:
        """Return what is done about calls that fail."""
        if self.plan.clocked:
            return on_error()
        first, longest = self.plan.waits
        return on_error(process=retry(self.plan.tries, first=first, longest=longest))

    def _fold(self) -> None:
        self.rows = self.app.table(
            f"{self.app.graph.app}.rows", Row, partitions=self.plan.partitions
        )
        self.outputs.append(self.rows)
        kind = Fold if "fold" in self.plan.sync else SlowFold
        # A class, which each task makes an object of: what is in it is shared, the probe too.
        subject = type("Fold", (kind,), {"made": self})
        self._add("fold", subject, reads=self.inputs["left"], writes=(self.told, self.rows))

    def _pair(self) -> None:
        """Two streams: what lies in a span of event time, told when both are past it."""
        probe, out = self.probe, self.stream("paired")

        def add(sign: Sign, sums: MapState[int, int], timers: Timers) -> None:
            probe.hit("call")
            end = sign.at - sign.at % SPAN + SPAN
            sums.set(end, sums.get(end, 0) + sign.number + 1)
            timers.set(f"{end}", at=EPOCH_OF_SIGNS + timedelta(milliseconds=end))

        def close(timer: Timer, sums: MapState[int, int]) -> Told:
            probe.hit("call")
            end = int(timer.name)
            if end % (3 * SPAN) == 0 and timer.now_at < probe.away_until:
                raise OSError("away for a moment")
            total = sums.get(end)
            sums.delete(end)
            return Told(timer.key, f"{end} {total}")

        class Pair:
            def process(self, sign: Sign, sums: MapState[int, int], timers: Timers) -> None:
                add(sign, sums, timers)

            def on_timer(self, timer: Timer, sums: MapState[int, int]) -> Told:
                return close(timer, sums)

        class SlowPair:
            async def process(self, sign: Sign, sums: MapState[int, int], timers: Timers) -> None:
                await asyncio.sleep(0)
                add(sign, sums, timers)

            async def on_timer(self, timer: Timer, sums: MapState[int, int]) -> Told:
                await asyncio.sleep(0)
                return close(timer, sums)

        self._add(
            "pair",
            Pair if "pair" in self.plan.sync else SlowPair,
            reads=tuple(self.inputs.values()),
            writes=out,
        )

    def _chain(self) -> None:
        """What the first service told, in the order in which it told it."""
        probe = self.probe

        def chain(told: Told, digest: State[int]) -> Told:
            probe.hit("call")
            digest.set((digest.get(0) * 31 + sum(told.text.encode())) % 1_000_003)
            return Told(told.key, str(digest.get()))

        self._add("chain", chain, reads=self.told, writes=self.stream("chained"))

    def _spread(self) -> None:
        """No state: each partition of each stream goes its own way."""
        probe = self.probe

        def spread(sign: Sign, context: Context) -> Iterable[Told]:
            side = context.coordinates.topic.rpartition(".")[2]
            for each in range(sign.number % 3):
                probe.hit("call")
                yield Told(f"{side} {sign.key} {sign.at}", f"{sign.number} {each}")

        self._add("spread", spread, reads=tuple(self.inputs.values()), writes=self.stream("wide"))

    def _heard(self) -> None:
        """What became of rows, and what they were before."""
        probe = self.probe

        def hear(change: Change[Row], changes: State[int]) -> Told:
            probe.hit("call")
            changes.set(changes.get(0) + 1)
            if change.now and change.now.value % 5 == 4:
                raise ValueError("unlucky")
            return Told(change.key, f"{changes.get()} {change.before} {change.now}")

        self._add("heard", hear, reads=self.rows, writes=self.stream("heard_of"))

    def _add(self, name: str, subject: Any, **options: Any) -> None:
        self.app.service(name=name, errors=self.errors(), **options)(subject)


def _timeless(row: bytes | None) -> Any:
    """Return a row without when it was computed: its inputs have no time but that of writing."""
    return None if row is None else {k: v for k, v in json.loads(row).items() if k != "at"}


def shown(made: RandomApp, records: Callable[[str], Iterable[Any]]) -> dict[str, Any]:
    """Return everything that others can see of an application, in the order of each key.

    ``records`` gives what a topic holds. When a dead letter was written is left out.
    """
    found: dict[str, Any] = {}
    for topic in [data.topic.name for data in made.outputs]:
        label = topic.rpartition(".")[2]
        for raw in records(topic):
            place = f"{topic}[{raw.partition()}] {raw.key()!r}"
            if label in made.latest:
                found[place] = _timeless(raw.value())
                continue
            found.setdefault(place, []).append((raw.value(), tuple(raw.headers() or ())))
            if label in made.unordered:
                found[place].sort(key=repr)
    inputs = {data.topic.name for data in made.inputs.values()}
    for raw in records(made.app.graph.dead_letters.name):
        headers = {name: value for name, value in raw.headers() or () if name != "penstock.at"}
        if headers["penstock.topic"].decode() not in inputs:
            del headers["penstock.offset"]  # a broker's transactions leave marks between
        origin = [headers[f"penstock.{each}"] for each in ("part", "topic", "partition")]
        place = f"dead letters of {origin}"
        found.setdefault(place, []).append((raw.key(), raw.value(), headers))
    return found
