"""How the parts of a running application are, as whoever runs them sees it."""

from datetime import datetime
from typing import Literal

import msgspec

from penstock.core.status.report import Counts, PartState

__all__ = ["PartStatus", "RunStatus", "Shown", "decode_status", "encode_status"]

Shown = PartState | Literal["restarting", "ended"]

_WELL = frozenset({"running", "stopping", "stopped", "ended"})


class PartStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One part in one process at one moment; counts go on over restarts of the process."""

    process: str
    part: str
    kind: str
    state: Shown
    since_seconds: float
    """How long it has been in this state."""
    reason: str = ""
    """Why it is degraded, failed or started again."""
    silent_seconds: float | None = None
    """How long ago it last reported; None: not since its process was started."""
    restarts: int = 0
    counts: Counts = Counts()
    rate_in: float = 0.0
    rate_out: float = 0.0
    lag: int | None = None
    detail: dict[str, str] = {}
    metrics: dict[str, float] = {}

    @property
    def key(self) -> str:
        """What tells it from the others of its application: ``count@count-2``, or its name."""
        return self.part if self.process == self.part else f"{self.part}@{self.process}"

    @property
    def healthy(self) -> bool:
        """Whether it runs, or has ended as it should."""
        return self.state in _WELL

    @property
    def why(self) -> str:
        """Why it is not well, be it only that its state is still coming."""
        restoring = self.detail.get("restoring", "")
        return self.reason or (restoring and f"restoring {restoring}")


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One command that runs parts of an application: ``penstock dev`` or ``penstock run``."""

    app: str
    command: str
    pid: int
    started_at: datetime
    parts: tuple[PartStatus, ...]

    @property
    def healthy(self) -> bool:
        """Whether there are parts, and all are well."""
        return bool(self.parts) and all(part.healthy for part in self.parts)


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(RunStatus)


def encode_status(status: RunStatus) -> bytes:
    """Return the status as JSON."""
    return _ENCODER.encode(status)


def decode_status(text: bytes) -> RunStatus:
    """Return the status that JSON holds; msgspec.MsgspecError where it holds none."""
    return _DECODER.decode(text)
