"""Which records of a sink are written together, and when: no I/O, no clock."""

from collections.abc import Collection
from dataclasses import dataclass, field

from penstock.connectors.connector import BatchLimits, Row

__all__ = ["Batch", "Batches"]


@dataclass(slots=True)
class Batch:
    """Records of one partition that follow each other and wait to be written."""

    began_at: float
    position: int = 0
    """The offset behind the last of them."""
    rows: list[Row] = field(default_factory=list)
    size: int = 0
    dead: int = 0
    """How many records between the rows became dead letters."""


class Batches:
    """The batches of all partitions, one each. Every instant is given, in seconds."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._span = limits.span.total_seconds()
        self._held: dict[int, Batch] = {}

    def add(self, partition: int, row: Row, *, at: float) -> bool:
        """Take a row; return whether the batch of its partition is full."""
        batch = self._batch(partition, row.offset, at)
        batch.rows.append(row)
        batch.size += len(row.value)
        return len(batch.rows) >= self._limits.rows or batch.size >= self._limits.size

    def bury(self, partition: int, offset: int, *, at: float) -> None:
        """Take note of a record that became a dead letter."""
        self._batch(partition, offset, at).dead += 1

    def skip(self, partition: int, offset: int, *, at: float) -> None:
        """Take note of a record that was written before, so that the group moves behind it."""
        self._batch(partition, offset, at)

    def due(self, at: float) -> list[int]:
        """Return the partitions whose first record has waited for long enough."""
        return [
            partition
            for partition, batch in self._held.items()
            if at - batch.began_at >= self._span
        ]

    def held(self) -> list[int]:
        """Return the partitions that hold records."""
        return list(self._held)

    def take(self, partition: int) -> Batch:
        """Return the batch of a partition, which begins a new one."""
        return self._held.pop(partition)

    def drop(self, partitions: Collection[int]) -> int:
        """Forget what partitions hold, because it will be read again; return how many records."""
        gone = [self._held.pop(each) for each in partitions if each in self._held]
        return sum(len(batch.rows) + batch.dead for batch in gone)

    def _batch(self, partition: int, offset: int, at: float) -> Batch:
        batch = self._held.get(partition)
        if batch is None:
            batch = self._held[partition] = Batch(at)
        batch.position = offset + 1
        return batch
