"""What is sent to OpenSearch for a batch of rows, and what its answer says of each; no I/O.

A document is known by its key, or by where its record lies. Its version is the offset of the record
and one: the server takes only newer ones, so what is written again changes nothing.
"""

from typing import Any

import msgspec

from penstock.connectors.connector import AWAY, Row
from penstock.core.printable import printable
from penstock.errors import ConfigurationError, DataError, PenstockError, TransientError

__all__ = ["Documents", "read_answer", "read_versions"]

_LONGEST_ID = 512
"""Bytes; OpenSearch takes no longer ones."""
_SHOWN = 300
_OK = range(200, 300)
_CONFLICT, _MISSING = 409, 404
_LATER = (408, 425, 429)
_FORBIDDEN = (401, 403)
_FAULTS = 500
_BLOCKED = "cluster_block_exception"
"""What a server says whose disk is nearly full, or that is being looked after."""
_NEWER = "version_conflict_engine_exception"
"""The same row was written before, or a newer one."""
_NO_INDEX = "index_not_found_exception"


class Documents:
    """The lines of a bulk request for the rows of one sink."""

    def __init__(self, index: str, *, topic: str, by_key: bool) -> None:
        self._index, self._topic, self._by_key = index, topic, by_key

    def lines(self, partition: int, row: Row) -> bytes:
        """Return what is sent for a row; DataError: it makes no document."""
        about = {
            "_index": self._index,
            "_id": self._id(partition, row),
            "version": row.offset + 1,
            "version_type": "external",
        }
        if row.change == "add":
            return msgspec.json.encode({"index": about}) + b"\n" + _source(row) + b"\n"
        return msgspec.json.encode({"delete": about}) + b"\n"

    def _id(self, partition: int, row: Row) -> str:
        if not self._by_key:
            if row.change != "add":
                raise _refused("a result was taken back, and documents are not known by key")
            return f"{self._topic}-{partition}-{row.offset}"
        key = row.key or b""
        if not 0 < len(key) <= _LONGEST_ID:
            raise _refused(f"its key has {len(key)} bytes, and an id has 1 to {_LONGEST_ID}")
        try:
            return key.decode()
        except UnicodeDecodeError as error:
            raise _refused("its key is no text in UTF-8") from error


def read_answer(body: bytes, count: int) -> dict[int, str]:
    """Return the words for each of so many rows that was refused, by its place.

    TransientError: the server took some, and says later to others. ConfigurationError: a person
    must act.
    """
    items = _object(body).get("items")
    if not isinstance(items, list) or len(items) != count:
        raise _strange(body)
    refused: dict[int, str] = {}
    for place, item in enumerate(items):
        said = next(iter(item.values()), None) if isinstance(item, dict) else None
        status = said.get("status") if isinstance(said, dict) else None
        if said is None or type(status) is not int:
            raise _strange(body)
        if words := _refusal(status, said.get("error"), deleting="delete" in item):
            refused[place] = words
    return refused


def read_versions(body: bytes, count: int) -> dict[int, int]:
    """Return the versions of so many documents that were asked for, of those that are there."""
    found = _object(body).get("docs")
    if not isinstance(found, list) or len(found) != count:
        raise _strange(body)
    versions: dict[int, int] = {}
    for place, each in enumerate(found):
        error = each.get("error") if isinstance(each, dict) else body
        if error is not None and _kind(error) != _NO_INDEX:
            raise _later(_words(_OK.start, error)) if isinstance(error, dict) else _strange(body)
        if each.get("found"):
            versions[place] = int(each["_version"])
    return versions


def _object(body: bytes) -> dict[str, Any]:
    """Return the object of an answer; TransientError: it is none."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict):
        raise _strange(body)
    return found


def _refusal(status: int, error: Any, *, deleting: bool) -> str:
    """Return why one row was refused; empty: it is written, or a newer one is."""
    kind = _kind(error)
    if status in _OK or (status == _CONFLICT and kind in ("", _NEWER)):
        return ""
    if status == _MISSING and deleting and error is None:
        return ""
    words = _words(status, error)
    if kind == _BLOCKED or status in _LATER or status >= _FAULTS:
        raise _later(words)
    if kind == _NO_INDEX or status in _FORBIDDEN:
        raise ConfigurationError(
            f"OpenSearch: {words}",
            code="connector.refused",
            hint="look at the index, and at what this user may do there",
        )
    return words


def _kind(error: Any) -> str:
    return str(error.get("type", "")) if isinstance(error, dict) else ""


def _words(status: int, error: Any) -> str:
    """Return the server's own words, from what happened to its first cause."""
    said: list[str] = []
    while isinstance(error, dict) and len(said) < 5:  # noqa: PLR2004 - it may go round
        said.append(": ".join(str(error[each]) for each in ("type", "reason") if error.get(each)))
        error = error.get("caused_by")
    if error is not None and not isinstance(error, dict):
        said.append(str(error))
    text = printable("; ".join(said))[:_SHOWN]
    return f"HTTP {status}{': ' if text else ''}{text}"


def _source(row: Row) -> bytes:
    """Return a document in one line; a line end in a record would end it."""
    return row.value if b"\n" not in row.value else bytes(msgspec.json.format(row.value, indent=-1))


def _refused(words: str) -> DataError:
    return DataError(f"no document: {words}", code="sink.refused")


def _later(words: str) -> PenstockError:
    return TransientError(f"OpenSearch: {words}", code=AWAY)


def _strange(body: bytes) -> PenstockError:
    text = printable(body[:_SHOWN].decode(errors="replace"))
    return TransientError(
        f"OpenSearch answers what it should not: {text}", code="connector.strange"
    )
