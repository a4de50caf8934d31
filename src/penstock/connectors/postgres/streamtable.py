"""A table of the stream of changes: from messages to changes of its rows."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.connectors.captured import Captured, Kind
from penstock.connectors.postgres.pgoutput import UNCHANGED, Changed, Relation
from penstock.connectors.postgres.rows import Loader
from penstock.connectors.postgres.seen import Key
from penstock.connectors.postgres.slot import TableKey
from penstock.connectors.postgres.snapshot import key_loader
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["StreamTable"]

Told: TypeAlias = tuple[Callable[[], Key], Captured, str]
"""The key of a row, when somebody asks; what became of it; why that cannot be used, if so."""


class StreamTable:
    """A table with the columns that it has from a Relation on."""

    def __init__(
        self, connection: "Connection[Any]", name: str, relation: Relation, key: TableKey
    ) -> None:
        self.name = name
        self._names = [column.name for column in relation.columns]
        self._kinds = {column.name: column.type for column in relation.columns}
        self._load = Loader(connection, [column.type for column in relation.columns]).load
        if gone := [each for each in key.names if each not in self._kinds]:
            raise ConfigurationError(
                f"the key of {name} is ({', '.join(key.names)}) now, and was without {gone[0]}",
                code="source.key-changed",
                hint="a source of another name, with another slot, begins with all rows again",
            )
        self._key = key.names
        self._key_places = [self._names.index(each) for each in key.names]
        self._read_key = key_loader(connection, key)

    def differs_from(self, before: "StreamTable") -> str:
        """Return in words which columns are new, gone, or of another type; empty: none."""
        own, other = self._kinds, before._kinds  # noqa: SLF001 - of this class
        words = [f"{name} is new" for name in own if name not in other]
        words += [f"{name} is gone" for name in other if name not in own]
        words += [
            f"{name} has another type" for name in own if name in other and own[name] != other[name]
        ]
        return ", ".join(words)

    def changes(self, changed: Changed, at: datetime) -> Iterator[Told]:
        """Yield what became of rows; where a key has changed, one is gone and one is new."""
        now, before = changed.now, changed.before
        if now is None:
            if before is not None:
                old = self._old(changed)
                yield self._of(before), Captured("delete", self.name, None, old, at), ""
            return
        trouble = ""
        if UNCHANGED in now:
            now, trouble = self._completed(now, before if changed.whole else None)
        row = self._row(now)
        if before is None:
            kind: Kind = "update" if changed.updated else "insert"
            yield self._of(now), Captured(kind, self.name, row, None, at), trouble
            return
        old = self._old(changed)
        if any(now[place] != before[place] for place in self._key_places):
            yield self._of(before), Captured("delete", self.name, None, old, at), ""
            yield self._of(now), Captured("insert", self.name, row, None, at), trouble
            return
        yield self._of(now), Captured("update", self.name, row, old, at), trouble

    def _row(self, values: list[Any]) -> dict[str, Any]:
        return dict(zip(self._names, self._load(values), strict=True))

    def _old(self, changed: Changed) -> dict[str, Any]:
        """Return the row before; only its key, where the server says no more."""
        row = self._row(changed.before or [])
        return row if changed.whole else {name: row[name] for name in self._key}

    def _of(self, values: list[Any]) -> Callable[[], Key]:
        return lambda: self._read_key([values[place] for place in self._key_places])

    def _completed(self, now: list[Any], before: list[Any] | None) -> tuple[list[Any], str]:
        """Return a row with the large values that were not sent, from the row before."""
        if before is not None:
            return [
                old if value is UNCHANGED else value for value, old in zip(now, before, strict=True)
            ], ""
        lacking = [name for name, value in zip(self._names, now, strict=True) if value is UNCHANGED]
        return [None if value is UNCHANGED else value for value in now], (
            f"the server left out {', '.join(lacking)}, which is large and has not changed;"
            f" ALTER TABLE {self.name} REPLICA IDENTITY FULL lets it send the row before"
        )
