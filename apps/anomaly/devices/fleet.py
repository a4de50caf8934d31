"""A fleet: many simulated devices over asynchronous sockets, with faults and trouble on the way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from apps.anomaly.devices.device import KINDS, Device, Pace
from apps.anomaly.devices.way import Trouble, Way
from apps.anomaly.devices.wire import MOST_LINE, hung_up

__all__ = ["Fleet", "Ledger", "Plan"]

FIRST_WAIT, LONGEST_WAIT = 0.2, 5.0
"""Seconds between tries to connect."""
TICK = 0.5
"""So often, in seconds, a device looks whether something is to be sent once more."""

Rows = Iterable[tuple[float, dict[str, float]]]
"""A recording: seconds since its beginning, and what was measured."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet is."""

    host: str = "127.0.0.1"
    port: int = 9100
    devices: int = 100
    rate: float = 1.0
    """Measurements a second, of each device."""
    local: float = 0.0
    """This share of the devices scores by itself."""
    seconds: float = 0.0
    """How long it runs; 0: until it is stopped."""
    pace: Pace = Pace()
    trouble: Trouble = Trouble()
    seed: int = 1


class Ledger:
    """What was done to devices and by them, as lines of JSON: the truth to compare with."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1) if path else None
        self.entries: list[dict[str, Any]] = []

    def note(self, device: str, **what: object) -> None:
        """Write down what happened."""
        entry = {"at": datetime.now(UTC).isoformat(), "device": device, **what}
        self.entries.append(entry)
        if self._file is not None:
            self._file.write(msgspec.json.encode(entry).decode() + "\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class Fleet:
    """Devices of a plan, each with a connection of its own.

    ``run`` ends when its time is over, or when it is cancelled.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        ledger: Ledger | None = None,
        recordings: Mapping[str, Rows] | None = None,
    ) -> None:
        self.plan = plan
        self.ledger = ledger or Ledger()
        self.bytes_sent = 0
        self.connected = 0
        self.trouble = ""
        """Why the last connection was not made."""
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self.measures = True
        """False lets the fleet come to rest: it sends what it has, and is quiet then."""
        self._recordings = recordings or {}
        now = datetime.now(UTC)
        names = list(self._recordings) or [f"device-{n:04}" for n in range(plan.devices)]
        self.devices = {
            name: Device(
                name,
                "recording" if self._recordings else KINDS[number % len(KINDS)],
                at=now,
                local=number < plan.local * len(names),
                pace=plan.pace,
            )
            for number, name in enumerate(names)
        }

    @property
    def waiting(self) -> bool:
        """Whether a device has something that was not sent, or that the door has not taken."""
        return any(device.waiting for device in self.devices.values())

    def fail(self, device: str, fault: str) -> None:
        """Let a fault begin."""
        self.ledger.note(device, fault=fault)
        self.devices[device].fail(fault, datetime.now(UTC))

    def use(self, usage: float) -> None:
        """Let all devices be used more, or less: what was learnt of them is outdated then."""
        self.ledger.note("", usage=usage)
        for device in self.devices.values():
            device.usage = usage

    async def run(self) -> None:
        """Run all devices."""
        async with asyncio.TaskGroup() as group:
            for device in self.devices.values():
                group.create_task(self._live(device))

    async def _live(self, device: Device) -> None:
        plan = self.plan
        chance = Random(f"{plan.seed}/{device.name}")  # noqa: S311 - a simulation
        way = Way(plan.trouble, chance)
        ends = time.monotonic() + plan.seconds if plan.seconds else float("inf")
        await asyncio.sleep(chance.uniform(0, 1 / plan.rate))
        measuring = asyncio.ensure_future(self._measure(device, way))
        wait = FIRST_WAIT
        try:
            while time.monotonic() < ends and not (measuring.done() and self._recordings):
                try:
                    reader, writer = await asyncio.open_connection(
                        plan.host, plan.port, limit=MOST_LINE * 8
                    )
                except OSError as error:
                    self.trouble = error.strerror or str(error)
                    await asyncio.sleep(chance.uniform(wait / 2, wait))
                    wait = min(wait * 2, LONGEST_WAIT)
                    continue
                wait = FIRST_WAIT
                if measuring.done():
                    measuring.result()  # which says what is wrong
                self.connected += 1
                device.reconnected(_clock(way))
                try:
                    await self._talk(device, way, reader, writer, until=ends, measuring=measuring)
                except OSError:
                    continue  # it connects again
                finally:
                    self.connected -= 1
                    await hung_up(writer)
        finally:
            measuring.cancel()

    async def _measure(self, device: Device, way: Way) -> None:
        """Let the device measure at its rate, connected or not."""
        if self._recordings:
            begun = time.monotonic()
            for after, values in self._recordings[device.name]:
                await asyncio.sleep(max(begun + after - time.monotonic(), 0))
                device.measure(_clock(way), values)
            return
        due = time.monotonic()
        while True:
            if self.measures:
                device.measure(_clock(way))
                self._send(device, way)
            due += 1 / self.plan.rate
            await asyncio.sleep(max(due - time.monotonic(), 0))

    async def _talk(
        self,
        device: Device,
        way: Way,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        until: float,
        measuring: asyncio.Future[None],
    ) -> None:
        """Send and listen until the connection or the time ends."""
        listening = asyncio.ensure_future(self._listen(device, way, reader))
        self._writers[device.name] = writer
        try:
            while not listening.done() and time.monotonic() < until:
                self._send(device, way)
                await writer.drain()
                if self._recordings and measuring.done() and not device.waiting:
                    return
                await asyncio.wait((listening,), timeout=min(TICK, 1 / self.plan.rate))
        finally:
            del self._writers[device.name]
            listening.cancel()

    def _send(self, device: Device, way: Way) -> None:
        """Send what is due, if there is a connection that takes it."""
        writer = self._writers.get(device.name)
        if writer is None or writer.transport.get_write_buffer_size() > MOST_LINE:
            return
        now = time.monotonic()
        for line in device.lines(_clock(way)):
            way.put(line, now)
        if sent := way.arrived(now):
            self.bytes_sent += len(sent)
            writer.write(sent)

    async def _listen(self, device: Device, way: Way, reader: asyncio.StreamReader) -> None:
        known = len(device.did)
        while line := await reader.readline():
            device.told(line, _clock(way))
            for command, what in device.did[known:]:
                self.ledger.note(device.name, did=what, id=command)
            known = len(device.did)


def _clock(way: Way) -> datetime:
    """Return the time by the clock of a device."""
    return datetime.now(UTC) + timedelta(seconds=way.skew)
