"""Rows sent in batches: those that are refused are found by halves, the others are sent once."""

from collections.abc import Callable, Mapping, Sequence

from penstock.connectors.connector import Row, RowsRefusedError

__all__ = ["Halves"]


class Halves:
    """Sends the rows of batches, and remembers which were taken until their batch is done.

    ``send`` gets rows of one partition. It returns a text where they were refused as a whole, and
    else the words for each that was refused, by its place among them. It raises what ends the
    attempt: the same batch is given again then, and what was taken is left out.
    """

    def __init__(self, send: Callable[[int, Sequence[Row]], str | Mapping[int, str]]) -> None:
        self._send = send
        self._taken: set[tuple[int, int]] = set()

    def write(self, partition: int, rows: Sequence[Row]) -> None:
        """Send a batch; RowsRefusedError names the rows that were refused."""
        refused: dict[int, str] = {}
        self._try(partition, list(enumerate(rows)), refused)
        if refused:
            raise RowsRefusedError(refused)
        self._taken.clear()

    def _try(
        self, partition: int, rows: Sequence[tuple[int, Row]], refused: dict[int, str]
    ) -> None:
        left = [(n, row) for n, row in rows if (partition, row.offset) not in self._taken]
        if not left:
            return
        said = self._send(partition, [row for _, row in left])
        if not isinstance(said, str):
            refused.update({left[place][0]: words for place, words in said.items()})
            taken = (row for place, (_, row) in enumerate(left) if place not in said)
            self._taken.update((partition, row.offset) for row in taken)
        elif len(left) == 1:
            refused[left[0][0]] = said
        else:
            middle = len(left) // 2
            self._try(partition, left[:middle], refused)
            self._try(partition, left[middle:], refused)
