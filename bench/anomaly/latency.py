"""How long it takes from a device's socket to the topic of anomalies, at 1,000 devices.

python bench/anomaly/latency.py [--devices N] [--seconds N]

The application runs as ``penstock dev`` runs it, without Spark; the devices are in this process,
one measurement a second each. Once there is a model, a hundred of them fail. The time is that from
the measurement to the timestamp of the anomaly on the log, one clock for both; the commit of the
scorer, after which others may read it, is part of the second figure.
"""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
runpy.run_path(str(ROOT / "scripts" / "own_python.py"))

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime

sys.path.insert(0, str(ROOT))

from apps.anomaly.devices.device import Pace
from apps.anomaly.devices.fleet import Fleet, Plan

from penstock.machine.ports import free_ports

PARTS = ("door", "to_devices", "ingest", "scorer", "first_model", "device_changes.filling")
PARTS += ("follow", "Session")
FAILING = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=40)
    options = parser.parse_args()
    port = free_ports(1)[0]
    plan = Plan(port=port, devices=options.devices, pace=Pace(fault=1.0, moving=60.0))
    environment = os.environ | {"ANOMALY_PORT": str(port), "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as home:
        penstock = [sys.executable, "-m", "penstock.cli", "--set", f"home={home}"]
        only = [word for part in PARTS for word in ("--only", part)]
        dev = subprocess.Popen(
            [*penstock, "dev", str(ROOT / "apps/anomaly"), *only],
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        try:
            asyncio.run(play(Fleet(plan), penstock, options.seconds))
        finally:
            dev.send_signal(signal.SIGINT)
            dev.wait(60)
    return 0


async def play(fleet: Fleet, penstock: list[str], seconds: int) -> None:
    running = asyncio.ensure_future(fleet.run())
    await asyncio.to_thread(wait_for_a_model, penstock)
    following = await asyncio.to_thread(follow, penstock)
    await asyncio.sleep(5)
    for device in list(fleet.devices)[:FAILING]:
        fleet.fail(device, "overheating")
    found: list[tuple[float, float]] = []
    reading = asyncio.ensure_future(asyncio.to_thread(read, following, found))
    await asyncio.sleep(seconds)
    following.terminate()
    running.cancel()
    await asyncio.wait([reading, running])
    for name, place in (("on the log", 0), ("seen by a reader", 1)):
        took = sorted(each[place] for each in found)
        shown = [took[int(share * (len(took) - 1))] * 1_000 for share in (0.5, 0.99)]
        print(f"{name}: p50 {shown[0]:.0f} ms, p99 {shown[1]:.0f} ms, of {len(took):,} anomalies")


def wait_for_a_model(penstock: list[str]) -> None:
    command = [*penstock, "topics", "tail", "model_versions", "--json", "--limit", "1"]
    while not subprocess.run(command, capture_output=True, check=False).stdout:
        time.sleep(1)


def follow(penstock: list[str]) -> "subprocess.Popen[str]":
    command = [*penstock, "topics", "tail", "anomalies", "-f", "--from", "latest", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def read(following: "subprocess.Popen[str]", found: list[tuple[float, float]]) -> None:
    for line in following.stdout or ():
        said = json.loads(line)
        measured = datetime.fromisoformat(said["value"]["at"]).timestamp()
        logged = datetime.fromisoformat(said["at"]).timestamp()
        found.append((logged - measured, time.time() - measured))


if __name__ == "__main__":
    sys.exit(main())
