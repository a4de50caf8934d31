"""What a service's function may ask for besides its record: its state, and where it stands."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, overload

from penstock.core.deadletter import Coordinates

__all__ = ["Cells", "Context", "Opening", "State", "StateSpec"]

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A state of a service: its name is the parameter's name, and so its identity."""

    name: str
    type: Any


class Cells(Generic[T]):
    """The values of one state by key, and which keys changed since the last commit."""

    __slots__ = ("changed", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, T] = {}
        self.changed: set[bytes] = set()


class State(Generic[T]):
    """One value per key of the record being handled; durable, moved with its partition.

    Ask for it by annotation: ``def count(word: Word, total: State[int])``. The parameter's name is
    the state's name. A value is replaced, never changed in place.
    """

    __slots__ = ("_cells", "_key")

    def __init__(self, cells: Cells[T]) -> None:
        self._cells = cells
        self._key = b""

    def at(self, key: bytes) -> None:
        """Point at another key; the engine's business, not the function's."""
        self._key = key

    @overload
    def get(self) -> T | None: ...
    @overload
    def get(self, default: D) -> T | D: ...
    def get(self, default: Any = None) -> Any:
        """Return the key's value, or the default where it has none."""
        return self._cells.values.get(self._key, default)

    def set(self, value: T) -> None:
        """Give the key a value."""
        self._cells.values[self._key] = value
        self._cells.changed.add(self._key)

    def delete(self) -> None:
        """Forget the key; nothing happens where it has no value."""
        if self._cells.values.pop(self._key, None) is not None:
            self._cells.changed.add(self._key)


@dataclass(frozen=True, slots=True)
class Context:
    """Where the record being handled stands: ask for it by annotation."""

    coordinates: Coordinates
    written_at: datetime
    """When the record was appended to the log (or its producer's time stamp)."""
    now_at: datetime
    """The service's clock: the driver's in tests, the machine's otherwise."""
    key: bytes | None
    headers: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Opening:
    """Which share of a service begins: what ``open`` of a class gets."""

    service: str
    partition: int
