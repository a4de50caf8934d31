"""`penstock run --workers N`: several processes share the work, and come back when they die."""

import os
import signal
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.machine.ports import free_ports
from penstock.machine.process.processes import command_line

from . import test_cli_dev as kit

WORDS = 6000


@pytest.fixture
def name(topic):
    return topic.name("app").replace(".", "-")[:60]


def send(kafka, name, count):
    with Producer(kafka) as producer:
        for number in range(count):
            word = b"w%d" % (number % 100)
            producer.send(f"{name}.words", key=word, value=b'{"word":"%s"}' % word)


def counted(kafka, name):
    return Counter(raw.key for raw in LogReader(kafka).read(f"{name}.counts"))


def test_workers_share_the_partitions_and_one_that_is_killed_comes_back(kafka, name, tmp_path):
    (tmp_path / "app.py").write_text(kit.APP.format(name=name).replace("print(", "str("))
    port = free_ports(1)[0]
    command = kit.Command(
        "run", "app.py", "--part", "count", "--workers", "2",
        "--set", f"http.port={port}", "--set", "services.session_timeout=3s",
        cwd=tmp_path,
        environment={"PENSTOCK_KAFKA_BOOTSTRAP": kafka.bootstrap},
    )  # fmt: skip
    try:
        kit.until(lambda: metric(port, "running_partitions") == [1, 1], "a partition for each")
        send(kafka, name, WORDS)
        kit.until(lambda: sum(counted(kafka, name).values()) == WORDS, "all counted")
        kit.until(
            lambda: sum(metric(port, "received_records_total")) == WORDS, "all in the metrics"
        )
        os.kill(workers_of(command.process.pid)[0], signal.SIGKILL)
        command.says("died .killed by SIGKILL.; starting it again")
        send(kafka, name, WORDS)
        kit.until(lambda: sum(counted(kafka, name).values()) == 2 * WORDS, "all counted again")
        assert set(counted(kafka, name).values()) == {2 * WORDS // 100}
        assert command.end(signal.SIGTERM) == 0
    finally:
        command.close()


def workers_of(pid):
    """Return the processes that the command has started, and those that they have."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [int(child) for child in children]
    found += [below for child in found for below in workers_of(child)]
    return [pid for pid in found if "--report-json" in command_line(pid)]


def metric(port, name):
    """Return the values of a metric, one for each process, smallest first."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return []
    return sorted(
        float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"penstock_{name}{{")
    )


def test_a_broker_of_their_own_that_dies_comes_back(name, tmp_path):
    (tmp_path / "app.py").write_text(kit.APP.format(name=name).replace("print(", "str("))
    environment = {"PENSTOCK_SERVICES_SESSION_TIMEOUT": "3s"}
    command = kit.Command(
        "run", "app.py", "--part", "count", "--workers", "2", cwd=tmp_path, environment=environment
    )
    try:
        command.says("count-1: running")
        (broker,) = [
            pid for pid in kit.processes_of(tmp_path)
            if "kafka.Kafka" in (words := command_line(pid)) and "keeper" not in words
        ]  # fmt: skip
        os.kill(broker, signal.SIGKILL)
        command.says("the broker at .* died; starting it again")
        command.says("the broker is back after")
        command.says("count-1: degraded")
        command.says("count-1: running", times=2)
        assert command.end(signal.SIGTERM) == 0
        assert kit.processes_of(tmp_path) == []
    finally:
        command.close()


def test_only_services_have_workers(kafka, name, tmp_path):
    text = kit.APP.format(name=name) + (
        "from penstock.connectors import text_file\n"
        'app.source("lines", text_file("x.txt"), into=words)\n'
    )
    (tmp_path / "app.py").write_text(text)
    (tmp_path / "x.txt").write_text("")
    command = kit.Command(
        "run", "app.py", "--part", "lines", "--workers", "2",
        cwd=tmp_path, environment={"PENSTOCK_KAFKA_BOOTSTRAP": kafka.bootstrap},
    )  # fmt: skip
    try:
        assert command.wait() == 1
        assert any("only services have workers" in line for line in command.messages), (
            command.messages
        )
    finally:
        command.close()


def test_a_second_ctrl_c_ends_what_the_first_cannot(kafka, name, tmp_path):
    busy = "import pathlib, threading\n" + kit.APP.format(name=name).replace(
        "print(", "pathlib.Path('taken').touch(); threading.Event().wait(600); str("
    )
    (tmp_path / "app.py").write_text(busy)
    command = kit.Command(
        "run", "app.py", "--part", "count",
        cwd=tmp_path, environment={"PENSTOCK_KAFKA_BOOTSTRAP": kafka.bootstrap},
    )  # fmt: skip
    try:
        command.says("count: running")
        send(kafka, name, 10)
        kit.until((tmp_path / "taken").exists, "the function has a record, and keeps it")
        command.process.send_signal(signal.SIGINT)
        command.says("count: stopping")
        assert command.end(signal.SIGINT) == 130
        assert not any("Traceback" in line for line in command.messages)
    finally:
        command.close()
