"""A task alone, without a broker: the processor time that a record takes in the engine itself.

``python bench/services/alone.py [--records N] [--rounds N]`` prints the lowest of some rounds for
each service, in microseconds. Run it before and after a change of a hot path, in turn: what the
processes of others cost stays out of it, as far as that can be.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from penstock import App, State, Timer, Timers, record
from penstock.core.graph.parts import Service
from penstock.services.task.task import Task

BATCH, COMMIT = 2_000, 10_000
KEYS = 10_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    celsius: float
    place: str
    at: datetime


@record(key="device")
class Plain:
    device: str
    celsius: float
    place: str
    at: int


@record(key="device")
class Count:
    device: str
    count: int


@record()
class Trend:
    count: int
    celsius: float


app = App("alone")
readings = app.stream("readings", Reading)
plain = app.stream("plain", Plain)
warm = app.stream("warm", Plain)
counts = app.stream("counts", Count)


@app.service(reads=plain, writes=warm, delivery="at_least_once")
def convert(given: Plain) -> Plain:
    return Plain(given.device, given.celsius * 1.8 + 32, given.place, given.at)


@app.service(reads=plain)
def count(_: Plain, total: State[int]) -> None:
    total.set(total.get(0) + 1)


@app.service(reads=plain, writes=counts)
def count_and_tell(given: Plain, total: State[int]) -> Count:
    total.set(total.get(0) + 1)
    return Count(given.device, total.get(0))


@app.service(reads=plain)
def objects(given: Plain, trend: State[Trend]) -> None:
    held = trend.get()
    trend.set(Trend(1 if held is None else held.count + 1, given.celsius))


@app.service(reads=readings, writes=counts)
class Timed:
    def process(self, _: Reading, total: State[int], timers: Timers) -> None:
        total.set(total.get(0) + 1)
        if total.get(0) % 100 == 1:
            timers.set("quiet", after="10s")

    def on_timer(self, timer: Timer, total: State[int]) -> Count:
        return Count(timer.name, total.get(0))


picked = app.stream("picked", plain.where("celsius > 22"), on="services")
in_kelvin = plain.select(device="device", kelvin="celsius + 273.15")
kelvin = app.stream("kelvin", in_kelvin, on="services")
once = app.stream("once", readings.deduplicate(by="at", within="1m"), on="services")


@app.actor(reads=plain)
class Counter:
    total: int = 0

    def receive(self, _: Plain) -> None:
        self.total += 1


@app.actor(reads=plain, writes=counts)
class Teller:
    total: int = 0

    def receive(self, given: Plain) -> Count:
        self.total += 1
        return Count(given.device, self.total)


@app.actor(reads=readings, writes=counts)
class Machine:
    total: int = 0
    hottest: float = 0.0
    last_at: datetime | None = None

    def receive(self, given: Reading, timers: Timers) -> None:
        self.total += 1
        self.hottest = max(self.hottest, given.celsius)
        self.last_at = given.at
        if self.total % 100 == 1:
            timers.set("quiet", after="10s")

    def on_timer(self, timer: Timer) -> Count:
        return Count(timer.name, self.total)


class Record:
    """A record as the Kafka client gives it."""

    __slots__ = ("_at", "_key", "_topic", "_value")

    def __init__(self, topic: str, at: int, key: bytes, value: bytes) -> None:
        self._topic, self._at, self._key, self._value = topic, at, key, value

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._at

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return self._value

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_767_268_800_000


class Nowhere:
    """A delivery that counts: what sending costs is the client's."""

    in_doubt = False

    def __init__(self) -> None:
        self.sent = 0

    def send(self, _topic: str, /, **_: Any) -> None:
        self.sent += 1

    keep = send

    def begin(self) -> None: ...

    def take(self, _offsets: object) -> bool:
        return False

    def commit(self, _offsets: object) -> Callable[[], None]:
        return lambda: None

    def close(self) -> None: ...


def records(topic: str, number: int) -> Iterator[Record]:
    for at in range(number):
        device = f"device-{at % KEYS}"
        happened: Any = NOON + timedelta(milliseconds=at) if topic == "readings" else at
        given = {"device": device, "celsius": 20.5 + at % 7, "place": "hall 3", "at": happened}
        yield Record(topic, at, device.encode(), msgspec.json.encode(given))


def round_of(service: Service, given: list[Record]) -> float:
    """Handle all records once; return microseconds of processor time for one."""
    partition = (given[0].topic(), 0)
    delivery: Any = Nowhere()
    task = Task(
        app.graph, service, number=0, starts={partition: 0}, delivery=delivery, clock=lambda: NOON
    )
    task.open()
    began = time.process_time()
    for start in range(0, len(given), BATCH):
        task.handle(partition, given[start : start + BATCH])
        if start % COMMIT == 0:
            task.commit()
    task.commit()
    return (time.process_time() - began) / len(given) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    given = {name: list(records(name, options.records)) for name in ("plain", "readings")}
    derived = [part for part in app.graph.parts if isinstance(part, Service) and part.operator]
    every = (convert, count, count_and_tell, objects, Timed, Counter, Teller, Machine, *derived)
    for service in every:
        topic = service.reads[0].name
        lowest = min(round_of(service, given[topic]) for _ in range(options.rounds))
        print(f"{service.name:15} {lowest:.2f} us")


if __name__ == "__main__":
    main()
