"""Ingest: of the messages of devices everything is taken once, and their clocks are put right.

A device sends a message again until it has a receipt, and what is on the way may double it or
change the order. So messages are numbered, and a device's numbers say which ones were here before.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated

from apps.anomaly.application import (
    acknowledgements,
    anomalies,
    app,
    device_alarms,
    messages,
    telemetry,
)
from apps.anomaly.records import (
    Acknowledgement,
    Anomaly,
    Burst,
    DeviceAlarm,
    Measurement,
    Message,
    Telemetry,
)
from penstock import State, record, ttl
from penstock.state import MapState

__all__ = ["Past", "ingest", "opened"]

MOST_MISSING = 1_000
"""So many numbers of a device may be missing; the lowest are given up after that."""
SKEWED_SECONDS = 2.0
"""A clock that is off by less is left alone: it may be the way that took so long."""
SKEW_FOLLOWS = 0.05
"""A message that took longer than those before moves what is known of the clock by this share."""


@record()
class Past:
    """What is known of a device: its last start, its numbers, how far its clock is off."""

    started: int = 0
    next: int = 0
    """The number behind the highest one so far."""
    missing: list[int] = []  # noqa: RUF012 - each record has its own
    """Numbers below it that have not come."""
    skew: float = 0.0
    """Seconds that the clock of the device is behind ours, and the way takes."""
    lost: int = 0
    """Numbers that were given up."""

    def takes(self, message: Message) -> bool:
        """Return whether a message has not been here before."""
        if message.started != self.started:
            return message.started > self.started
        return message.number >= self.next or message.number in self.missing

    def after(self, message: Message) -> Past:
        """Return the past with one more message, one that it takes."""
        took = (message.received_at - message.sent_at).total_seconds()
        if message.started > self.started:
            return Past(message.started, skew=took).numbered(message.number, took)
        follows = took if took < self.skew else self.skew + SKEW_FOLLOWS * (took - self.skew)
        return self.numbered(message.number, follows)

    def numbered(self, number: int, skew: float) -> Past:
        """Return the past with one more number."""
        if number < self.next:
            rest = [each for each in self.missing if each != number]
            return Past(self.started, self.next, rest, skew, self.lost)
        newest = range(max(self.next, number - MOST_MISSING), number)
        missing = [*self.missing, *newest]
        over = max(len(missing) - MOST_MISSING, 0)
        lost = self.lost + number - self.next - len(newest) + over
        return Past(self.started, number + 1, missing[over:], skew, lost)

    def right(self, at: datetime) -> datetime:
        """Return a time of the device's clock as one of ours."""
        return at if abs(self.skew) < SKEWED_SECONDS else at + timedelta(seconds=self.skew)


@app.service(reads=messages, writes=(telemetry, acknowledgements, anomalies, device_alarms))
def ingest(
    message: Message,
    past: State[Past],
    done: Annotated[MapState[str, bool], ttl("1d")],
) -> Iterator[Telemetry | Acknowledgement | Anomaly | DeviceAlarm]:
    """Take a message apart, if it has not been here before."""
    before = past.get(Past())
    if not before.takes(message):
        return
    now = before.after(message)
    past.set(now)
    device, kind, started = message.device, message.kind, message.started
    if abs(now.skew) >= SKEWED_SECONDS > abs(before.skew):
        text = f"its clock is {now.skew:+.0f} s behind"
        yield DeviceAlarm(device, message.received_at, text)
    scored = message.model_version or None
    for each in (*message.measurements, *(opened(message.burst) if message.burst else ())):
        at = now.right(each.at)
        yield Telemetry(device, kind, at, started, each.number, each.metrics, each.log, scored)
    for found in message.findings:
        yield Anomaly(
            device=device,
            kind=kind,
            at=now.right(found.at),
            started=started,
            number=found.number,
            score=found.score,
            threshold=found.threshold,
            certain=found.certain,
            model=found.model,
            model_version=found.model_version,
            features=found.features,
            contributions=found.contributions,
            local=True,
        )
    for receipt in message.receipts:
        name = f"{receipt.command or started}/{receipt.done}"
        if name not in done:
            done[name] = True
            at = now.right(message.sent_at)
            yield Acknowledgement(device, at, receipt.command, receipt.done)


def opened(burst: Burst) -> Iterator[Measurement]:
    """Give the measurements of a burst one by one."""
    for place, after in enumerate(burst.after):
        number = burst.first + place
        values = ((name, column[place]) for name, column in burst.metrics.items())
        yield Measurement(
            number=number,
            at=burst.at + timedelta(seconds=after),
            metrics={name: value for name, value in values if value is not None},
            log=burst.log.get(str(number), []),
        )
