"""The log below one service: its group, what makes its tasks durable, what they are restored from.

Workers, takeovers and standbys know the log by this protocol alone. On a broker it is
:class:`~penstock.services.task.kafkalog.KafkaServiceLog`; the test kit has one in memory.
"""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.backbone.log.membership import Listener
from penstock.services.task.task import Delivery

__all__ = ["MarkingDelivery", "Member", "ServiceLog"]


class MarkingDelivery(Delivery, Protocol):
    """A delivery that can also write a mark, and whose making fences the former owner."""

    def mark(self, topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        """Write one record, durable when the call returns."""


class Member(Protocol):
    """A member of the service's group. Not for several threads at once."""

    def consume(self, count: int, timeout: float) -> Sequence[RawRecord]:
        """Return up to ``count`` records as soon as there is one; none after ``timeout`` seconds.

        The listener is called inside: that is when partitions come and go.
        """

    def pause(self, partitions: Collection[Partition], /) -> None:
        """Hand over no records of these partitions."""

    def resume(self, partitions: Collection[Partition], /) -> None:
        """Hand over records of these partitions again."""

    def seek(self, offsets: Offsets, /) -> None:
        """Go on reading from these offsets."""

    def positions(self) -> Offsets:
        """Return for each partition the offset that is read next."""

    def at_end(self, partition: Partition, offset: int, /) -> bool:
        """Return whether a partition was last seen to end at this offset."""

    def trouble(self) -> str | None:
        """Return why the log cannot be reached, None if it can."""

    def close(self) -> None:
        """Tell the listener that the partitions are revoked, and leave the group."""


class ServiceLog(Protocol):
    """The log below one service."""

    def join(self, listener: Listener, *, poll_interval: timedelta) -> Member:
        """Return a new member of the service's group; the one before it is closed by now.

        It loses its partitions when it does not ask for records within the poll interval.
        """

    def at_end(self, partition: Partition, offset: int) -> bool:
        """Return whether the member last saw a partition end at this offset."""

    def drained(self, partition: Partition, offset: int) -> bool:
        """Return whether there was no record behind an offset when it was last looked."""

    def deliver(self, task: str) -> MarkingDelivery:
        """Make the delivery of a task; with state, or exactly once, it fences the former owner."""

    def identity(self, topic: str) -> str:
        """Return what tells a topic from a later one of the same name."""

    def shapes(self, topics: Collection[str]) -> Mapping[str, tuple[str, int]]:
        """Return the identity and the number of partitions of those of the topics that exist."""

    def ends(self, topic: str, *, committed: bool = False) -> Mapping[int, tuple[int, int]]:
        """Return for each partition where it begins and where it ends."""

    def lag(self, positions: Offsets) -> int | None:
        """Return how many offsets there are behind positions; None: not known in a moment."""

    def batches(
        self,
        topic: str,
        *,
        starts: Mapping[int, int],
        ends: Mapping[int, int] | None,
        stop: threading.Event,
    ) -> Iterator[Sequence[RawRecord]]:
        """Yield the committed records of partitions, many at a time, until ``stop`` is set.

        Without ``ends`` what is written later comes too. ConfigurationError ``offset.trimmed``
        where a partition begins behind its start.
        """
