"""The broadcast tables of a service on a log in memory: whole whenever it handles a record."""

import threading

from penstock.backbone.client.logrecord import Partition
from penstock.core.graph.parts import Service
from penstock.services.state.wholetables import WholeTables, whole_tables
from penstock.testing.memorylog import MemoryLog

__all__ = ["MemoryFollowed"]


class MemoryFollowed:
    """Reads on when it is told to."""

    def __init__(self, service: Service, log: MemoryLog) -> None:
        self.tables: WholeTables = whole_tables(service)
        self._log = log
        self._read_to: dict[Partition, int] = {}

    def catch_up(self) -> None:
        """Read what was written since the last time."""
        for topic, table in self.tables.items():
            for partition in self._log.partitions(topic):
                records = self._log.read(partition, self._read_to.get(partition, 0))
                self._read_to[partition] = self._read_to.get(partition, 0) + len(records)
                for raw in records:
                    table.apply(raw)

    def wait(self, stop: threading.Event) -> bool:  # noqa: ARG002 - it is whole already
        """Return True: it is whole."""
        return True
