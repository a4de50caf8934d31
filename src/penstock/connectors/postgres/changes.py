"""Changes of tables of PostgreSQL as a source: its options, and what must be there first."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from penstock.connectors.connector import WHOLE, Position
from penstock.connectors.opening import source_of
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.postgres.address import Address, explained, read_address
from penstock.connectors.postgres.reading import ChangesReading
from penstock.connectors.postgres.slot import Slot, inspect_server
from penstock.connectors.postgres.table import read_table
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

__all__ = ["PostgresChanges", "postgres_changes"]

_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")
_MOST_TABLES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresChanges:
    """Changes of tables of PostgreSQL; :func:`postgres_changes` makes it."""

    tables: tuple[str, ...]
    slot: str
    address: Address
    publication: str
    snapshot: bool
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: Literal[False] = field(default=False, init=False)
    gives_changes: Literal[True] = field(default=True, init=False)

    def describe(self) -> str:
        """Return what it reads, for people."""
        return f"changes of {', '.join(self.tables)} in PostgreSQL"

    @contextmanager
    def attach(self) -> Iterator["Changes"]:
        """Connect; what is read holds the connections until it is closed."""
        yield Changes(self)

    def attempt(self, part: Source | Sink) -> str:
        """Connect, and look at what changes need: the tables, the level of the log, the rights."""
        source = source_of(part)
        connection = self.address.connect(f"penstock source {source.name}")
        with explained(), connection:
            return inspect_server(connection, self.slot_definition)

    def open(self, split: str, position: Position | None) -> ChangesReading:
        """Read without being attached; see :meth:`attach`."""
        return Changes(self).open(split, position)

    @property
    def slot_definition(self) -> Slot:
        """Return what the server has to keep for this source."""
        return Slot(
            name=self.slot,
            publication=self.publication,
            tables=self.tables,
            snapshot=self.snapshot,
        )


class Changes:
    """What is read in one attempt: one split, with a connection of its own."""

    grows = True

    def __init__(self, connector: PostgresChanges) -> None:
        self._connector = connector
        self._reading: ChangesReading | None = None

    def splits(self) -> Sequence[str]:
        """Return the only split."""
        return [WHOLE]

    def open(self, split: str, position: Position | None) -> ChangesReading:
        """Go on at a position, or begin: what is there first, and then what changes."""
        if split != WHOLE:
            raise ConfigurationError(f"there is no split {split!r}", code="source.position")
        given = self._connector
        self._reading = ChangesReading(given.address, given.slot_definition, position)
        return self._reading

    def complaint(self) -> str:
        """Return what is wrong although changes come."""
        return self._reading.complaint if self._reading else ""

    def facts(self) -> dict[str, str]:
        """Return where it is."""
        return self._reading.facts if self._reading else {}


def postgres_changes(
    tables: str | tuple[str, ...],
    *,
    slot: str,
    address: str,
    password: str | None = None,
    publication: str | None = None,
    snapshot: bool = True,
    timeout: str | timedelta = "60s",
) -> PostgresChanges:
    """Follow the changes of tables of PostgreSQL: first the rows that are there, then what changes.

    Each change is on the log exactly once, in the order of its commit, without a gap between the
    rows that were there and what changed meanwhile. Rows of one table become records of a table
    without more: an update replaces, a deletion deletes. For anything else ``parse`` gets a
    ``Captured``. The server keeps what was not read yet, in a replication slot; drop the slot when
    the source is given up: ``SELECT pg_drop_replication_slot('...')``. It needs
    ``penstock[postgres]``.

    Args:
        tables: The table, or several: ``"shop.orders"``. Each needs a primary key.
        slot: The name of the replication slot, an identity: letters a to z, digits and ``_``.
        address: A connection string of libpq without a password, or a reference to one. The user
            needs the right to replicate and to read the tables.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        publication: The name of the publication; by default that of the slot. It is made where
            there is none.
        snapshot: Whether rows that are there at the beginning are read.
        timeout: How long one statement may take.

    Examples:
        >>> from penstock.connectors import postgres_changes
        >>> changes = postgres_changes(
        ...     "shop.alarms", slot="alarms", address="postgresql://penstock@db/shop"
        ... )
        >>> app.source("from_shop", changes, into=hot).name
        'from_shop'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("postgres_changes", problems)
    given: Any = tables
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, tuple | list) or not 0 < len(names) <= _MOST_TABLES:
        options.wrong("tables", f"{given!r} names no table", '"shop.orders", for example')
        names = ()
    qualified = tuple(_qualified(read_table(options, name)) for name in names)
    hint = 'slot="shop_orders", for example'
    for option, name in (("slot", slot), ("publication", publication)):
        if (option == "slot" or name is not None) and not _is_name(name):
            options.wrong(option, f"{name!r} is not a name of a to z, 0 to 9 and _", hint)
    return PostgresChanges(
        tables=qualified,
        slot=slot if _is_name(slot) else "unknown",
        address=read_address(options, address, password, timeout),
        publication=publication if publication is not None and _is_name(publication) else str(slot),
        snapshot=options.flag("snapshot", snapshot),
        problems=tuple(problems),
    )


def _is_name(given: object) -> bool:
    return isinstance(given, str) and _SLOT_NAME.fullmatch(given) is not None


def _qualified(parts: tuple[str, ...]) -> str:
    return ".".join(parts if len(parts) > 1 else ("public", *parts))
