"""The application with a fleet of its own and a story of what happens: ``make demo`` shows it.

The fleet connects over sockets like any other. After a while one device after another fails; after
two minutes all devices are used more, which the model in service does not know.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import singledispatch
from itertools import cycle
from typing import Any, Literal

from apps.anomaly.app import app, door
from apps.anomaly.application import (
    anomalies,
    commands,
    decisions,
    drift_alarms,
    model_versions,
    notices,
)
from apps.anomaly.devices.device import Pace
from apps.anomaly.devices.faults import FAULTS
from apps.anomaly.devices.fleet import Fleet, Plan
from apps.anomaly.devices.way import Trouble
from apps.anomaly.records import Anomaly, Command, Decision, DriftAlarm, Notice
from apps.anomaly.sessions import device_changes
from penstock import State, record
from penstock.connectors import Feed, Item
from penstock.models import ModelVersion

__all__ = ["app"]

PARTS = (
    *("door", "to_devices", "notice_log", "fleet", "tell", "ingest", "scorer", "first_model"),
    *("push", "drift", "device_changes.filling", "devices.filling", "follow", "Session"),
    *("train", "samples.archive.filling", "anomalies.archive.filling", "keep_versions"),
)
"""What the demo runs: all but drives that report once a day."""
FIRST_FAULT, NEXT_FAULT, MORE_USE = 30.0, 25.0, 120.0
"""Seconds until a device fails, until another one does, and until all are used more."""
USAGE = 1.03
"""So little that no device is anomalous for it, and enough to see in many."""


@record(key="about")
class Chapter:
    """A line of the story."""

    about: str
    text: str


@record()
class Done:
    """What was done to a device, or by it."""

    at: datetime
    device: str
    fault: str = ""
    did: str = ""
    id: str = ""
    usage: float = 0.0


story = app.stream("story", Chapter)
ledger = app.stream("ledger", Done)


@dataclass(frozen=True)
class SimulatedFleet:
    """Devices as a source: they connect to the door; what is done to them and by them is given."""

    plan: Plan
    interactive: Literal[False] = False

    def describe(self) -> str:
        """Return what it is, for people."""
        return f"{self.plan.devices} simulated devices"

    def run(self, feed: Feed) -> None:
        """Run the fleet until the feed stops."""
        asyncio.run(self._run(feed))

    async def _run(self, feed: Feed) -> None:
        fleet = Fleet(self.plan)
        tasks = [asyncio.ensure_future(each) for each in (fleet.run(), _play(fleet))]
        given = 0
        while not feed.stop.is_set():
            done, _ = await asyncio.wait(tasks, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
            feed.tell("devices", f"{fleet.connected} connected, {fleet.bytes_sent:,} bytes sent")
            for entry in fleet.ledger.entries[given:]:
                feed.put(Item(Done(**(entry | {"at": datetime.fromisoformat(entry["at"])}))))
            given = len(fleet.ledger.entries)
            feed.settle()
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _play(fleet: Fleet) -> None:
    """Let things happen."""
    for passed, (name, fault) in enumerate(zip(cycle(fleet.devices), cycle(FAULTS), strict=False)):
        at = FIRST_FAULT + passed * NEXT_FAULT
        await asyncio.sleep(FIRST_FAULT if not passed else NEXT_FAULT)
        if at - NEXT_FAULT < MORE_USE <= at:
            fleet.use(USAGE)
        fleet.fail(name, fault)


fleet = SimulatedFleet(
    Plan(
        host=door.host,
        port=door.port,
        devices=24,
        rate=5.0,
        local=0.2,
        pace=Pace(fault=8.0, moving=2.0, repair=15.0),
        trouble=Trouble(late=0.02, late_seconds=2.0, disorder=0.05, double=0.05, skew_seconds=20.0),
    )
)
app.source("fleet", fleet, into=ledger)


@app.service(
    reads=(anomalies, device_changes, model_versions, decisions, drift_alarms, commands, notices),
    writes=story,
)
def tell(happened: Any, told: State[str]) -> Chapter | None:
    """Put into words what happens; what is the same as before is left out."""
    about, text = _words(happened)
    if not text or told.get("") == text:
        return None
    told.set(text)
    return Chapter(about, text)


@singledispatch
def _words(change: Any) -> tuple[str, str]:
    """Return what a record is about, and its words; this is a change in the life of a device."""
    return change.device, f"{change.before} -> {change.state}" if change.legal else ""


@_words.register
def _(version: ModelVersion) -> tuple[str, str]:
    text = f"model version {version.version} is published, trained on {version.trained_on[:80]}"
    return version.model, text


@_words.register
def _(decision: Decision) -> tuple[str, str]:
    if not decision.published:
        return decision.model, f"version {decision.in_service} stays: no candidate is better"
    text = f"version {decision.published} ({decision.chosen}) takes over: its loss is "
    return decision.model, text + f"{decision.losses[decision.chosen]:.4f}"


@_words.register
def _(alarm: DriftAlarm) -> tuple[str, str]:
    return alarm.model, f"{alarm.of} of {alarm.kind}s drifts: the model asks to be trained"


@_words.register
def _(anomaly: Anomaly) -> tuple[str, str]:
    feature = next(iter(anomaly.contributions), "?")
    where = "the device itself" if anomaly.local else "the scorer"
    text = f"anomaly: {feature}, found by {where}, model version {anomaly.model_version}"
    return anomaly.device, text


@_words.register
def _(command: Command) -> tuple[str, str]:
    return command.device, f"is told: {command.what}" if command.attempt == 1 else ""


@_words.register
def _(notice: Notice) -> tuple[str, str]:
    return notice.device, f"the administrator is told: {notice.text}"
