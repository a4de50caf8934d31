"""Which pattern of usage each device follows, one sample at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from apps.anomaly.application import app, model_alarms, model_versions, samples
from apps.anomaly.records import ModelAlarm, Sample
from apps.anomaly.usage.patterns import MODEL, Usage, check, nearest
from penstock import record, ttl
from penstock.models import Models, ModelVersion
from penstock.state import MapState
from penstock.tables import Rows, broadcast

__all__ = ["DeviceUsage", "FollowUsage", "device_usage"]

FOLLOWS = 0.1
"""How much of a new sample is in what is known of the usage of a device."""


@record(key="device", time="at")
class DeviceUsage:
    """The pattern that a device follows since a moment."""

    device: str
    at: datetime
    kind: str
    pattern: int
    before: int | None
    """The pattern that it followed before; null: none, or one of another version."""
    model_version: int


@record()
class Followed:
    """What is known of the usage of one device."""

    levels: dict[str, float]
    version: int = 0
    pattern: int | None = None


device_usage = app.table("device_usage", DeviceUsage)


@app.service(
    reads=(samples, broadcast(model_versions)), writes=(device_usage, model_alarms), name="usage"
)
class FollowUsage:
    """Says which pattern a device follows, each time that this changes."""

    def __init__(self) -> None:
        self.models = Models(MODEL, Usage, check=check)

    def process(
        self,
        sample: Sample,
        known: Annotated[MapState[str, Followed], ttl("1d")],
        rows: Rows[ModelVersion],
    ) -> Iterator[DeviceUsage | ModelAlarm]:
        """Move what is known of a device by a sample, and find its pattern."""
        served = self.models.newest(rows)
        for each in self.models.refusals():
            yield ModelAlarm(each.model, each.version, each.code, each.reason)
        past = known.get(sample.device) or Followed({})
        levels = {
            name: value + (1 - FOLLOWS) * (past.levels.get(name, value) - value)
            for name, value in sample.features.items()
            if name.endswith(".level")
        }
        version, pattern, before = past.version, past.pattern, past.pattern
        if served is not None:
            if version != served.version:
                version, pattern, before = served.version, None, None
            kind = served.parameters.kinds.get(sample.kind)
            pattern = None if kind is None else nearest(kind, levels, now=pattern)
        known[sample.device] = Followed(levels, version, pattern)
        if pattern is not None and pattern != before:
            yield DeviceUsage(
                device=sample.device,
                at=sample.at,
                kind=sample.kind,
                pattern=pattern,
                before=before,
                model_version=version,
            )
