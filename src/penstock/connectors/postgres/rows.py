"""Rows as PostgreSQL sends them, to values of Python; keys, and the texts of keys in positions."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.connectors.postgres.address import client

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.adapt import AdaptersMap

__all__ = ["KEY_TYPES", "Loader", "use_plain_values"]

KEY_TYPES = {
    "int2": "",
    "int4": "",
    "int8": "",
    "numeric": "",
    "text": ' COLLATE "C"',
    "varchar": ' COLLATE "C"',
    "uuid": "",
    "date": "",
    "timestamp": "",
    "timestamptz": "",
    "bytea": "",
}
"""Types of keys whose order is the same here, and how the server is told to order them."""

_PLAIN = ("uuid", "inet", "cidr", "interval", "time", "timetz")
"""Types that become texts, because records have no values of such types."""
_TEXTS = ("text", "varchar")


def use_plain_values(adapters: "AdaptersMap") -> None:
    """Let rows of a connection have values that records can hold."""
    text, in_utc = _loaders()
    for name in _PLAIN:
        adapters.register_loader(name, text)
    adapters.register_loader("timestamp", in_utc)


@cache
def _loaders() -> tuple[type, type]:
    psycopg = client()
    from psycopg.types.datetime import TimestampLoader
    from psycopg.types.string import TextLoader

    class InUtc(TimestampLoader):
        """An instant without a zone is one in UTC."""

        def load(self, data: Any) -> datetime:
            return super().load(data).replace(tzinfo=UTC)

    del psycopg
    return TextLoader, InUtc


class Loader:
    """Values of columns of certain types, from the texts that the server sends."""

    def __init__(self, connection: "Connection[Any]", types: Sequence[int]) -> None:
        psycopg = client()
        from psycopg.adapt import Transformer

        self._transformer = Transformer(connection)
        self._transformer.set_loader_types(list(types), psycopg.pq.Format.TEXT)
        self.load = self._transformer.load_sequence
