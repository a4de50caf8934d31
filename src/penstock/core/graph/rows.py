"""The rows of a broadcast table, as a service gets them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, overload

from penstock.core.graph.data import Table
from penstock.core.records.codec import key_encoder
from penstock.core.records.rowkey import row_of
from penstock.core.records.schema import Scalar, Schema

__all__ = ["RowSource", "Rows", "table_for"]

T = TypeVar("T")
D = TypeVar("D")


class RowSource(Protocol):
    """Where an engine keeps the rows of a whole table, by their keys on the log."""

    def get(self, key: bytes) -> Any | None:
        """Return the row of a key, or None."""

    def values(self) -> Sequence[Any]:
        """Return all rows as they are now."""

    def __len__(self) -> int:
        """Return how many rows there are."""


class Rows(Generic[T]):
    """The rows of a broadcast table: all of them, as they are now, on every worker.

    Ask for them by annotation, and read the table with ``broadcast``. Before the first record is
    handled, all rows are there that the table had when the worker began. What changes later holds
    soon, at no certain record. A key is the value of the key field, or a tuple of several.

    Examples:
        >>> from penstock.tables import broadcast
        >>> @record(key="device")
        ... class Limit:
        ...     device: str
        ...     celsius: float
        >>> limits = app.table("limits", Limit)
        >>> @app.service(reads=(readings, broadcast(limits)), writes=alarms)
        ... def above(reading: Reading, limits: Rows[Limit]) -> Alarm | None:
        ...     limit = limits.get(reading.device)
        ...     if limit and reading.celsius > limit.celsius:
        ...         return Alarm(reading.device, f"above {limit.celsius} °C")
        >>> from penstock.testing import Driver
        >>> driver = Driver(app)
        >>> driver.pipe(limits, Limit("boiler", 60.0))
        >>> driver.pipe(readings, Reading("boiler", datetime(2026, 1, 1, tzinfo=UTC), 71.5))
        >>> driver.read(alarms)
        [Alarm(device='boiler', text='above 60.0 °C')]
    """

    __slots__ = ("_key", "_source")

    def __init__(self, source: RowSource, schema: Schema) -> None:
        self._source = source
        self._key = _key_of(schema)

    @overload
    def get(self, key: Any) -> T | None: ...
    @overload
    def get(self, key: Any, default: D) -> T | D: ...
    def get(self, key: Any, default: Any = None) -> Any:
        """Return the row of a key, or the default; TypeError if it is not of the key's type."""
        found = self._source.get(self._key(key))
        return default if found is None else found

    def values(self) -> Sequence[T]:
        """Return all rows, in no order."""
        return self._source.values()

    def __getitem__(self, key: Any) -> T:
        """Return the row of a key; KeyError if there is none."""
        found: T | None = self._source.get(self._key(key))
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: Any) -> bool:
        """Return whether there is a row of this key."""
        return self._source.get(self._key(key)) is not None

    def __iter__(self) -> Iterator[T]:
        """Return an iterator over all rows, in no order."""
        return iter(self._source.values())

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._source)


def table_for(name: str, kind: Any, tables: Iterable[Table[Any]]) -> Table[Any] | None:
    """Return the table whose rows a parameter asks for: that of its type, or of several its name.

    None: there is none.
    """
    of_type = [table for table in tables if table.record.cls is kind]
    named = [table for table in of_type if table.name == name]
    return next(iter(named or of_type), None) if len(of_type) == 1 or named else None


def _key_of(schema: Schema) -> Callable[[Any], bytes]:
    encode = key_encoder(schema)
    if encode is None:
        raise TypeError(f"{schema.name} has no key")
    field = schema.field(schema.key[0])
    if len(schema.key) > 1 or field is None or field.type != Scalar("text"):
        return lambda key: encode(row_of(schema, key))

    def of_text(key: Any) -> bytes:
        if type(key) is not str:
            row_of(schema, key)  # which says why it refuses
        return bytes(key.encode())

    return of_text
