"""Sessions: the life cycle of each device, and what it is told to do.

The life cycle says which states follow each other. A session sees to it that a command arrives: it
sends it again until the device acknowledges it, and calls for the administrator if it stays silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from apps.anomaly.application import (
    acknowledgements,
    anomalies,
    app,
    commands,
    device_alarms,
    messages,
    model_versions,
    notices,
)
from apps.anomaly.records import (
    Acknowledgement,
    Command,
    DeviceAlarm,
    Message,
    Notice,
    What,
)
from apps.anomaly.scoring import MODEL, TelemetryModel, check, for_kind
from penstock import State, Timer, Timers, record
from penstock.lifecycles import lifecycle
from penstock.models import Models, ModelVersion
from penstock.tables import Rows, broadcast

__all__ = ["Order", "Push", "Session", "device", "device_changes", "devices", "follow", "orders"]

ANSWER_WITHIN = timedelta(seconds=5)
"""A command that was not acknowledged by then is sent again..."""
ATTEMPTS = 5
"""... so often, and then the administrator is called."""

device = (
    lifecycle("healthy", "suspect", "failing", "draining", "off", "repaired")
    .on(anomalies, "healthy | suspect | repaired -> failing", where="certain")
    .on(anomalies, "healthy | repaired -> suspect")
    .stays(anomalies, "suspect", "failing", "draining", "off")
    .on(acknowledgements, "failing -> draining", where="done = 'moving'")
    .on(acknowledgements, "failing | draining -> off", where="done = 'moved'")
    .on(acknowledgements, "off -> repaired", where="done = 'repaired'")
    .stays(acknowledgements, "draining", where="done = 'moving'")
    .stays(acknowledgements, "off", where="done = 'off'")
    .stays(acknowledgements, "repaired", where="done = 'on'")
    .after("2m", "suspect -> healthy")
    .after("5m", "draining -> failing")
    .after("2m", "repaired -> healthy")
    .rests("healthy", "failing", "off")
    .entering("suspect", notice="'looks unusual'")
    .entering("failing", command="'move-data'", notice="'is failing: its data is moved'")
    .entering("off", command="'turn-off'", notice="'is turned off: replace it when convenient'")
    .entering("repaired", command="'turn-on'", notice="'is back in use'")
)
device_changes = app.stream("device_changes", device, on="services")
devices = app.table("devices", device, on="services")


@record(key="device", time="at")
class Order:
    """A command as it is first given."""

    device: str
    at: datetime
    what: What


orders = app.stream("orders", Order)


@app.service(reads=device_changes, writes=(orders, notices, device_alarms))
def follow(change: Any) -> Iterator[Order | Notice | DeviceAlarm]:
    """Say what follows from a change in the life of a device."""
    if not change.legal:
        text = f"{change.cause} in {change.state}"
        yield DeviceAlarm(change.device, change.at, text)
        return
    if change.command is not None:
        yield Order(change.device, change.at, change.command)
    if change.notice is not None:
        urgent = change.state in {"failing", "off"}
        yield Notice(change.device, change.at, urgent, change.notice)


@app.actor(reads=(orders, acknowledgements), writes=(commands, notices))
class Session:
    """The commands of one device: each is sent until it is acknowledged, or nobody answers."""

    open: dict[str, Command] = {}  # noqa: RUF012 - each actor has its own

    def receive(self, order: Order, timers: Timers) -> Command:
        """Send a command for the first time."""
        name = f"{order.what}@{order.at:%Y%m%dT%H%M%S.%f}"
        command = Command(order.device, name, order.what, order.at)
        self.open[name] = command
        timers.set(name, after=ANSWER_WITHIN, time="processing")
        return command

    def receive_answer(self, answer: Acknowledgement, timers: Timers) -> None:
        """Do not send again what was acknowledged."""
        if self.open.pop(answer.command, None) is not None:
            timers.cancel(answer.command, time="processing")

    def on_timer(self, timer: Timer, timers: Timers) -> Command | Notice | None:
        """Send a command again; at the end call for help."""
        last = self.open.pop(timer.name, None)
        if last is None:
            return None
        if last.attempt >= ATTEMPTS:
            text = f"does not answer: {last.what} was sent {ATTEMPTS} times"
            return Notice(last.device, timer.due_at, urgent=True, text=text)
        again = Command(last.device, last.id, last.what, last.at, last.attempt + 1)
        self.open[last.id] = again
        timers.set(last.id, after=ANSWER_WITHIN, time="processing")
        return again


@record()
class Pushed:
    """The version that a device was last sent, and when, by the clock of the door."""

    version: int
    at: datetime


@app.service(reads=(messages, broadcast(model_versions)), writes=commands, name="push")
class Push:
    """Sends the newest model to devices that score by themselves, until they say they have it.

    A device needs no receipt for a model: each of its messages says which version it scores with.
    """

    def __init__(self) -> None:
        self.models = Models(MODEL, TelemetryModel, check=check)

    def process(
        self, message: Message, pushed: State[Pushed], rows: Rows[ModelVersion]
    ) -> Command | None:
        """Send a model to a device that has an older one, or none, and was not sent it just now."""
        served = self.models.newest(rows)
        has = message.model_version
        if served is None or has is None or has >= served.version:
            return None
        now = message.received_at
        last = pushed.get()
        if last and last.version == served.version and now - last.at < ANSWER_WITHIN:
            return None
        pushed.set(Pushed(served.version, now))
        return Command(
            device=message.device,
            id=f"model@{served.version}",
            what="model",
            at=now,
            model_version=served.version,
            parameters=for_kind(served.parameters, message.kind),
        )
