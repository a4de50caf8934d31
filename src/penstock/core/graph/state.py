"""What a service may ask for besides its record: its states, and where it is."""

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
    """How long a state keeps what is not written again."""

    span: timedelta


def ttl(span: str | timedelta) -> Ttl:
    """Let a state forget what has not been written for so long, by the clock.

    ``seen: Annotated[State[int], ttl("1h")]``. Reading does not prolong. Entries of a map go one by
    one, a list as a whole.
    """
    return Ttl(span_of(span))


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A state of a service: its name is the parameter's name, and so its identity."""

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
    """Which key a call of the user's code is for, and what takes back what it does.

    The engine's business, not the function's.
    """

    __slots__ = ("firing", "happened", "key", "reached", "undo")

    def __init__(self) -> None:
        self.key = b""
        self.undo: list[tuple[Any, Any, Any]] = []
        """What was changed, where, and what was there before."""
        self.firing: Any = None
        """The timer that is going off."""
        self.happened: int | None = None
        """The event time of the record that is handled, where there is one and somebody asks."""
        self.reached: int | None = None
        """How far event time is for this call; None: as far as it is for the task."""

    def take_back(self) -> None:
        """Undo everything, the last first."""
        for store, place, before in reversed(self.undo):
            store.restore(place, before)
        self.undo.clear()


class ValueStore(Protocol):
    """Where the values of one state are kept."""

    @property
    def read(self) -> Callable[..., Any]:
        """Return what gives the value of a key, or a default."""

    @property
    def write(self) -> Callable[[CallScope, Any], None]:
        """Return what gives the key a value; TypeError for one that could not be restored."""

    def remove(self, here: CallScope) -> None:
        """Forget the key."""


class State(Generic[T]):
    """One value per key of the record being handled; durable, moved with its partition.

    Ask for it by annotation: ``def count(word: Word, total: State[int])``. The parameter's name is
    the state's name. What :meth:`get` gives is yours: changing it in place changes nothing here
    before it is :meth:`set`.
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
        """Return the key's value, or the default where it has none."""
        return self._read(self._here.key, default)

    def set(self, value: T) -> None:
        """Give the key a value; TypeError where it is not of the state's type."""
        self._write(self._here, value)

    def delete(self) -> None:
        """Forget the key; nothing happens where it has no value."""
        self._store.remove(self._here)

    def __bool__(self) -> bool:
        """Refuse: a state that is asked for is always there, whether or not it has a value."""
        raise TypeError("a State has no truth of its own: ask for its value with get()")


class ListStore(ValueStore, Protocol):
    """Where the lists of one state are kept."""

    def append(self, here: CallScope, items: Iterable[Any]) -> None:
        """Add items at the end of the key's list."""


class ListState(Generic[T]):
    """A list per key, written as one value: for tens or hundreds of items, not for millions.

    ``def keep(reading: Reading, recent: ListState[float])``. Appending does not read the list.
    """

    __slots__ = ("_here", "_store")

    def __init__(self, store: ListStore, here: CallScope) -> None:
        self._store = store
        self._here = here

    def get(self) -> list[T]:
        """Return a copy of the key's list, empty where it has none."""
        found: list[T] | None = self._store.read(self._here.key)
        return [] if found is None else found

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return an item, or some of them; IndexError where there is none."""
        return self.get()[index]

    def __iter__(self) -> Iterator[T]:
        """Return an iterator over a copy."""
        return iter(self.get())

    def __len__(self) -> int:
        """Return how many items the key's list has."""
        return len(self.get())

    def append(self, item: T) -> None:
        """Add an item; TypeError where it is not of the state's type."""
        self._store.append(self._here, (item,))

    def extend(self, items: Iterable[T]) -> None:
        """Add items, all or none."""
        self._store.append(self._here, items)

    def set(self, items: Iterable[T]) -> None:
        """Replace the list; an empty one forgets the key."""
        if listed := list(items):
            self._store.write(self._here, listed)
        else:
            self._store.remove(self._here)

    def clear(self) -> None:
        """Forget the key's list."""
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
    """A map per key, written entry by entry: only entries that changed go to the changelog.

    ``def visit(view: View, pages: MapState[str, int])``. It reads as a ``dict`` does; what it gives
    are copies. Entries come in the order of their names as JSON, the same after a restart.
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
        """Set an entry; TypeError where name or value is not of the state's types."""
        self._store.write_entry(self._here, name, value)

    def delete(self, name: K) -> None:
        """Forget an entry; nothing happens where there is none."""
        self._store.remove_entry(self._here, name)

    def items(self) -> ItemsView[K, T]:
        """Return the pairs of names and values, of a copy; ``dict(pages.items())`` is the copy."""
        return self._copy().items()

    def keys(self) -> KeysView[K]:
        """Return the names, of a copy."""
        return self._copy().keys()

    def values(self) -> ValuesView[T]:
        """Return the values, of a copy."""
        return self._copy().values()

    def __getitem__(self, name: K) -> T:
        """Return an entry; KeyError where there is none."""
        found = self._store.read_entry(self._here, name, self)
        if found is self:
            raise KeyError(name)
        entry: T = found
        return entry

    def __setitem__(self, name: K, value: T) -> None:
        """Set an entry, as :meth:`set` does."""
        self._store.write_entry(self._here, name, value)

    def __delitem__(self, name: K) -> None:
        """Forget an entry; KeyError where there is none."""
        if name not in self:
            raise KeyError(name)
        self._store.remove_entry(self._here, name)

    def __contains__(self, name: K) -> bool:
        """Return whether there is such an entry."""
        return self._store.read_entry(self._here, name, self) is not self

    def __iter__(self) -> Iterator[K]:
        """Return an iterator over the names, in order; entries may be set and deleted meanwhile."""
        return iter(self._copy())

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self._copy())

    def clear(self) -> None:
        """Forget all entries of the key."""
        for name in self._copy():
            self._store.remove_entry(self._here, name)

    def _copy(self) -> dict[K, T]:
        return self._store.entries(self._here.key)


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
    """Which task of a service begins: what ``open`` of a class gets."""

    service: str
    partition: int
