"""The embedded broker, for real: one JVM or three for each test."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from penstock.backbone.broker.broker import EmbeddedBroker
from penstock.backbone.connect import connected
from penstock.core.settings.settings import KafkaSettings, Settings
from penstock.errors import ConfigurationError
from penstock.machine.java.classarchive import archives_dir
from penstock.machine.java.jars import jars_dir
from penstock.machine.places import Places
from penstock.machine.ports import LOOPBACK, port_answers, port_is_free
from penstock.machine.process.processes import command_line, is_alive, wait_until_dead

pytestmark = pytest.mark.broker

LIMIT = timedelta(seconds=20)
CALL = 20.0

OWNER = """
import sys
from pathlib import Path
from penstock.backbone.broker.broker import EmbeddedBroker
broker = EmbeddedBroker(Path(sys.argv[1])).start()
print(broker.bootstrap, *broker.pids, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def nothing_left_behind(tmp_path: Path) -> Iterator[None]:
    yield
    deadline = time.monotonic() + LIMIT.total_seconds()
    while left := [pid for pid in running_pids() if str(tmp_path) in command_line(pid)]:
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.05)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "broker") as one:
        yield one
    assert not one.alive()


def running_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if is_alive(int(path.name))]


def create(bootstrap: str, topic: str, *, copies: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=1, replication_factor=copies)
    admin.create_topics([new])[topic].result(CALL)


def write(bootstrap: str, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(CALL) == 0


def read(bootstrap: str, topic: str, count: int) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    deadline, values = time.monotonic() + CALL, []
    while len(values) < count and time.monotonic() < deadline:
        values += [m.value().decode() for m in consumer.consume(count, 0.5) if not m.error()]
    consumer.close()
    return values


def start_owner(directory: Path) -> tuple["subprocess.Popen[str]", str, int]:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout
    bootstrap, pid = owner.stdout.readline().split()
    return owner, bootstrap, int(pid)


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def test_data_and_ports_stay_from_run_to_run(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker") as first:
        address, (pid,) = first.bootstrap, first.pids
        create(address, "kept")
        write(address, "kept", ["a", "b"])
    assert not is_alive(pid)
    with EmbeddedBroker(tmp_path / "broker") as second:
        assert second.bootstrap == address
        assert read(second.bootstrap, "kept", 2) == ["a", "b"]


def test_the_next_start_maps_the_classes_that_the_first_has_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(jars_dir())
    monkeypatch.setenv("PENSTOCK_CACHE", str(cache))
    for used in (False, True):
        with EmbeddedBroker(tmp_path / "broker") as broker:
            maps = Path(f"/proc/{broker.pids[0]}/maps").read_text()
            assert (str(archives_dir()) in maps) is used
            said = (tmp_path / "broker" / "node-1" / "output.log").read_text()
            assert "[cds" not in said


def test_a_second_owner_joins_and_the_last_one_stops_it(broker: EmbeddedBroker) -> None:
    owner, bootstrap, pid = start_owner(broker.directory)
    assert (bootstrap, (pid,)) == (broker.bootstrap, broker.pids)
    broker.stop()
    assert is_alive(pid)
    create(bootstrap, "still-there")
    owner.communicate("", timeout=CALL)
    assert wait_until_dead(pid, timeout=LIMIT)


def test_owners_that_start_at_once_share_one_broker(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "broker")]
    owners = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = {owner.stdout.readline() for owner in owners if owner.stdout}
    for owner in owners:
        kill(owner)
    assert len(said) == 1
    assert wait_until_dead(int(said.pop().split()[1]), timeout=LIMIT)


def test_a_killed_owner_leaves_no_broker_behind(tmp_path: Path) -> None:
    owner, bootstrap, pid = start_owner(tmp_path / "broker")
    kill(owner)
    assert wait_until_dead(pid, timeout=LIMIT)
    assert not port_answers(int(bootstrap.rpartition(":")[2]))
    with EmbeddedBroker(tmp_path / "broker") as next_one:
        assert next_one.bootstrap == bootstrap


def test_the_broker_of_a_killed_owner_is_adopted_or_replaced(tmp_path: Path) -> None:
    owner, bootstrap, _ = start_owner(tmp_path / "broker")
    create(bootstrap, "kept")
    kill(owner)
    with EmbeddedBroker(tmp_path / "broker") as heir:
        assert heir.bootstrap == bootstrap
        write(heir.bootstrap, "kept", ["a"])
        assert read(heir.bootstrap, "kept", 1) == ["a"]
        (pid,) = heir.pids
    assert not is_alive(pid)


def test_a_killed_broker_comes_back_on_its_ports_with_its_data(broker: EmbeddedBroker) -> None:
    address = broker.bootstrap
    create(address, "kept")
    write(address, "kept", ["a"])
    broker.kill()
    assert not broker.alive()
    assert broker.pids == ()
    broker.ensure()
    assert broker.alive()
    assert broker.bootstrap == address
    write(address, "kept", ["b"])
    assert read(address, "kept", 2) == ["a", "b"]


def test_a_killed_keeper_leaves_no_broker_and_the_next_start_works(broker: EmbeddedBroker) -> None:
    (pid,) = broker.pids
    os.kill(broker._nodes[0].kept._state()["keeper"], signal.SIGKILL)
    broker.ensure()
    assert not is_alive(pid)
    assert broker.alive()


def test_a_port_stolen_while_nobody_ran_it_is_replaced(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker") as first:
        address = first.bootstrap
        create(address, "kept")
    port = int(address.rpartition(":")[2])
    with socket.create_server((LOOPBACK, port)), EmbeddedBroker(tmp_path / "broker") as second:
        assert second.bootstrap != address
        write(second.bootstrap, "kept", ["a"])
    assert port_is_free(port)


def test_a_port_stolen_from_clients_that_wait_is_an_error(broker: EmbeddedBroker) -> None:
    broker.kill()
    with (
        socket.create_server((LOOPBACK, int(broker.bootstrap.rpartition(":")[2]))),
        pytest.raises(ConfigurationError, match="another program took its port") as caught,
    ):
        broker.ensure()
    assert caught.value.code == "broker.port-taken"
    assert "Address already in use" in caught.value.detail


def test_without_its_plan_the_directory_is_still_the_same_cluster(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker") as first:
        create(first.bootstrap, "kept")
        write(first.bootstrap, "kept", ["a"])
    (tmp_path / "broker" / "broker.json").write_bytes(b"\x00" * 100)
    with EmbeddedBroker(tmp_path / "broker") as second:
        assert read(second.bootstrap, "kept", 1) == ["a"]


def test_a_damaged_directory_is_an_error_with_the_end_of_the_log(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker") as first:
        create(first.bootstrap, "kept")
    log = next((tmp_path / "broker").glob("node-1/data/__cluster_metadata-0"))
    shutil.rmtree(log)
    log.write_text("not a directory")
    with pytest.raises(ConfigurationError) as caught:
        EmbeddedBroker(tmp_path / "broker").start()
    assert "__cluster_metadata-0" in caught.value.detail
    assert str(tmp_path / "broker") in caught.value.hint


def test_a_heap_the_machine_does_not_have_is_an_error_that_says_so(tmp_path: Path) -> None:
    settings = KafkaSettings(heap_mb=100_000_000)
    with pytest.raises(ConfigurationError) as caught:
        EmbeddedBroker(tmp_path / "broker", settings).start()
    assert caught.value.code == "broker.memory"


def test_connected_gives_the_embedded_broker_and_gives_it_up(tmp_path: Path) -> None:
    notes: list[str] = []
    places = Places(tmp_path)
    with connected(Settings(), places, note=notes.append) as connection:
        create(connection.bootstrap, "topic")
        outside = Settings(kafka=KafkaSettings(bootstrap=connection.bootstrap))
        with connected(outside, places) as same:
            assert same.bootstrap == connection.bootstrap
    assert notes == [f"starting the embedded broker in {places.broker}"]
    assert not port_answers(int(connection.bootstrap.rpartition(":")[2]))


def test_three_brokers_survive_the_death_of_one(tmp_path: Path) -> None:
    settings = KafkaSettings(brokers=3, heap_mb=256)
    with EmbeddedBroker(tmp_path / "broker", settings) as cluster:
        assert len(cluster.pids) == 3
        assert cluster.connection.settings.replication == 3
        create(cluster.bootstrap, "kept", copies=3)
        write(cluster.bootstrap, "kept", ["a"])
        cluster.kill(0)
        assert not cluster.alive()
        write(cluster.bootstrap, "kept", ["b"])
        cluster.ensure()
        assert cluster.alive()
        cluster.kill(1)
        write(cluster.bootstrap, "kept", ["c"])
        assert read(cluster.bootstrap, "kept", 3) == ["a", "b", "c"]
        pids = cluster.pids
    assert not any(is_alive(pid) for pid in pids)
