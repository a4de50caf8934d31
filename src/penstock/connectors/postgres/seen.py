"""Which changes a snapshot has seen already, so that the stream after it leaves them out; no I/O.

A table is read in the order of its key, in a transaction of its own. If that is interrupted,
another transaction reads the rest. Each saw what was committed before it, and nothing else: for
every key there is one, and a change is left out if that one saw its transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Key", "Look", "Seen"]

Key: TypeAlias = tuple[Any, ...]

_EPOCH = 1 << 32


@dataclass(frozen=True, slots=True)
class Look:
    """What one transaction that read rows could see.

    >>> look = Look.read("100:110:103,105", 7)
    >>> [look.saw(xid) for xid in (99, 102, 103, 110)]
    [True, True, False, False]
    """

    first: int
    """Every transaction before it had ended."""
    next: int
    """No transaction from it on had begun."""
    under_way: frozenset[int]
    end: int
    """Where the write-ahead log was: whatever commits behind it was not seen."""

    @classmethod
    def read(cls, text: str, end: int) -> "Look":
        """Return what ``pg_current_snapshot()`` says; ValueError where it is none."""
        first, last, under_way = text.split(":")
        return cls(
            int(first), int(last), frozenset(map(int, filter(None, under_way.split(",")))), end
        )

    @property
    def text(self) -> str:
        """Return it as the server writes it."""
        return f"{self.first}:{self.next}:{','.join(map(str, sorted(self.under_way)))}"

    def saw(self, xid: int) -> bool:
        """Return whether what a transaction did was seen; its number comes without its epoch."""
        whole = (self.next & ~(_EPOCH - 1)) | xid
        if whole > self.next + _EPOCH // 2:
            whole -= _EPOCH
        elif whole < self.next - _EPOCH // 2:
            whole += _EPOCH
        return whole < self.first or (whole < self.next and whole not in self.under_way)


class Seen:
    """For each table, which transaction read which keys, in their order."""

    def __init__(self, looks: Mapping[str, Sequence[tuple[Key | None, Look]]]) -> None:
        self._looks = {table: list(several) for table, several in looks.items() if several}
        self._end = max(
            (look.end for table in self._looks.values() for _, look in table), default=0
        )

    def __bool__(self) -> bool:
        """Return whether anything may still be left out."""
        return bool(self._looks)

    def pass_by(self, lsn: int) -> None:
        """Forget everything as soon as the stream is past all that was seen."""
        if lsn > self._end:
            self._looks.clear()

    def has(self, table: str, key: Key, xid: int) -> bool:
        """Return whether the row of a key was read after what this transaction did to it."""
        for up_to, look in self._looks.get(table, ()):
            if up_to is None or key <= up_to:
                return look.saw(xid)
        return False
