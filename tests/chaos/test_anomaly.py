"""The anomaly detection application while everything in it is killed; then a recount.

Simulated devices fail while the door, services, sinks and the broker are killed. In the end every
fault has had one recovery, each of its commands was done once, and the anomalies are those that a
recount of the telemetry gives: none lost, none doubled, each with a version that exists. With
``PENSTOCK_CHAOS_SEEDS`` it goes on for three minutes, with Spark, which trains and keeps the audit.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

import msgspec
import pytest
from apps.anomaly.devices.device import Pace
from apps.anomaly.devices.faults import FAULTS
from apps.anomaly.devices.fleet import Fleet, Plan
from apps.anomaly.devices.way import Trouble
from apps.anomaly.remote import RemoteScores
from apps.anomaly.scoreservice import ToScore
from apps.anomaly.scoring import TelemetryModel, score
from apps.anomaly.trend import Trend

from penstock.machine.ports import free_ports
from penstock.models import ModelVersion, opened

sys.path.insert(0, str(Path(__file__).parent))
from devrun import DevRun
from processes import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]

APP = Path(__file__).parents[2] / "apps" / "anomaly"
SEEDS = [int(seed) for seed in os.environ.get("PENSTOCK_CHAOS_SEEDS", "").split()]
SERVICES = ("ingest", "scorer", "device_changes.filling", "follow", "Session")
EDGES = ("door", "to_devices")
OVER_HTTP = ("score", "scoring")
SPARK = ("drift", "train", "samples.archive.filling", "anomalies.archive.filling", "keep_versions")
RECOVERY = ["move-data", "turn-off", "turn-on"]
UP_SECONDS, HEALED_SECONDS, GONE_SECONDS = 120, 120, 60
LONG_SECONDS = 180


class Devices:
    """A fleet in a thread of its own, which outlives whatever is killed."""

    def __init__(self, port, seed):
        self.fleet = Fleet(
            Plan(
                port=port,
                devices=40,
                rate=8.0,
                pace=Pace(fault=3.0, moving=0.5, repair=3.0, again=2.0),
                trouble=Trouble(
                    late=0.05, late_seconds=1, disorder=0.1, double=0.1, skew_seconds=5
                ),
                seed=seed,
            )
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self.fleet.run())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def fail(self, device, fault):
        self._loop.call_soon_threadsafe(self.fleet.fail, device, fault)

    def recovered(self, device):
        one = self.fleet.devices[device]
        return one.fault is None and [what for _, what in one.did] == RECOVERY

    def has_sent(self, count):
        return self.fleet.bytes_sent >= count

    def stop(self):
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(60)


@pytest.fixture
def home(tmp_path, monkeypatch):
    port = free_ports(1)[0]
    monkeypatch.setenv("ANOMALY_PORT", str(port))
    gateway = free_ports(1)[0]
    monkeypatch.setenv("PENSTOCK_SERVING_PORT", str(gateway))
    monkeypatch.setenv("ANOMALY_NOTICES", str(tmp_path / "notices"))
    monkeypatch.setenv("PYTHONPATH", str(APP.parents[1]))
    run = DevRun(tmp_path, APP)
    run.port, run.gateway = port, f"http://127.0.0.1:{gateway}"
    yield run
    run.traces.kill()


def anomalies_of(telemetry, versions, since):
    """Return what a recount of the telemetry gives, by all versions: who, when, and the score."""
    trends, found = {}, {}
    for row in telemetry:
        who = row["device"]
        trends[who] = trends.get(who, Trend()).of(row["started"]).after(row["metrics"], row["log"])
        if not trends[who].long_enough or datetime.fromisoformat(row["at"]) < since:
            continue
        features = trends[who].features(row["metrics"])
        for version, model in versions.items():
            value = score(model, row["kind"], features)
            if value is not None and value.value > model.threshold:
                found[identity(row), version] = value.value
    return found


def identity(row):
    return row["device"], row["started"], row["number"]


@pytest.mark.parametrize("seed", SEEDS or [1])
def test_every_fault_is_recovered_from_once_whatever_is_killed(home, seed):
    chance = Random(seed)
    parts = ("first_model", *SERVICES, *EDGES, *OVER_HTTP, *(SPARK if SEEDS else ()))
    devices = Devices(home.port, seed)
    faults = {}
    try:
        with home.running(*(word for part in parts for word in ("--only", part))) as dev:
            wait_for(
                f"samples with a score\n{home.said()}",
                UP_SECONDS,
                lambda: any(each["model_version"] for each in home.records("samples")),
            )
            began = time.monotonic()
            healthy = list(devices.fleet.devices)
            chance.shuffle(healthy)
            rounds = 0
            while rounds < 2 or (SEEDS and time.monotonic() - began < LONG_SECONDS and healthy):
                for fault in list(FAULTS)[:: 1 if rounds % 2 else -1][:2]:
                    faults[healthy[-1]] = fault
                    devices.fail(healthy.pop(), fault)
                victims = [*SERVICES, *EDGES]
                for victim in chance.sample(victims, 3):
                    home.traces.kill("run", f"--part {victim} ", program="python")
                    sent = devices.fleet.bytes_sent + chance.randrange(50_000, 200_000)
                    wait_for("more telemetry", 60, partial(devices.has_sent, sent))
                if SEEDS and rounds % 3 == 2:
                    home.traces.kill("org.apache.spark", program="java")
                if rounds % 4 == 1:
                    assert home.traces.kill("kafka.Kafka", program="java") == 1
                rounds += 1
            wait_for(
                f"a recovery from each fault\n{home.said()}",
                HEALED_SECONDS,
                lambda: all(map(devices.recovered, faults)),
            )
            devices.fleet.measures = False
            wait_for("the devices to come to rest", 60, lambda: not devices.fleet.waiting)
            devices.stop()
            verdict(home, devices.fleet, faults)
            over_http(home)
            if SEEDS:
                audited(home)
            assert dev.poll() is None, home.said()
            dev.send_signal(signal.SIGINT)
            assert dev.wait(GONE_SECONDS) in {0, 130}, home.said()
        home.assert_gone()
    finally:
        devices.stop()


def settled(home):
    """Return the telemetry once it, and what follows from it, does not grow any more."""
    seen = []

    def quiet():
        counts = [
            len(home.raw(topic)) for topic in ("messages", "telemetry", "anomalies", "orders")
        ]
        seen.append(counts)
        return len(seen) > 3 and seen[-1] == seen[-3] and counts[0] > 0

    wait_for("the topics to come to rest", HEALED_SECONDS, quiet)
    return home.records("telemetry")


def verdict(home, fleet, faults):
    telemetry = settled(home)
    found = Counter(map(identity, telemetry))
    assert max(found.values()) == 1
    by_start = {}
    for device, started, number in found:
        by_start.setdefault((device, started), set()).add(number)
    gaps = {who for who, numbers in by_start.items() if numbers != set(range(max(numbers) + 1))}
    assert not gaps

    versions = {
        row["version"]: opened(msgspec.convert(row, ModelVersion), TelemetryModel)
        for row in home.records("model_versions")
    }
    began = min(
        datetime.fromisoformat(each["at"]) for each in fleet.ledger.entries if each.get("fault")
    )
    expected = anomalies_of(telemetry, versions, began)
    said = home.records("anomalies")
    assert max(Counter(map(identity, said)).values()) == 1
    late = [each for each in said if datetime.fromisoformat(each["at"]) >= began]
    wrong = [
        each
        for each in late
        if expected.get((identity(each), each["model_version"])) != each["score"]
    ]
    assert wrong == []
    by_all = Counter(who for who, _ in expected)
    certain = {who for who, count in by_all.items() if count == len(versions)}
    assert certain <= {identity(each) for each in said}  # none is lost

    orders = Counter((each["device"], each["what"]) for each in home.records("orders"))
    assert orders == Counter((device, what) for device in faults for what in RECOVERY)
    for device, one in fleet.devices.items():
        assert [what for _, what in one.did] == (RECOVERY if device in faults else [])
    off = Counter(
        each["device"]
        for each in home.records("device_changes")
        if each["legal"] and each["state"] == "off"
    )
    assert off == dict.fromkeys(faults, 1)


def over_http(home):
    """Assert that scores over HTTP are those of the scorer, with and without the service."""
    versions = [msgspec.convert(row, ModelVersion) for row in home.records("model_versions")]
    newest = max(row.version for row in versions)
    found = [row for row in home.records("anomalies") if row["model_version"] == newest][:20]
    asked = [ToScore(row["device"], row["kind"], row["features"]) for row in found]
    expected = [(row["score"], newest) for row in found]
    assert expected
    with RemoteScores(home.gateway, within=timedelta(seconds=2), rests=timedelta(0)) as remote:
        remote.learn(versions)

        def served():
            remote.score(asked[0])
            return remote.degraded is None

        def given():
            return [(each.score, each.model_version) for each in map(remote.score, asked)]

        wait_for(f"an answer over HTTP\n{home.said()}", UP_SECONDS, served)
        assert given() == expected
        assert home.traces.kill("run", "--part score ", program="python") == 1
        assert given() == expected  # of this side, where nobody answers
        wait_for("the service to answer again", UP_SECONDS, served)
        assert given() == expected


def audited(home):
    """Assert that the lake has every anomaly once, with its version."""
    home_setting = ("--set", f"home={home.home}")
    text = (
        "select a.device, a.started, a.number, count(*) as n, count(m.version) as known "
        "from `anomalies.archive` a left join model_audit m on m.version = a.model_version "
        "group by a.device, a.started, a.number"
    )
    command = [sys.executable, "-m", "penstock.cli", *home_setting, "query", str(APP), text]
    expected = Counter(map(identity, home.records("anomalies")))

    def kept():
        done = subprocess.run(
            [*command, "--json", "--limit", "100000"], capture_output=True, check=True, timeout=300
        )
        rows = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
        assert all(row["n"] == row["known"] == 1 for row in rows)
        return {identity(row) for row in rows} == set(expected)

    wait_for("the lake to have every anomaly", 600, kept)
