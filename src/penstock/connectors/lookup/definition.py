"""A look-up as an application declares it, and what a store of rows implements."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar

from penstock.connectors.lookup.asking import OpenLookup
from penstock.connectors.lookup.cache import Ages, RowCache
from penstock.connectors.lookup.reading import RowReader
from penstock.connectors.lookup.store import StoreMaker
from penstock.connectors.options import ConnectorOptions
from penstock.core.place import caller
from penstock.core.records.record import RecordType, record_type
from penstock.errors import DefinitionError, Place, Problem

__all__ = ["Limits", "Lookup", "lookup", "made_lookup", "read_limits"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is kept, for how long, and how long is waited."""

    cache: int
    ages: Ages
    timeout: timedelta
    at_once: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Lookup(Generic[T]):
    """Rows of an outside store, by their keys; ``lookup``, ``postgres_lookup`` and so on make it.

    Examples:
        >>> known = redis_lookup("device:", record=Reading, address="redis://cache:6379")
        >>> isinstance(known, Lookup), known.describe()
        (True, 'Reading from keys device:* of Redis')
    """

    name: str
    """What the store is called in messages."""
    record: RecordType[T]
    keys: int
    """How many fields a key has."""
    limits: Limits
    connect: StoreMaker = field(repr=False)
    place: Place | None = field(default=None, repr=False)
    direction: ClassVar[str] = "look-up"

    def __deepcopy__(self, _: object) -> "Lookup[T]":
        """Return itself: nothing in it changes, so the copies of a service may share it."""
        return self

    def describe(self) -> str:
        """Return where rows come from, for people."""
        return f"{self.record.name} from {self.name}"

    async def open(self) -> OpenLookup[T]:
        """Return what is asked for rows; it connects when the first key is asked for."""
        return OpenLookup(
            self.connect,
            name=self.name,
            keys=self.keys,
            reader=RowReader(self.record),
            cache=RowCache(most=self.limits.cache, ages=self.limits.ages),
            timeout=self.limits.timeout,
            at_once=self.limits.at_once,
        )

    async def attempt(self) -> str:
        """Connect, and ask for no row; TransientError or ConfigurationError: what is wrong."""
        async with await self.open() as opened:
            await opened.attempt()
        return f"it answers: {self.describe()}"


def lookup(
    store: StoreMaker,
    *,
    record: type[T],
    name: str = "a store",
    cache: int = 10_000,
    fresh: str | timedelta = "1m",
    absent: str | timedelta = "1s",
    stale: str | timedelta = "0s",
    timeout: str | timedelta = "2s",
    at_once: int = 100,
) -> Lookup[T]:
    """Look up rows in a store of your own, from async services.

    Args:
        store: The function that connects, and returns what has ``fetch`` and ``close``.
        record: The type of the rows.
        name: What the store is called in messages.
        cache: How many rows are kept at most.
        fresh: How old a row that is kept may be.
        absent: How long it is remembered that there is no row.
        stale: How old a row may be while the store does not answer.
        timeout: How long an answer may take, connecting included.
        at_once: How many keys are asked for at once, at most.

    Examples:
        >>> class Nothing:
        ...     async def fetch(self, keys):
        ...         return [None for _ in keys]
        ...     async def close(self): ...
        >>> async def connect():
        ...     return Nothing()
        >>> lookup(connect, record=Reading, name="nothing").describe()
        'Reading from nothing'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("lookup", problems)
    ages = fresh, absent, stale
    limits = read_limits(options, cache=cache, ages=ages, timeout=timeout, at_once=at_once)
    given: Any = store
    if not callable(given):
        options.wrong("store", "it is not a function that connects", "store=connect")
    return made_lookup(
        options,
        problems,
        name=options.text("name", name, "a store", 'name="prices"'),
        record=record,
        keys=1,
        connect=store,
        limits=limits,
    )


def read_limits(
    options: ConnectorOptions,
    *,
    cache: Any,
    ages: tuple[Any, Any, Any],
    timeout: Any,
    at_once: Any,
) -> Limits:
    """Return the limits that people wrote; what is wrong with them is kept."""
    fresh, absent, stale = ages
    counted = Ages(
        fresh=options.span("fresh", fresh, timedelta(minutes=1)),
        absent=options.span("absent", absent, timedelta(seconds=1)),
        stale=options.span("stale", stale, timedelta()),
    )
    return Limits(
        cache=options.whole("cache", cache, 10_000, least=0, most=10_000_000),
        ages=counted,
        timeout=options.positive_span("timeout", timeout, timedelta(seconds=2)),
        at_once=options.whole("at_once", at_once, 100, least=1, most=10_000),
    )


def made_lookup(
    options: ConnectorOptions,
    problems: list[Problem],
    *,
    name: str,
    record: type[T],
    keys: int,
    connect: StoreMaker,
    limits: Limits,
) -> Lookup[T]:
    """Return a look-up; DefinitionError with all that is wrong with its options."""
    found = record_type(record)
    if found is None:
        options.wrong("record", f"{record!r} is no record type", "@record above its class")
    if problems or found is None:
        raise DefinitionError(tuple(problems))
    return Lookup(
        name=name, record=found, keys=keys, limits=limits, connect=connect, place=caller()
    )
