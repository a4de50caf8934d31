"""`penstock dev` and `penstock run` as processes: what dies comes back, and nothing is left."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.core.status.report import decode_report
from penstock.machine.process.processes import command_line, is_alive

APP = """
from penstock import App, State, record

app = App("{name}")

@record(key="word")
class Word:
    word: str

@record(key="word")
class Count:
    word: str
    count: int

words = app.stream("{name}.words", Word)
counts = app.table("{name}.counts", Count)

@app.service(reads=words, writes=counts)
def count(word: Word, total: State[int]) -> Count:
    print("a line that is no report")
    value = total.get(0) + 1
    total.set(value)
    return Count(word.word, value)
"""
LIMIT = 60.0


def until(condition: Callable[[], object], what: str, seen: object = "") -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT:g}s: {what} {seen}"
        threading.Event().wait(0.05)


def processes_of(path: Path) -> list[int]:
    """Return the processes whose command line names a path."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [pid for pid in numbers if str(path) in command_line(pid) and is_alive(pid)]


class Command:
    """A penstock command in the background, its messages collected."""

    def __init__(self, *words: str, cwd: Path, environment: dict[str, str], **given) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", *words],
            cwd=cwd,
            env=os.environ | environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **given,
        )
        self.messages: list[str] = []
        self.lines: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.process.stderr, self.messages), (self.process.stdout, self.lines))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream, into: list[str]) -> None:
        with stream:
            into.extend(line.rstrip("\n") for line in stream)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join(LIMIT)

    def says(self, pattern: str, *, times: int = 1) -> None:
        def said() -> bool:
            return sum(bool(re.search(pattern, line)) for line in list(self.messages)) >= times

        until(said, pattern, self.messages)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(LIMIT)
        for reader in self._readers:
            reader.join(LIMIT)
        return code


@pytest.fixture
def name(topic) -> str:
    return topic.name("dev")


@pytest.fixture
def app(tmp_path: Path, name: str) -> Path:
    file = tmp_path / "dev_app.py"
    file.write_text(APP.format(name=name))
    return file


@pytest.fixture
def start(tmp_path: Path, kafka) -> Iterator[Callable[..., Command]]:
    commands: list[Command] = []

    def run(*words: str, embedded: bool = False, **given) -> Command:
        environment = {} if embedded else {"PENSTOCK_KAFKA_BOOTSTRAP": kafka.bootstrap}
        environment["PENSTOCK_DEV_RESTART_BACKOFF"] = "200ms"
        environment["PENSTOCK_SERVICES_SESSION_TIMEOUT"] = "2s"
        commands.append(Command(*words, cwd=tmp_path, environment=environment, **given))
        return commands[-1]

    yield run
    for command in commands:
        command.close()
    until(lambda: not processes_of(tmp_path), "the test's processes have ended")


def send(kafka, topic: str, words: list[str]) -> None:
    with Producer(kafka) as producer:
        for word in words:
            producer.send(topic, key=word.encode(), value=msgspec.json.encode({"word": word}))


def table(kafka, topic: str) -> dict[str, int]:
    records = LogReader(kafka).read(topic)
    values = [msgspec.json.decode(record.value or b"{}") for record in records]
    return {value["word"]: value["count"] for value in values}


def test_a_part_that_is_killed_comes_back_and_counts_on(start, app, name, kafka, tmp_path):
    dev = start("dev", str(app))
    dev.says(r"count: running")
    send(kafka, f"{name}.words", ["a", "b"] * 50)
    until(lambda: table(kafka, f"{name}.counts") == {"a": 50, "b": 50}, "the first half")
    for times in (1, 2):
        (part,) = [pid for pid in processes_of(app) if "--part count" in command_line(pid)]
        os.kill(part, signal.SIGKILL)
        dev.says(r"count died \(killed by SIGKILL\); starting it again in 0\.[24]s", times=times)
        dev.says(r"count: running", times=times + 1)
    send(kafka, f"{name}.words", ["a", "b"] * 50)
    until(lambda: table(kafka, f"{name}.counts") == {"a": 100, "b": 100}, "the second half")
    assert dev.end(signal.SIGINT) == 130
    assert processes_of(tmp_path) == []
    assert any(line.endswith("restarts 2") for line in dev.messages)
    assert dev.messages[-1] == "ended; the log and all state are kept in .penstock"


def test_a_part_that_cannot_start_says_why_and_fails_a_run_that_is_timed(start, app, tmp_path):
    app.write_text(app.read_text() + "\nimport sys\nif 'run' in sys.argv: raise ValueError('no')\n")
    dev = start("dev", str(app), "--for", "12s")
    dev.says(r"count died \(exit code 1: the application has 1 problem")
    assert dev.wait() == 1
    dev.says(r"error: not well at the end: count \((re)?starting\)")


def test_watched_values_are_data_and_say_only_what_changed(start, app, name, kafka):
    dev = start("dev", str(app), "--watch", f"{name}.counts:count")
    dev.says(r"count: running")
    send(kafka, f"{name}.words", ["a", "b", "b"])
    expected = [f"{name}.counts\tb\t2", f"{name}.counts\ta\t1"]
    until(lambda: dev.lines[-2:] == expected, "both values, the highest first")
    assert dev.end(signal.SIGTERM) == 0


def test_killing_the_broker_and_then_dev_itself_leaves_nothing(start, app, name, tmp_path):
    dev = start("dev", str(app), embedded=True)
    dev.says(r"count: running")

    second = start("dev", str(app), embedded=True)
    assert second.wait() == 1
    second.says(rf"error: {name} is already running in .*\[dev\.running\]")

    programs = {pid: command_line(pid) for pid in processes_of(tmp_path)}
    (broker,) = [
        pid for pid, words in programs.items() if "kafka.Kafka" in words and "keeper" not in words
    ]
    os.kill(broker, signal.SIGKILL)
    dev.says(r"the broker at 127\.0\.0\.1:\d+ died; starting it again")
    dev.says(r"the broker is back after .*, on the same ports")

    assert len(processes_of(tmp_path)) >= 3
    assert dev.end(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not processes_of(tmp_path), "parts and broker end with dev")


def test_a_terminated_dev_ends_in_order_with_its_own_broker(start, app, tmp_path):
    dev = start("dev", str(app), embedded=True)
    dev.says(r"count: running")
    assert dev.end(signal.SIGTERM) == 0
    assert processes_of(tmp_path) == []
    assert "killed" not in "\n".join(dev.messages)


def test_run_reports_as_json_and_keeps_prints_out_of_it(start, app, name, kafka):
    part = start("run", str(app), "--part", "count", "--report-json")
    until(lambda: part.lines and decode_report(part.lines[-1].encode()).state == "running", "up")
    send(kafka, f"{name}.words", ["a"])
    until(
        lambda: decode_report(part.lines[-1].encode()).counts.written == 1, "the record is counted"
    )
    assert part.end(signal.SIGTERM) == 0
    reports = [decode_report(line.encode()) for line in part.lines]
    assert reports[-1].state == "stopped"
    assert "a line that is no report" in part.messages


def test_run_shows_lines_to_people_and_ends_on_ctrl_c(start, app):
    part = start("run", str(app), "--part", "count")
    part.says(r"^count: running")
    assert part.end(signal.SIGINT) == 130
    assert part.messages[-1].startswith("count: stopped")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_that_hangs_is_named_and_left_when_its_time_is_over(start, app, kafka, workers):
    hanging = "    open('hangs', 'w').close()\n    __import__('time').sleep(600)  # hangs\n"
    app.write_text(app.read_text().replace("    value =", f"{hanging}    value =", 1))
    line = app.read_text().split("# hangs")[0].count("\n") + 1
    run = start(
        *("run", str(app), "--part", "count", "--workers", workers),
        *("--set", "services.stop_timeout=1s"),
    )
    run.says(r"^count(-1)?: running")
    words = re.search(r'"(.*\.words)"', app.read_text())[1]
    send(kafka, words, ["a", "a"])
    until((app.parent / "hangs").exists, "the service hangs")
    code = run.end(signal.SIGTERM)
    assert processes_of(app.parent) == []
    logs = (app.parent / ".penstock" / "logs").glob("*.log")
    said = [*run.messages, *(line for log in logs for line in log.read_text().splitlines())]
    assert any(f"count is at dev_app.py:{line}, in count, with {words}[" in each for each in said)
    if workers == "1":
        assert code == 1
        run.says(r"^error: count did not stop within 6s \[service.stuck\]")
    else:
        assert code == 0
        run.says(r"^count-\d ended with a failure \(exit code 1: count did not stop within 6s")
    assert table(kafka, words.replace(".words", ".counts")) == {}


def test_an_unknown_part_is_refused_with_the_nearest(start, app):
    part = start("run", str(app), "--part", "cuont")
    assert part.wait() == 1
    part.says(r"did you mean 'count'")


def test_a_source_piped_into_dev_is_read_when_asked_for(start, app, name, kafka):
    text = app.read_text().replace(
        "counts = ", "app.source('keys', keyboard(), into=words)\ncounts = "
    )
    app.write_text("from penstock.connectors import keyboard\n" + text)
    dev = start("dev", str(app), "--with", "keys", stdin=subprocess.PIPE)
    assert dev.process.stdin is not None
    dev.process.stdin.write('{"word":"a"}\n{"word":"a"}\n')
    dev.process.stdin.close()
    dev.says(r"keys has ended; it has nothing more to do")
    dev.says(r"count: running")
    until(lambda: table(kafka, f"{name}.counts") == {"a": 2}, "what was piped is counted")
    assert dev.end(signal.SIGTERM) == 0


def test_a_keyboard_is_left_out_with_a_hint(start, app):
    text = app.read_text().replace(
        "counts = ", "app.source('keys', keyboard(), into=words)\ncounts = "
    )
    app.write_text("from penstock.connectors import keyboard\n" + text)
    dev = start("dev", str(app))
    dev.says(r"keys needs a terminal of its own: penstock run .* --part keys")
    dev.says(r"count: running")
    assert dev.end(signal.SIGTERM) == 0


def test_a_second_interrupt_ends_what_does_not_end_by_itself(start, app, name, kafka, tmp_path):
    slow = "    if word.word == 'slow':\n        import time\n        time.sleep(600)\n"
    app.write_text(app.read_text().replace("    value = total", f"{slow}    value = total"))
    dev = start("dev", str(app))
    dev.says(r"count: running")
    send(kafka, f"{name}.words", ["slow"])
    until(
        lambda: any("lag 1" in line for line in list(dev.messages)), "the record is being handled"
    )
    dev.process.send_signal(signal.SIGINT)
    dev.says(r"stopping")
    began = time.monotonic()
    assert dev.end(signal.SIGINT) == 130
    assert time.monotonic() - began < 10
    assert processes_of(tmp_path) == []


def test_the_broker_runs_in_the_foreground_for_others_to_join(start, tmp_path):
    broker = start("broker", embedded=True)
    until(lambda: broker.lines, "the broker's address")
    doctor = start("doctor", "--json", embedded=True)
    doctor.wait()
    findings = msgspec.json.decode(doctor.lines[0])["findings"]
    (found,) = [each for each in findings if each["check"] == "broker"]
    assert found["text"] == f"{broker.lines[0]} answers, 1 broker"
    listing = start("topics", "list", "--all", embedded=True)
    assert listing.wait() == 0
    assert not any("starting" in line for line in listing.messages)
    assert broker.end(signal.SIGINT) == 130
    assert processes_of(tmp_path) == []


def test_the_broker_is_not_run_where_a_cluster_is_configured(start):
    broker = start("broker")
    assert broker.wait() == 1
    broker.says(r"the configuration names a cluster: 127\.0\.0\.1")
