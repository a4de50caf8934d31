"""A table that is whole on every instance, as operators and services name it among their inputs."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Broadcast", "broadcast"]


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A table that is whole on every instance; ``broadcast`` makes it."""

    table: Any


def broadcast(table: Any) -> Broadcast:
    """Read a table whole on every instance, so that any field can be looked up in it.

    Use it for tables that are small: settings, models, names. Each worker keeps all rows in memory.
    Nothing needs the same key or number of partitions as the table. Before its first record a
    worker reads the table to where it ended when the worker began. A change holds everywhere soon,
    not at one moment.

    Examples:
        >>> @record(key="device")
        ... class Place:
        ...     device: str
        ...     floor: int
        >>> places = app.table("places", Place)
        >>> @app.service(reads=(readings, broadcast(places)), writes=alarms)
        ... def upstairs(reading: Reading, places: Rows[Place]) -> Alarm | None:
        ...     if reading.device in places and places[reading.device].floor > 0:
        ...         return Alarm(reading.device, "upstairs")
    """
    return Broadcast(table)
