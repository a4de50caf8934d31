"""The late ledger: records that no window took, each with its window, its lateness and its place.

It is a topic of plain JSON records, `<application>.late`. What it says suffices to find the record
on the log again, and to decide what to do about it.
"""

from datetime import datetime, timedelta
from typing import Literal

from penstock.core.records.record import record, record_type
from penstock.core.topic import TopicSpec

__all__ = ["LATE_RECORD", "LateRecord", "late_topic"]

_RETENTION = timedelta(days=30)


@record(key="part")
class LateRecord:
    """One record and one window that did not take it."""

    part: str
    """Whose window it is."""
    topic: str
    partition: int
    offset: int
    group: str
    """The values of the ``by`` fields, as JSON."""
    happened_at: datetime
    reason: Literal["expired", "closed", "ahead"]
    """The window's lateness is over; its trigger has finished; its time is not to be believed."""
    late_by_seconds: float
    """How far the watermark was past the record's event time; negative: how far that is ahead."""
    window_start: datetime | None = None
    window_end: datetime | None = None
    watermark_at: datetime | None = None


_found = record_type(LateRecord)
assert _found is not None  # noqa: S101 - it was declared just above
LATE_RECORD = _found


def late_topic(app: str) -> TopicSpec:
    """Return the topic that takes an application's late records."""
    return TopicSpec(name=f"{app}.late", partitions=1, retention=_RETENTION)
