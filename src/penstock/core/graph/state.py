"""What a service can receive besides its record: states, and the record's coordinates."""

from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

from penstock.core.options import span_of
from penstock.core.records.deadletter import Coordinates

__all__ = [
    "CallScope",
    "Context",
    "ListState",
    "ListStore",
    "MapState",
    "MapStore",
    "Opening",
    "State",
    "StateKind",
    "StateSpec",
    "Ttl",
    "ValueStore",
    "ttl",
]

T = TypeVar("T")
K = TypeVar("K")
D = TypeVar("D")

StateKind = Literal["value", "list", "map"]


@dataclass(frozen=True, slots=True)
class Ttl:
    """How long a state keeps a value that is not written again."""

    span: timedelta


def ttl(span: str | timedelta) -> Ttl:
    """Let a state forget what has not been written for so long, by the clock.

    Reading does not prolong it. An entry of a map expires on its own, a list as a whole. ``penstock
    check`` refuses a span that is not positive, or longer than a thousand years.

    Examples:
        >>> from typing import Annotated
        >>> @app.service(reads=readings)
        ... def remember(reading: Reading, last: Annotated[State[float], ttl("1h")]) -> None:
        ...     last.set(reading.celsius)
    """
    return Ttl(span_of(span))


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A state of a service. Its name is the name of the parameter, and identifies it."""

    name: str
    type: Any
    kind: StateKind = "value"
    key: Any = None
    """The type of a map's keys."""
    ttl: timedelta | None = None
    table: str = ""
    """The topic of the table whose rows it holds, where it is restored from there; empty: it is
    restored from the service's changelog."""


class CallScope:
    """The key that a call of the user's code is for, and how to undo what the call does.

    Engines use it; the user's code never sees it.
    """

    __slots__ = ("firing", "happened", "key", "reached", "undo")

    def __init__(self) -> None:
        self.key = b""
        self.undo: list[tuple[Any, Any, Any]] = []
        """The changes: the store, the place, and the value before."""
        self.firing: Any = None
        """The timer that is being handled."""
        self.happened: int | None = None
        """The event time of the record that is handled, if it has one and somebody needs it."""
        self.reached: int | None = None
        """The event time of this call; None: that of the task."""

    def take_back(self) -> None:
        """Undo everything, the last first."""
        for store, place, before in reversed(self.undo):
            store.restore(place, before)
        self.undo.clear()


class ValueStore(Protocol):
    """Where the values of one state are kept."""

    @property
    def read(self) -> Callable[..., Any]:
        """Return the function that gives the value of a key, or a default."""

    @property
    def write(self) -> Callable[[CallScope, Any], None]:
        """Return the function that sets a value; it raises TypeError if JSON cannot restore it."""

    def remove(self, here: CallScope) -> None:
        """Forget the key."""


class State(Generic[T]):
    """One value per key: what a service remembers for the key of the record.

    Ask for it by annotation. The parameter's name is the state's name, and its identity. The value
    is durable: it is committed with outputs and offsets, and moves with its partition. What ``get``
    returns is yours: if you change it in place, call ``set`` to keep the change. If the call
    raises, its changes are undone.

    Examples:
        >>> @app.service(reads=readings, writes=alarms)
        ... def number(reading: Reading, seen: State[int]) -> Alarm:
        ...     seen.set(seen.get(0) + 1)
        ...     return Alarm(reading.device, f"reading {seen.get()}")
    """

    __slots__ = ("_here", "_read", "_store", "_write")

    def __init__(self, store: ValueStore, here: CallScope) -> None:
        self._store = store
        self._here = here
        self._read = store.read
        self._write = store.write

    @overload
    def get(self) -> T | None: ...
    @overload
    def get(self, default: D) -> T | D: ...
    def get(self, default: Any = None) -> Any:
        """Return the value of the key, or the default if there is none."""
        return self._read(self._here.key, default)

    def set(self, value: T) -> None:
        """Set the value of the key; TypeError if it does not have the type of the state."""
        self._write(self._here, value)

    def delete(self) -> None:
        """Delete the value of the key; no effect if there is none."""
        self._store.remove(self._here)

    def __bool__(self) -> bool:
        """Refuse: the state itself always exists, even if it has no value."""
        raise TypeError("a State is neither true nor false: test its value with get()")


class ListStore(ValueStore, Protocol):
    """Where the lists of one state are kept."""

    def append(self, here: CallScope, items: Iterable[Any]) -> None:
        """Add items at the end of the key's list."""


class ListState(Generic[T]):
    """A list per key, for tens or hundreds of items: each change writes the whole list.

    It reads as a ``list`` does: ``recent[-1]``, ``len(recent)``, ``for each in recent``. Appending
    does not read it. Durable and undone as ``State`` is.

    Examples:
        >>> @app.service(reads=readings, writes=alarms)
        ... def mean_of_three(reading: Reading, recent: ListState[float]) -> Alarm:
        ...     recent.set([*recent, reading.celsius][-3:])
        ...     return Alarm(reading.device, f"{sum(recent) / len(recent)} °C")
    """

    __slots__ = ("_here", "_store")

    def __init__(self, store: ListStore, here: CallScope) -> None:
        self._store = store
        self._here = here

    def get(self) -> list[T]:
        """Return a copy of the list; empty if the key has none."""
        found: list[T] | None = self._store.read(self._here.key)
        return [] if found is None else found

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return an item or a slice; IndexError if there is no such item."""
        return self.get()[index]

    def __iter__(self) -> Iterator[T]:
        """Return an iterator over a copy."""
        return iter(self.get())

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.get())

    def append(self, item: T) -> None:
        """Add an item at the end; TypeError if it does not have the type of the state."""
        self._store.append(self._here, (item,))

    def extend(self, items: Iterable[T]) -> None:
        """Add items at the end, all or none."""
        self._store.append(self._here, items)

    def set(self, items: Iterable[T]) -> None:
        """Replace the list; an empty one deletes it."""
        if listed := list(items):
            self._store.write(self._here, listed)
        else:
            self._store.remove(self._here)

    def clear(self) -> None:
        """Delete the list of the key."""
        self._store.remove(self._here)


class MapStore(Protocol):
    """Where the maps of one state are kept, entry by entry."""

    def read_entry(self, here: CallScope, name: Any, default: Any) -> Any:
        """Return an entry of the key's map, or the default."""

    def write_entry(self, here: CallScope, name: Any, value: Any) -> None:
        """Set an entry."""

    def remove_entry(self, here: CallScope, name: Any) -> None:
        """Forget an entry."""

    def entries(self, key: bytes) -> dict[Any, Any]:
        """Return a key's map."""


class MapState(Generic[K, T]):
    """A map per key, for many entries: only an entry that changes is written.

    It reads as a ``dict`` does, and returns copies. Entries come in the order of their names as
    JSON, also after a restart. Durable and undone as ``State`` is.

    Examples:
        >>> @app.service(reads=readings)
        ... def per_hour(reading: Reading, hours: MapState[int, int]) -> None:
        ...     hours[reading.at.hour] = hours.get(reading.at.hour, 0) + 1
    """

    __slots__ = ("_here", "_store")

    def __init__(self, store: MapStore, here: CallScope) -> None:
        self._store = store
        self._here = here

    @overload
    def get(self, name: K) -> T | None: ...
    @overload
    def get(self, name: K, default: D) -> T | D: ...
    def get(self, name: K, default: Any = None) -> Any:
        """Return an entry, or the default."""
        return self._store.read_entry(self._here, name, default)

    def set(self, name: K, value: T) -> None:
        """Set an entry; TypeError if the name or the value does not have the state's types."""
        self._store.write_entry(self._here, name, value)

    def delete(self, name: K) -> None:
        """Delete an entry; no effect if there is none."""
        self._store.remove_entry(self._here, name)

    def items(self) -> ItemsView[K, T]:
        """Return pairs of names and values, from a copy; ``dict(pages)`` is such a copy."""
        return self._copy().items()

    def keys(self) -> KeysView[K]:
        """Return the names, from a copy."""
        return self._copy().keys()

    def values(self) -> ValuesView[T]:
        """Return the values, from a copy."""
        return self._copy().values()

    def __getitem__(self, name: K) -> T:
        """Return an entry; KeyError if there is none."""
        found = self._store.read_entry(self._here, name, self)
        if found is self:
            raise KeyError(name)
        entry: T = found
        return entry

    def __setitem__(self, name: K, value: T) -> None:
        """Set an entry, as ``set`` does."""
        self._store.write_entry(self._here, name, value)

    def __delitem__(self, name: K) -> None:
        """Delete an entry; KeyError if there is none."""
        if name not in self:
            raise KeyError(name)
        self._store.remove_entry(self._here, name)

    def __contains__(self, name: K) -> bool:
        """Return whether there is an entry of this name."""
        return self._store.read_entry(self._here, name, self) is not self

    def __iter__(self) -> Iterator[K]:
        """Return an iterator over the names, in order. You may set and delete entries meanwhile."""
        return iter(self._copy())

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._copy())

    def clear(self) -> None:
        """Delete all entries of the key."""
        for name in self._copy():
            self._store.remove_entry(self._here, name)

    def _copy(self) -> dict[K, T]:
        return self._store.entries(self._here.key)


@dataclass(frozen=True, slots=True)
class Context:
    """Where the record that is being handled comes from, and what time it is.

    Ask for it by annotation. Use ``now_at`` instead of the machine's clock: a test can move it.

    Examples:
        >>> @app.service(reads=readings, writes=alarms)
        ... def locate(reading: Reading, context: Context) -> Alarm:
        ...     at = context.coordinates
        ...     return Alarm(reading.device, f"{at.topic}/{at.partition}/{at.offset}")
    """

    coordinates: Coordinates
    written_at: datetime
    """When the record was appended to the log, or the timestamp of its producer."""
    now_at: datetime
    """The clock of the service: in tests that of the driver, otherwise that of the machine."""
    key: bytes | None
    headers: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Opening:
    """Which task of a service begins: the argument of ``open``.

    ``open`` is called when the state of the partition has been restored, and before any record.

    Examples:
        >>> @app.service(reads=readings)
        ... class Watch:
        ...     def open(self, opening: Opening) -> None:
        ...         self.label = f"{opening.service}/{opening.partition}"
        ...     def process(self, reading: Reading) -> None: ...
    """

    service: str
    partition: int
