"""Joins as services beside Kafka Streams: same broker, same data, one run, exactly once.

``looked``: a stream beside a table of as many rows as there are keys. ``pairs``: two streams,
within ten seconds of event time, on average one partner for each record. Two partitions, two
workers each, as in ``compare.py``, which also says how the rate is read. The results of all
engines are counted, and must be equally many.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import random
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from compare import JVM, KEYS, WORKERS, rate, running
from joins_peer import application
from peers import streams_classpath

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.core.topic import TopicSpec
from penstock.testing.broker import temporary_broker

ENGINES = ["penstock", "penstock on disk", "kafka streams"]
WORKS = {"looked": ("left", "settings"), "pairs": ("left", "right")}
PARTITIONS = 4
"""Of both inputs of a join together."""


def fill(kafka: Connection, count: int) -> None:
    """Write rows for all keys, and two streams: a record a millisecond, in turn."""
    inputs = {name for work in WORKS.values() for name in work}
    declared = [each for each in application("fill").graph.topics() if each.name in inputs]
    Topics(kafka).declare([replace(each, partitions=2) for each in declared])
    chance, encode = random.Random(1), msgspec.json.Encoder().encode
    begin = round(time.time() * 1000) - count * 2
    rows_at = datetime.fromtimestamp(begin / 1000 - 1, UTC)
    with Producer(kafka) as producer:
        for number in range(KEYS):
            device = f"device-{number:05}"
            row = {"device": device, "limit": number / 7, "owner": "hall 3, row 17"}
            producer.send("settings", key=device.encode(), value=encode(row), timestamp_at=rows_at)
        for number in range(count * 2):
            device, at = f"device-{chance.randrange(KEYS):05}", begin + number
            reading = {
                "device": device,
                "celsius": round(chance.gauss(20, 5), 2),
                "place": "hall 3, row 17",
                "at": at,
            }
            producer.send(
                "right" if number % 2 else "left",
                key=device.encode(),
                value=encode(reading),
                timestamp_at=datetime.fromtimestamp(at / 1000, UTC),
            )


def commands(engine: str, kafka: Connection, name: str, work: str, place: Path) -> list[list[str]]:
    """Return the processes of an engine, and declare what it writes to."""
    if engine.startswith("penstock"):
        Topics(kafka).declare(application(name).graph.topics())
        ours = [sys.executable, str(HERE / "joins_peer.py"), kafka.bootstrap, name, work]
        if engine == "penstock on disk":
            ours += ["state=disk", f"state_dir={place / name}"]
        return [ours] * WORKERS
    Topics(kafka).declare([TopicSpec(name=f"{name}.out", partitions=2)])
    java = ["java", *JVM, "-cp", streams_classpath("StreamsJoins.java"), "StreamsJoins"]
    return [[*java, kafka.bootstrap, name, work, str(WORKERS), str(place / name)]]


def compare(kafka: Connection, work: str, engines: list[str], count: int, rounds: int) -> None:
    """Let the engines take turns; print medians, and how they compare."""
    total = count + (KEYS if work == "looked" else count)
    rates: dict[str, list[float]] = {engine: [] for engine in engines}
    results: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as place:
        for turn in range(rounds):
            for engine in engines:
                name = f"{engine.replace(' ', '-')}-{work}-{turn}"
                ours = engine.startswith("penstock")
                group = f"{name}.{name}.{work}.filling" if ours else name
                with running(commands(engine, kafka, name, work, Path(place))):
                    found = rate(kafka, group, total, partitions=PARTITIONS)
                rates[engine].append(found)
                if not turn:
                    topic = f"{name}.{work}" if ours else f"{name}.out"
                    results[engine] = sum(1 for _ in LogReader(kafka).read(topic))
                print(f"  {work} {engine} {found:,.0f}/s", file=sys.stderr, flush=True)
    peer = statistics.median(rates[engines[-1]])
    for engine, each in rates.items():
        median = statistics.median(each)
        print(
            f"{work:8} {engine:17} {median:10,.0f}/s  {median / peer:5.2f} x {engines[-1]}"
            f"  {results[engine]:,} results",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000, help="of each stream")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--only", nargs="+", default=list(WORKS), choices=list(WORKS))
    options = parser.parse_args()
    with temporary_broker() as broker:
        fill(broker.connection, options.records)
        for work in options.only:
            compare(broker.connection, work, options.engines, options.records, options.rounds)


if __name__ == "__main__":
    main()
