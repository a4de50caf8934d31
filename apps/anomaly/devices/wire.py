r"""What goes over a device's socket: lines of JSON, in both directions.

A device sends `Message` without ``received_at``; the door adds it. The door answers with lines of
two kinds: which message is on the log, and what the device is to do.
"""

from __future__ import annotations

from asyncio import StreamWriter
from contextlib import suppress
from datetime import datetime

import msgspec

from apps.anomaly.records import Burst, Command, Finding, Measurement, Receipt

__all__ = ["MOST_LINE", "FromDoor", "Head", "ToDoor", "hung_up", "stamped"]

MOST_LINE = 256 << 10
"""So many bytes a line may have."""


class ToDoor(msgspec.Struct, omit_defaults=True):
    """One line of a device."""

    device: str
    kind: str
    started: int
    number: int
    sent_at: datetime
    measurements: list[Measurement] = []
    burst: Burst | None = None
    findings: list[Finding] = []
    receipts: list[Receipt] = []
    model_version: int | None = None


class Head(msgspec.Struct):
    """What the door has to know of a line."""

    device: str
    started: int
    number: int


class FromDoor(msgspec.Struct, omit_defaults=True):
    """One line of the door: of its two parts it has one."""

    taken: tuple[int, int] | None = None
    """``started`` and ``number`` of a message that is on the log."""
    command: Command | None = None


def stamped(line: bytes, at: datetime) -> bytes:
    """Return a line of a device as a `Message`: with the time at which it was received.

    What the device itself says of that does not count: of two fields of one name the last one does.
    """
    body = line.rstrip()
    if not body.endswith(b"}"):
        return body  # which no reader takes for a record
    return body[:-1] + b',"received_at":' + msgspec.json.encode(at) + b"}"


async def hung_up(writer: StreamWriter) -> None:
    """Close a connection without waiting for what the other side has not read."""
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()
