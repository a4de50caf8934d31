"""What a running part says about itself, many times a minute, to whoever supervises it."""

from typing import Literal

import msgspec

from penstock.core.printable import CELL_CHARACTERS, printable
from penstock.core.settings.masking import without_secrets

__all__ = ["Counts", "PartReport", "PartState", "decode_report", "encode_report"]

PartState = Literal["starting", "running", "degraded", "stopping", "stopped", "failed"]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The conservation law of a part, over its input records since it started.

    ``received == passed + filtered + dead_lettered + in_flight``. ``written`` counts output
    records; one input may give many.
    """

    received: int = 0
    passed: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    in_flight: int = 0
    written: int = 0

    @property
    def balanced(self) -> bool:
        """Whether every received record is accounted for."""
        return self.received == (self.passed + self.filtered + self.dead_lettered + self.in_flight)


class PartReport(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of one part. ``reason`` says why it is degraded or failed."""

    part: str
    kind: str
    state: PartState
    at: float
    """Seconds since the epoch."""
    reason: str = ""
    counts: Counts = Counts()
    lag: int | None = None
    """Records between the part's position and the end of its input; None: not known."""
    rate_in: float = 0.0
    rate_out: float = 0.0
    detail: dict[str, str] = {}
    """Further facts to show, name to text: 'listening on': '127.0.0.1:9999'."""
    metrics: dict[str, float] = {}
    """Further numbers for Prometheus: the name of a series, perhaps with labels, to its value."""

    def __post_init__(self) -> None:
        """Make the texts printable: a reason may quote an exception, which may quote a record."""
        detail = {
            printable(name): printable(text, most=CELL_CHARACTERS)
            for name, text in self.detail.items()
        }
        set_field = msgspec.structs.force_setattr
        reason = printable(without_secrets(self.reason), most=CELL_CHARACTERS)
        set_field(self, "reason", reason)
        set_field(self, "detail", detail)


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(PartReport)


def encode_report(report: PartReport) -> bytes:
    """Return the report as one line of JSON, without the line end."""
    return _ENCODER.encode(report)


def decode_report(line: bytes) -> PartReport:
    """Return the report that a line of JSON holds."""
    return _DECODER.decode(line)
