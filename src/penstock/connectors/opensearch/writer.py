"""Writes batches to OpenSearch: documents first, then the position behind them.

Documents that are written twice are the same, so the position may follow. It is a document of its
own with itself as version: the server takes it only if it is ahead of what is there, so a second
run of the sink is noticed.
"""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from penstock.connectors.connector import Row, RowsRefusedError
from penstock.connectors.http.exchange import Answer, Exchange
from penstock.connectors.http.halves import Halves
from penstock.connectors.opensearch.documents import Documents, read_answer, read_versions
from penstock.errors import ConfigurationError, DataError, TransientError

__all__ = ["DocumentsWriter"]

_REFUSED = (400, 413)
"""Answers that speak of the whole request."""
_TAKEN, _CONFLICT, _MISSING = (200, 201), 409, 404
_BULK = "_bulk?filter_path=items.*.status,items.*.error"
"""What is asked for, of all that the server says of each row."""
_LINES = {"Content-Type": "application/x-ndjson"}
_JSON = {"Content-Type": "application/json"}


class DocumentsWriter:
    """Writes for one sink."""

    def __init__(
        self,
        exchange: Exchange,
        documents: Documents,
        *,
        positions: str,
        name: str,
        partitions: int,
    ) -> None:
        self._exchange, self._documents = exchange, documents
        self._positions, self._name, self._partitions = positions, name, partitions
        self._lines: dict[int, bytes] = {}
        """What is sent for the batch that is written, by the offsets of its rows."""
        self._halves = Halves(self._post)
        self._written: dict[int, int] = {}

    def prepare(self) -> None:
        """Read what was written."""
        ids = [self._id(partition) for partition in range(self._partitions)]
        body = msgspec.json.encode({"ids": ids})
        answer = self._exchange.ask(
            "POST", below=f"{quote(self._positions, safe='')}/_mget", body=body, headers=_JSON
        )
        if answer.status == _MISSING:
            return  # nobody has written a position so far
        if answer.status not in _TAKEN:
            raise _unwilling(answer)
        self._written = read_versions(answer.body, self._partitions)

    def positions(self) -> dict[int, int]:
        """Return for each partition the offset behind what was written."""
        return dict(self._written)

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        """Write rows, then the position behind them."""
        self._lines = {}
        refused: dict[int, str] = {}
        for place, row in enumerate(rows):
            try:
                self._lines[row.offset] = self._documents.lines(partition, row)
            except DataError as error:
                refused[place] = error.message
        if refused:
            raise RowsRefusedError(refused)
        self._halves.write(partition, rows)
        self._move(partition, position)

    def close(self) -> None:
        """Close the connection."""
        self._exchange.close()

    def _post(self, partition: int, rows: Sequence[Row]) -> str | Mapping[int, str]:
        del partition
        body = b"".join(self._lines[row.offset] for row in rows)
        answer = self._exchange.ask("POST", below=_BULK, body=body, headers=_LINES)
        if answer.status in _TAKEN:
            return read_answer(answer.body, len(rows))
        if answer.status in _REFUSED:
            return answer.words
        raise _unwilling(answer)

    def _move(self, partition: int, position: int) -> None:
        """Write a position, if it is ahead of the one that is there."""
        place = f"{quote(self._positions, safe='')}/_doc/{quote(self._id(partition), safe='')}"
        answer = self._exchange.ask(
            "PUT",
            below=f"{place}?version_type=external&version={position}",
            body=msgspec.json.encode({"position": position}),
            headers=_JSON,
        )
        if answer.status == _CONFLICT:
            raise TransientError(
                f"another run of {self._name} has written in the meantime",
                code="sink.taken",
                hint="it goes on from what the other run wrote",
            )
        if answer.status not in _TAKEN:
            raise _unwilling(answer)
        self._written[partition] = position

    def _id(self, partition: int) -> str:
        return f"{self._name}:{partition}"


def _unwilling(answer: Answer) -> ConfigurationError:
    return ConfigurationError(
        f"OpenSearch does not take this: {answer.words}",
        code="connector.refused",
        hint="look at the address, the headers, and what this user may do",
    )
