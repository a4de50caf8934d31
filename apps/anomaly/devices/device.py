"""A device as it is simulated: measures, sends, obeys; pure, so time and chance are given.

It sends each message again until the door has it on the log, and does each command once, however
often it is told. A device that scores by itself waits for a model, sends anomalies at once, and
everything else in bursts.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import msgspec

from apps.anomaly.devices.faults import FAULTS
from apps.anomaly.devices.wire import FromDoor, ToDoor
from apps.anomaly.records import Burst, Command, Finding, Measurement, Receipt
from apps.anomaly.scoring import MODEL, TelemetryModel, check, score
from apps.anomaly.trend import Trend

__all__ = ["KINDS", "Device", "Pace"]

KINDS = ("server", "drive")
BURST = 30
"""So many measurements of a device that scores by itself make a burst."""
LOST, WARNS = 0.3, 0.002
"""How often a packet is lost, and a warning logged, although nothing is wrong."""
MOST_NEW = 500
"""So many measurements wait for a connection; then the oldest is lost for one more."""
MOST_UNTAKEN = 1_000
"""So many messages wait for the door; the oldest without news is given up for one more."""
_MILLISECONDS = 1_000


class Pace(msgspec.Struct, frozen=True):
    """How many seconds things take; real drives take days."""

    fault: float = 20.0
    """From the beginning of a fault to its worst."""
    moving: float = 2.0
    """To move the data off a device."""
    repair: float = 30.0
    """From turned off to repaired."""
    again: float = 3.0
    """Until a message that was not taken is sent again."""


class _Sent(msgspec.Struct):
    line: bytes
    at: datetime
    news: bool


class Device:
    """One device. ``measure`` and ``told`` change it, ``lines`` gives what it wants to send."""

    def __init__(
        self, name: str, kind: str = KINDS[0], *, at: datetime, local: bool = False, pace: Pace
    ) -> None:
        self.name, self.kind, self.local, self.pace = name, kind, local, pace
        self.chance = Random(name)  # noqa: S311 - a simulation
        self.did: list[tuple[str, str]] = []
        """What it has done: the id of each command, and what."""
        self.found: list[tuple[int, int]] = []
        """Of a device that scores by itself the anomalies: when it had started, and number."""
        self.fault: str | None = None
        self._faulty_at = at
        self.usage = 1.0
        """How much it is used, against the beginning: if that grows, its model is outdated."""
        self._usual = {
            "machine.celsius": self.chance.uniform(38, 42),
            "machine.disk_ms": self.chance.uniform(4, 6),
            "os.load": self.chance.uniform(0.3, 0.5),
        }
        self._receipts: dict[str, list[Receipt]] = {}
        self._version = 0
        self._model: TelemetryModel | None = None
        self._start(at)

    def _start(self, at: datetime) -> None:
        self.started = int(at.timestamp() * _MILLISECONDS)
        self.on = True
        self._repaired_at: datetime | None = None
        self._moved: list[tuple[datetime, str]] = []
        self._measured = self._messages = 0
        self._trend = Trend(started=self.started)
        self._new: list[Measurement] = []
        self._findings: list[Finding] = []
        self._news: list[Receipt] = []
        self._untaken: dict[int, _Sent] = {}

    def fail(self, fault: str, at: datetime) -> None:
        """Begin a fault."""
        self.fault, self._faulty_at = fault, at

    def measure(self, at: datetime, values: dict[str, float] | None = None) -> None:
        """Measure once, if the device is on; ``values`` come from a recording."""
        self._advance(at)
        if not self.on:
            return
        log: list[str] = []
        metrics = self._metrics(at, log) if values is None else values
        measured = Measurement(self._measured, at, metrics, log)
        self._measured += 1
        self._new.append(measured)
        if len(self._new) > MOST_NEW:
            del self._new[0]
        if self.local:
            self._score(measured)

    def told(self, line: bytes, at: datetime) -> None:
        """Take a line of the door."""
        said = msgspec.json.decode(line, type=FromDoor)
        if said.taken is not None and said.taken[0] == self.started:
            self._untaken.pop(said.taken[1], None)
        if said.command is not None:
            self._obey(said.command, at)

    def lines(self, at: datetime) -> list[bytes]:
        """Return what is to be sent now: what is new, and what was not taken for too long."""
        self._advance(at)
        if message := self._message(at):
            news = bool(message.findings or message.receipts)
            line = msgspec.json.encode(message) + b"\n"
            self._untaken[message.number] = _Sent(line, at - timedelta(days=1), news)
            self._give_up()
        overdue = at - timedelta(seconds=self.pace.again)
        due = [each for each in self._untaken.values() if each.at <= overdue]
        for each in due:
            each.at = at
        return [each.line for each in due]

    @property
    def waiting(self) -> bool:
        """Whether something was not sent, or not taken."""
        return bool(self._untaken or self._new or self._news or self._findings)

    def reconnected(self, at: datetime) -> None:
        """Send all that was not taken once more: the connection was lost."""
        for each in self._untaken.values():
            each.at = at - timedelta(days=1)

    def _metrics(self, at: datetime, log: list[str]) -> dict[str, float]:
        chance, usual = self.chance, self._usual
        metrics = {
            "machine.bad_sectors": 0.0,
            "machine.celsius": usual["machine.celsius"] + chance.gauss(0, 0.6),
            "machine.disk_ms": usual["machine.disk_ms"] + chance.gauss(0, 0.4),
            "os.net_errors": float(chance.random() < LOST),
        }
        if self.kind == KINDS[0]:
            metrics["os.load"] = max(self.usage * usual["os.load"] + chance.gauss(0, 0.05), 0)
            metrics["app.requests"] = float(round(200 * self.usage + chance.gauss(0, 12)))
        if chance.random() < WARNS:
            log.append("warning: request took long")
        if self.fault is not None:
            gone = (at - self._faulty_at).total_seconds() / self.pace.fault
            FAULTS[self.fault](metrics, log, min(max(gone, 0.0), 1.0), chance)
        return {name: round(value, 3) for name, value in metrics.items()}

    def _score(self, measured: Measurement) -> None:
        """Remember a measurement, and score it if there is a model."""
        self._trend = self._trend.after(measured.metrics, measured.log)
        if (model := self._model) is None or not self._trend.long_enough:
            return
        features = self._trend.features(measured.metrics)
        found = score(model, self.kind, features)
        if found is None or found.value <= model.threshold:
            return
        self.found.append((self.started, measured.number))
        self._findings.append(
            Finding(
                number=measured.number,
                at=measured.at,
                score=found.value,
                threshold=model.threshold,
                certain=found.value > model.certain,
                model=MODEL,
                model_version=self._version,
                features=features,
                contributions=found.contributions,
            )
        )

    def _message(self, at: datetime) -> ToDoor | None:
        """Return a message with everything new; None: there is nothing."""
        scores = self.local and self._model is not None
        held = scores and len(self._new) < BURST
        if not (self._findings or self._news or (self._new and not held)):
            return None
        message = ToDoor(
            device=self.name,
            kind=self.kind,
            started=self.started,
            number=self._messages,
            sent_at=at,
            measurements=[] if scores else self._new,
            burst=_burst(self._new) if scores and self._new and not held else None,
            findings=self._findings,
            receipts=self._news,
            model_version=self._version if self.local else None,
        )
        self._messages += 1
        if not held:
            self._new = []
        self._findings, self._news = [], []
        return message

    def _obey(self, command: Command, at: datetime) -> None:
        """Do a command that is new; of one that is not say again what was done."""
        if command.what == "model":
            self._learn(command)
            return
        if command.id in self._receipts:
            self._news += self._receipts[command.id]
            return
        self.did.append((command.id, command.what))
        self._receipts[command.id] = []
        if command.what == "move-data":
            self._say(command.id, "moving")
            self._moved.append((at + timedelta(seconds=self.pace.moving), command.id))
        elif command.what == "turn-off":
            self.on, self._new = False, []
            self._repaired_at = at + timedelta(seconds=self.pace.repair)
            self._say(command.id, "off")
        else:
            self._say(command.id, "on")

    def _learn(self, command: Command) -> None:
        """Score with a model from now on, if it is a newer one and makes sense."""
        if not self.local or command.model_version <= self._version:
            return
        try:
            model = msgspec.json.decode(command.parameters, type=TelemetryModel)
            check(model)
        except (msgspec.MsgspecError, ValueError):
            return  # the last good one stays
        self._version, self._model = command.model_version, model

    def _advance(self, at: datetime) -> None:
        """Let happen what is due."""
        for due, command in list(self._moved):
            if due <= at:
                self._moved.remove((due, command))
                self._say(command, "moved")
        if self._repaired_at is not None and self._repaired_at <= at and not self._untaken:
            self.fault = None
            self._start(at)
            self._news.append(Receipt("", "repaired"))

    def _say(self, command: str, done: str) -> None:
        receipt = msgspec.convert({"command": command, "done": done}, Receipt)
        self._receipts[command].append(receipt)
        self._news.append(receipt)

    def _give_up(self) -> None:
        """Make room: of too many messages the oldest is given up that has no news."""
        while len(self._untaken) > MOST_UNTAKEN:
            ordinary = (number for number, each in self._untaken.items() if not each.news)
            del self._untaken[next(ordinary, min(self._untaken))]


def _burst(measured: list[Measurement]) -> Burst:
    first = measured[0]
    names = dict.fromkeys(name for each in measured for name in each.metrics)
    return Burst(
        first=first.number,
        at=first.at,
        after=[(each.at - first.at).total_seconds() for each in measured],
        metrics={name: [each.metrics.get(name) for each in measured] for name in names},
        log={str(each.number): each.log for each in measured if each.log},
    )
