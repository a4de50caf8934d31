"""The records of the application: what devices send, what is found, and what is done about it."""

from datetime import datetime
from typing import Annotated, Literal

from penstock import limits, record

__all__ = [
    "Acknowledgement",
    "Anomaly",
    "Burst",
    "Command",
    "Decision",
    "DeviceAlarm",
    "DriftAlarm",
    "Finding",
    "Measurement",
    "Message",
    "ModelAlarm",
    "Notice",
    "Receipt",
    "Sample",
    "Telemetry",
]

MOST_MEASUREMENTS = 1_000
"""So many measurements a burst may have."""

What = Literal["move-data", "turn-off", "turn-on", "model"]
"""What a device can be told to do; the last one is to score with the model that comes along."""
Done = Literal["moving", "moved", "off", "on", "repaired"]
"""What a device says it has done; a repaired one says so when it starts."""


# What devices send.


@record()
class Measurement:
    """What a device measured at one moment, by its own clock."""

    number: int
    """Counts the measurements of a device since it started."""
    at: datetime
    metrics: dict[str, float]
    """By name; the part before the point says of what: ``machine``, ``os`` or ``app``."""
    log: list[str] = []  # noqa: RUF012 - each its own


@record()
class Burst:
    """Many measurements of one device, in columns, which takes a third of the bytes."""

    first: int
    """The number of the first measurement."""
    at: datetime
    """When it was."""
    after: Annotated[list[float], limits(max_length=MOST_MEASUREMENTS)]
    """Of each measurement, the seconds after the first."""
    metrics: dict[str, list[float | None]]
    """A value for each measurement; null: it did not have the metric."""
    log: dict[str, list[str]] = {}  # noqa: RUF012 - each its own
    """The log lines, by the number of their measurement."""


@record()
class Finding:
    """A measurement that is anomalous, with all that its score depends on."""

    number: int
    at: datetime
    score: float
    threshold: float
    certain: bool
    """Whether the device is beyond doubt, and is to be taken out of use."""
    model: str
    model_version: int
    features: dict[str, float]
    contributions: dict[str, float]
    """What contributed to the score, the largest first."""


@record()
class Receipt:
    """What a device says of a command."""

    command: str
    """The id of the command; empty where the device speaks by itself."""
    done: Done


@record(key="device")
class Message:
    """One line of a device, as the door took it; each of its parts may be empty."""

    device: str
    kind: str
    started: int
    """When the device started, in milliseconds since 1970: its numbers begin anew then."""
    number: int
    """Counts the messages of a device since it started, from 0."""
    sent_at: datetime
    """By the clock of the device."""
    received_at: datetime
    """By the clock of the door."""
    measurements: list[Measurement] = []  # noqa: RUF012 - each its own
    burst: Burst | None = None
    findings: list[Finding] = []  # noqa: RUF012 - each its own
    receipts: list[Receipt] = []  # noqa: RUF012
    model_version: int | None = None
    """The model that the device scores with; 0: it waits for one; null: it leaves that to us."""


# What is made of it.


@record(key="device", time="at")
class Telemetry:
    """One measurement of one device, each once, with the clock of the device put right."""

    device: str
    kind: str
    at: datetime
    started: int
    number: int
    """With the device and ``started``, which measurement it is."""
    metrics: dict[str, float]
    log: list[str] = []  # noqa: RUF012
    scored: int | None = None
    """The version of the model with which the device has scored it; null: it has not."""


@record(key="device", time="at")
class Anomaly:
    """A measurement that is anomalous, with all that its score depends on."""

    device: str
    kind: str
    at: datetime
    started: int
    number: int
    score: float
    threshold: float
    certain: bool
    model: str
    model_version: int
    features: dict[str, float]
    contributions: dict[str, float]
    local: bool = False
    """Whether the device found it by itself."""


@record(key="model", time="at")
class Sample:
    """One measurement of many, as it was scored: models learn from it, and are watched by it."""

    model: str
    kind: str
    features: dict[str, float]
    device: str
    at: datetime
    started: int
    number: int
    score: float | None = None
    """None: there was no model, or it does not know devices of this kind."""
    model_version: int = 0
    """What scored it; 0: nothing did."""


@record(key="model")
class ModelAlarm:
    """A version of a model that is not used, and why."""

    model: str
    version: int
    code: str
    reason: str


@record(key="model", time="at")
class DriftAlarm:
    """What comes now is not what a version was trained on; it asks for training."""

    model: str
    version: int
    at: datetime
    kind: str
    of: str
    """The feature that drifted, or ``score``."""
    index: float
    test: str = "population stability index"


@record(key="model", time="at")
class Decision:
    """What training came to: the candidates on held-back time, and which one was published."""

    model: str
    at: datetime
    asked: bool
    """Whether drift was the reason."""
    published: int
    """The new version; 0: none, the one in service is better."""
    in_service: int
    """The version that it was compared with; 0: there was none."""
    chosen: str
    """The best candidate: its family, and what it learnt from."""
    losses: dict[str, float]
    """Of each candidate, and of the one in service, on held-back time; less is better."""
    flagged: dict[str, float]
    """The share of held-back samples that each would have called anomalous."""
    missed: dict[str, float]
    """The share of disturbed samples that each would not have noticed."""
    samples: int
    held_back: int
    held_back_from: datetime
    read: str
    """The offsets of all that was read."""
    seconds: float


# What is done about it.


@record(key="device", time="at")
class Command:
    """What a device is to do. The same id may come several times, and is done once."""

    device: str
    id: str
    what: What
    at: datetime
    attempt: int = 1
    model_version: int = 0
    parameters: str = ""
    """Of the model, as JSON."""


@record(key="device", time="at")
class Acknowledgement:
    """What a device has done, each thing once."""

    device: str
    at: datetime
    command: str
    done: Done


@record(key="device", time="at")
class Notice:
    """What the administrator has to know."""

    device: str
    at: datetime
    urgent: bool
    text: str


@record(key="device", time="at")
class DeviceAlarm:
    """What may not happen: a move that is not legal, a device that cannot be understood."""

    device: str
    at: datetime
    text: str
