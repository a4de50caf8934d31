"""``make bench-services``: services beside Kafka Streams and Quix. Same broker, same data, one run.

Two partitions, two workers each (two processes; for Kafka Streams two threads of one process). The
rate is the cluster's own word: records between the first commit of the group and its last, by the
time between them. Rounds take turns, and medians are compared: ratios count, not figures.

Then services alone: latency at 1,000 records/s from Kafka to Kafka, and state on a disk: memory,
restore rate, and the time from SIGKILL to the first correct answer of the next worker.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import msgspec
from peers import quix_python, streams_classpath

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import LATEST
from penstock.backbone.topics.topics import Topics
from penstock.core.status.report import decode_report
from penstock.core.topic import TopicSpec
from penstock.testing.broker import temporary_broker

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from penstock_peer import application

ENGINES = ["penstock", "penstock on disk", "kafka streams", "quix"]
KEYS = 10_000
WORKERS = 2
LIMIT = 600.0
LOOK_SECONDS = 0.02
JVM = ["-Xmx1g", "-XX:+UseParallelGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]


def fill(kafka: Connection, count: int) -> None:
    Topics(kafka).declare([TopicSpec(name="readings", partitions=2)])
    chance, encode = random.Random(1), msgspec.json.Encoder().encode
    with Producer(kafka) as producer:
        for number in range(count):
            device = f"device-{chance.randrange(KEYS):05}"
            reading = {
                "device": device,
                "celsius": round(chance.gauss(20, 5), 2),
                "place": "hall 3, row 17",
                "at": number,
            }
            producer.send("readings", key=device.encode(), value=encode(reading))


def commands(engine: str, kafka: Connection, group: str, work: str, place: Path) -> list[list[str]]:
    """Return the processes of an engine, and declare what it writes to."""
    bootstrap = kafka.bootstrap
    if engine.startswith("penstock"):
        name = group.rpartition(".")[0]
        Topics(kafka).declare(application(name).graph.topics())
        ours = [sys.executable, str(HERE / "penstock_peer.py"), bootstrap, name, work]
        if engine == "penstock on disk":
            ours += ["state=disk", f"state_dir={place}"]
        return [ours] * WORKERS
    Topics(kafka).declare([TopicSpec(name=f"{group}.out", partitions=2)])
    if engine == "kafka streams":
        java = ["java", *JVM, "-cp", streams_classpath(), "StreamsPeer"]
        return [[*java, bootstrap, group, work, str(WORKERS), str(place / group)]]
    quix = [str(quix_python()), str(HERE / "quix_peer.py"), bootstrap, group, work]
    return [[*quix, str(place / f"{group}-{number}")] for number in range(WORKERS)]


@contextmanager
def running(commands: list[list[str]]) -> Iterator[list["subprocess.Popen[bytes]"]]:
    processes = [
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for words in commands
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def rate(kafka: Connection, group: str, total: int, *, partitions: int = WORKERS) -> float:
    """Return records per second between the first commit of the group and its last."""
    groups, pause = Groups(kafka), threading.Event()
    began = seen = 0.0
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        found = groups.lag(group)
        done = total - sum(part.lag for part in found.values()) if len(found) == partitions else 0
        now = time.perf_counter()
        if done and not began:
            began, seen = now, done
        if done >= total and now > began:
            return (done - seen) / (now - began)
        pause.wait(LOOK_SECONDS)
    raise SystemExit(f"{group} did not end within {LIMIT:g}s")


def compare(kafka: Connection, work: str, engines: list[str], records: int, rounds: int) -> None:
    rates: dict[str, list[float]] = {engine: [] for engine in engines}
    with tempfile.TemporaryDirectory() as place:
        for turn in range(rounds):
            for engine in engines:
                name = f"{engine.replace(' ', '-')}-{work}-{turn}"
                group = f"{name}.{work}" if engine.startswith("penstock") else name
                with running(commands(engine, kafka, group, work, Path(place))):
                    rates[engine].append(rate(kafka, group, records))
                print(f"  {work} {engine} {rates[engine][-1]:,.0f}/s", file=sys.stderr, flush=True)
    ours = statistics.median(rates["penstock"])
    for engine, found in rates.items():
        median = statistics.median(found)
        print(
            f"{work:10} {engine:17} {median:10,.0f}/s   penstock is {ours / median:.2f} x",
            flush=True,
        )


def latency(kafka: Connection, work: str, interval: str, *, rate: int, seconds: int) -> None:
    """Print the time from sending a record to seeing its result, at a steady rate."""
    name = f"latency-{work}-{interval}"
    Topics(kafka).declare(application(name).graph.topics())
    program = [sys.executable, str(HERE / "penstock_peer.py"), kafka.bootstrap, name, work]
    taken: list[float] = []
    stop = threading.Event()
    reader = threading.Thread(target=_watch, args=(kafka, f"{name}.out", taken, stop))
    with running([[*program, f"commit_interval={interval}"]]):
        wait_for(lambda: Groups(kafka).lag(f"{name}.{work}"), "the group")
        wait_for(
            lambda: not any(part.lag for part in Groups(kafka).lag(f"{name}.{work}").values()),
            "it has caught up",
        )
        reader.start()
        _send_steadily(kafka, rate=rate, seconds=seconds)
        threading.Event().wait(1)
        stop.set()
        reader.join()
    settled = sorted(taken[rate:])
    p50, p99 = (settled[int(len(settled) * share)] * 1e3 for share in (0.5, 0.99))
    print(f"latency {work}, commit {interval}: p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)


def _watch(kafka: Connection, topic: str, taken: list[float], stop: threading.Event) -> None:
    reader = LogReader(kafka)
    for batch in reader.batches(topic, start=LATEST, follow=True, stop=stop):
        now = time.time()
        for raw in batch:
            sent = msgspec.json.decode(raw.value() or b"")["at"] / 1e6
            if now - sent < LIMIT:
                taken.append(now - sent)


def _send_steadily(kafka: Connection, *, rate: int, seconds: int) -> None:
    encode, pause = msgspec.json.Encoder().encode, threading.Event()
    began = time.perf_counter()
    # The sender does not wait for company: it is not what is measured.
    with Producer(kafka, limits=SendLimits(linger=timedelta())) as producer:
        for number in range(rate * seconds):
            wait = began + number / rate - time.perf_counter()
            if wait > 0:
                pause.wait(wait)
            device = f"device-{number % KEYS:05}"
            at = round(time.time() * 1e6)
            reading = {"device": device, "celsius": 20.0, "place": "hall", "at": at}
            producer.send("readings", key=device.encode(), value=encode(reading))


def on_disk(kafka: Connection, keys: int) -> None:
    """Print what a million keys of a hundred bytes on a disk take."""
    name = "disk"
    Topics(kafka).delete(["readings"])
    Topics(kafka).declare([TopicSpec(name="readings", partitions=2)])
    Topics(kafka).declare(application(name).graph.topics())
    encode = msgspec.json.Encoder().encode
    with Producer(kafka) as producer:
        for number in range(keys):
            device = f"device-{number:07}"
            reading = {"device": device, "celsius": 20.0, "place": "x" * 90, "at": number}
            producer.send("readings", key=device.encode(), value=encode(reading))
    with tempfile.TemporaryDirectory() as place:
        program = [
            sys.executable,
            str(HERE / "penstock_peer.py"),
            kafka.bootstrap,
            name,
            "remember",
        ]
        options = ["state=disk", f"state_dir={place}", "session_timeout=6s"]
        worker = Watched([*program, *options])
        caught_up(kafka, f"{name}.remember", LIMIT)
        print(
            f"disk: {keys:,} keys, {worker.memory_mb():.0f} MB of memory in one worker", flush=True
        )
        killed = time.monotonic()
        worker.end(signal.SIGKILL)
        heir = Watched([*program, *options])
        _one_more(kafka, f"{name}.counts")
        print(
            f"disk: SIGKILL to the next correct answer {time.monotonic() - killed:.1f} s",
            flush=True,
        )
        heir.end(signal.SIGTERM)
        shutil.rmtree(place)
        began = time.monotonic()
        rebuilt = Watched([*program, *options])
        _one_more(kafka, f"{name}.counts")
        spent = time.monotonic() - began
        print(f"disk: lost; the first answer after {spent:.1f} s, {rebuilt.restored()}", flush=True)
        print(f"disk: {rebuilt.memory_mb():.0f} MB of memory after the rebuild", flush=True)
        rebuilt.end(signal.SIGTERM)


class Watched:
    """A worker whose reports are read."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE)
        self.reports: list[tuple[float, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.reports.append((time.monotonic(), decode_report(line)))

    def memory_mb(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def restored(self) -> str:
        """Return how fast the state was restored, by the reports."""
        seen = [(at, found.metrics["restored_records"]) for at, found in self.reports]
        busy = [(at, count) for at, count in seen if count]
        if len(busy) < 2:
            return "restored between two reports"
        (first_at, first), (last_at, last) = busy[0], busy[-1]
        return f"restoring {(last - first) / max(last_at - first_at, 1e-3):,.0f} records/s"

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        if self.process.stdout:
            self.process.stdout.close()


def _one_more(kafka: Connection, topic: str) -> None:
    """Send one more reading of a device that was seen before; wait for the count that is right."""
    device = f"device-{os.getpid():07}"
    before = [raw for raw in LogReader(kafka).read(topic) if raw.key == device.encode()]
    expected = len(before) + 1
    value = msgspec.json.encode({"device": device, "celsius": 1.0, "place": "y", "at": 0})
    with Producer(kafka) as producer:
        producer.send("readings", key=device.encode(), value=value)
    for raw in LogReader(kafka).read(topic, start=LATEST, follow=True):
        if raw.key == device.encode():
            found = msgspec.json.decode(raw.value or b"")["count"]
            if found != expected:
                raise SystemExit(f"{found} where {expected} must be")
            return


def caught_up(kafka: Connection, group: str, limit: float) -> None:
    def done() -> bool:
        found = Groups(kafka).lag(group)
        return len(found) == WORKERS and not any(part.lag for part in found.values())

    wait_for(done, f"no lag of {group}", limit)


def wait_for(condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    deadline, pause = time.monotonic() + limit, threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {limit:g}s: {what}")
        pause.wait(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--only", nargs="+", default=["count", "convert", "latency", "disk"])
    options = parser.parse_args()
    with temporary_broker() as broker:
        kafka = broker.connection
        fill(kafka, options.records)
        for work in ("count", "convert"):
            if work in options.only:
                # Without state a disk makes no difference.
                engines = [
                    name for name in options.engines if work == "count" or "disk" not in name
                ]
                compare(kafka, work, engines, options.records, options.rounds)
        if "latency" in options.only:
            latency(kafka, "convert", "100ms", rate=1000, seconds=15)
            latency(kafka, "convert_exactly", "50ms", rate=1000, seconds=15)
        if "disk" in options.only:
            on_disk(kafka, options.keys)


if __name__ == "__main__":
    main()
