"""Services against a plain loop of the Kafka client: same broker, same data, one run, ratios.

``python bench/services/first_form.py [--records N] [--rounds N]`` starts a broker of its own, fills
a topic once, and lets the plain loop and the service take turns with it. The plain loop is what one
would write by hand: consume a batch, decode, compute, encode, produce, commit every 100 ms. It
handles no bad record, no rebalance, no restart: its speed is the ceiling.

A rate counts from the first record handled to the last one committed.
"""

import argparse
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka
import msgspec

from penstock import App, State, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.membership import Membership, consumer_config
from penstock.backbone.log.producer import Producer
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.parts import Service
from penstock.core.settings.settings import Settings
from penstock.machine.places import Places
from penstock.services.worker.reporter import Reporter
from penstock.services.worker.worker import Worker
from penstock.testing.broker import temporary_broker

KEYS = 10_000
SETTINGS = Settings()
LOOK_SECONDS = 0.01


@record(key="device")
class Reading:
    device: str
    celsius: float
    place: str
    at: int


@record(key="device")
class Fahrenheit:
    device: str
    fahrenheit: float
    at: int


@record(key="device")
class Count:
    device: str
    count: int


class Applications:
    """One application per measurement, all reading the same topic."""

    def __init__(self, name: str) -> None:
        self.app = App(name)
        self.readings = self.app.stream("readings", Reading)
        self.fahrenheits = self.app.stream(f"{name}.fahrenheits", Fahrenheit)
        self.counts = self.app.stream(f"{name}.counts", Count)

        @self.app.service(reads=self.readings, writes=self.fahrenheits, delivery="at_least_once")
        def convert(reading: Reading) -> Fahrenheit:
            return Fahrenheit(reading.device, reading.celsius * 1.8 + 32, reading.at)

        @self.app.service(reads=self.readings, writes=())
        def count(_: Reading, total: State[int]) -> None:
            total.set(total.get(0) + 1)

        @self.app.service(reads=self.readings, writes=self.counts)
        def count_and_tell(reading: Reading, total: State[int]) -> Count:
            seen = total.get(0) + 1
            total.set(seen)
            return Count(reading.device, seen)

        self.services = {
            "stateless, at least once": convert,
            "keyed count, exactly once": count,
            "keyed count with output, exactly once": count_and_tell,
        }


class Plain:
    """The loop by hand, for each of the three."""

    def __init__(self, kafka: Connection, name: str, what: str, *, stop: threading.Event) -> None:
        self.handled = 0
        self._name = name
        self._what = what
        self._stop = stop
        common = {**kafka.client_config(), "linger.ms": 2, "partitioner": "murmur2_random"}
        config = consumer_config(
            kafka, group=name, settings=SETTINGS.services, membership=Membership()
        )
        self._consumer = confluent_kafka.Consumer(config | {"auto.offset.reset": "earliest"})
        exactly = "exactly" in what
        self._producer = confluent_kafka.Producer(
            common | ({"transactional.id": name} if exactly else {"enable.idempotence": True})
        )

    def run(self) -> None:
        self._consumer.subscribe(["readings"])
        commit = self._commit_transaction if "exactly" in self._what else self._commit_offsets
        if "exactly" in self._what:
            self._producer.init_transactions(30)
            self._producer.begin_transaction()
        totals: dict[bytes, int] = {}
        dirty: set[bytes] = set()
        handle = self._handler(totals, dirty)
        due = time.monotonic() + 0.1
        handled = 0
        while not self._stop.is_set():
            messages = self._consumer.consume(2000, 0.02)
            for message in messages:
                if message.error() is None:
                    handle(message)
                    handled += 1
            self._producer.poll(0)
            if time.monotonic() >= due:
                for key in dirty:
                    value = b"%d" % totals[key]
                    self._producer.produce(f"{self._name}.changelog", value, key)
                dirty.clear()
                commit()
                self.handled = handled
                due = time.monotonic() + 0.1
        self._consumer.close()

    def _handler(self, totals: dict[bytes, int], dirty: set[bytes]) -> Callable[[Any], None]:
        decode = msgspec.json.Decoder(Reading).decode
        encode = msgspec.json.Encoder().encode
        produce = self._producer.produce
        target = f"{self._name}.{'fahrenheits' if 'stateless' in self._what else 'counts'}"

        def convert(message: Any) -> None:
            reading = decode(message.value())
            made = Fahrenheit(reading.device, reading.celsius * 1.8 + 32, reading.at)
            produce(target, encode(made), message.key())

        def count(message: Any) -> None:
            decode(message.value())
            key = message.key()
            totals[key] = totals.get(key, 0) + 1
            dirty.add(key)

        def count_and_tell(message: Any) -> None:
            reading = decode(message.value())
            key = message.key()
            seen = totals[key] = totals.get(key, 0) + 1
            dirty.add(key)
            produce(target, encode(Count(reading.device, seen)), key)

        if "stateless" in self._what:
            return convert
        return count_and_tell if "output" in self._what else count

    def _positions(self) -> list[confluent_kafka.TopicPartition]:
        found = self._consumer.position(self._consumer.assignment())
        return [at for at in found if at.offset >= 0]

    def _commit_offsets(self) -> None:
        self._producer.flush(30)
        if positions := self._positions():
            self._consumer.commit(offsets=positions, asynchronous=False)

    def _commit_transaction(self) -> None:
        if positions := self._positions():
            metadata = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(positions, metadata, 30)
        self._producer.commit_transaction(30)
        self._producer.begin_transaction()


def fill(kafka: Connection, count: int) -> None:
    chance = random.Random(1)
    encode = msgspec.json.Encoder().encode
    with Producer(kafka) as producer:
        for number in range(count):
            device = f"device-{chance.randrange(KEYS):05}"
            reading = Reading(device, round(chance.gauss(20, 5), 2), "hall 3, row 17", number)
            producer.send("readings", key=device.encode(), value=encode(reading))


def rate(
    run: Callable[[], None], handled: Callable[[], int], stop: threading.Event, n: int
) -> float:
    """Run in a thread until all records are handled; return records per second."""
    thread = threading.Thread(target=run)
    thread.start()
    began = seen = 0.0
    pause = threading.Event()
    while (now_handled := handled()) < n:
        if not thread.is_alive():
            raise SystemExit("it ended before its work was done")
        if not began and now_handled:
            began, seen = time.perf_counter(), now_handled
        pause.wait(LOOK_SECONDS)
    ended = time.perf_counter()
    stop.set()
    thread.join()
    return (n - seen) / (ended - began)


def plain_rate(kafka: Connection, name: str, what: str, n: int) -> float:
    stop = threading.Event()
    loop = Plain(kafka, name, what, stop=stop)
    return rate(loop.run, lambda: loop.handled, stop, n)


def service_rate(kafka: Connection, applications: Applications, service: Service, n: int) -> float:
    site = Site(
        settings=SETTINGS,
        places=Places(Path(tempfile.gettempdir())),
        connection=kafka,
        stop=threading.Event(),
        report=lambda _: None,
    )
    worker = Worker(applications.app.graph, service, site)

    def run() -> None:
        with Reporter(worker.work, worker.log, service, site):
            worker.run()

    return rate(run, lambda: worker.assignment.counts().passed, site.stop, n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with temporary_broker() as broker:
        kafka = broker.connection
        Topics(kafka).declare(Applications("bench").app.graph.topics())
        fill(kafka, options.records)
        print(f"{options.records} records, {options.rounds} rounds; records per second (median)")
        for what in Applications("bench").services:
            if options.only in what:
                measure(kafka, what, options.records, options.rounds)


def measure(kafka: Connection, what: str, records: int, rounds: int) -> None:
    plain, ours = [], []
    for turn in range(rounds):
        for engine, rates in (("plain", plain), ("service", ours)):
            applications = Applications(
                f"{engine}-{what.replace(', ', '-').replace(' ', '-')}-{turn}"
            )
            specs = list(applications.app.graph.topics())
            changelog = applications.app.graph.changelog(applications.services[what])
            if engine == "plain":
                specs.append(replace(changelog, name=f"{applications.app.name}.changelog"))
            Topics(kafka).declare(specs)
            if engine == "plain":
                rates.append(plain_rate(kafka, applications.app.name, what, records))
            else:
                service = applications.services[what]
                rates.append(service_rate(kafka, applications, service, records))
    by_hand, service_speed = statistics.median(plain), statistics.median(ours)
    print(
        f"{what:40} plain {by_hand:9,.0f}   service {service_speed:9,.0f}"
        f"   ratio {service_speed / by_hand:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
