"""What a service's function gives, made ready to send: the stream, the key, the bytes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from penstock.core.graph.data import OnLog, Output
from penstock.core.graph.parts import Service
from penstock.core.graph.questions import Answer, question_headers
from penstock.core.records.codec import JsonCodec
from penstock.core.topic import FRAME_BYTES, Partitioning
from penstock.errors import DataError

__all__ = ["Outputs", "Send", "Sent"]

Sent: TypeAlias = tuple[
    str, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], Partitioning | None
]
"""Topic, key, value (None: a deletion), headers and partitioning (None: by key) of one output."""


class Send(Protocol):
    """Takes a record on its way to the log; what the producers of the backbone offer."""

    def __call__(
        self,
        topic: str,
        /,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | Partitioning | None = None,
    ) -> None:
        """Take one record."""


class _Route:
    """The way to one stream."""

    __slots__ = ("encode", "key", "max_bytes", "partitioning", "topic")

    def __init__(self, data: OnLog) -> None:
        codec = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
        self.topic = data.topic.name
        self.max_bytes = data.topic.max_record_bytes
        self.encode: Callable[[Any], bytes] = codec.encode_valid
        self.key: Callable[[Any], bytes | None] = codec.key
        self.partitioning: Partitioning | None = (
            "round_robin" if data.topic.partitioning == "round_robin" else None
        )


class Outputs:
    """Finds the stream for each record a service gives, by its type or its address.

    TypeError where there is none, in words for the author; DataError where a record cannot be
    encoded, or its readers would refuse it. Nothing is sent here, so a call that fails half-way has
    written nothing.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._by_name = {data.name: _Route(data) for data in service.writes}
        self._by_type: dict[type, _Route] = {}
        classes = [data.record.cls for data in service.writes]
        for data in service.writes:
            if classes.count(data.record.cls) == 1:
                self._by_type[data.record.cls] = self._by_name[data.name]

    def of(self, result: Any) -> list[Sent]:
        """Return everything that one call gave: None, a record, or an iterable of them."""
        if result is None:
            return []
        route = self._by_type.get(type(result))
        if route is not None:
            return [(route.topic, route.key(result), route.encode(result), (), route.partitioning)]
        if isinstance(result, Output):
            return [self._addressed(result)]
        if isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
            return [self._one(item) for item in result if item is not None]
        raise self._no_stream(result)

    def _one(self, item: Any) -> Sent:
        route = self._by_type.get(type(item))
        if route is not None:
            return (route.topic, route.key(item), route.encode(item), (), route.partitioning)
        if isinstance(item, Output):
            return self._addressed(item)
        raise self._no_stream(item)

    def _addressed(self, output: Output[Any]) -> Sent:
        route, record = self._by_name.get(output.to.name), output.record
        if route is None:
            raise TypeError(f"it sends to {output.to.name!r}, which is not in its writes=...")
        headers = _headers(output) if output.headers else ()
        if isinstance(output, Answer) and output.reply_to is not None and record is not None:
            own = question_headers(output.reply_to, keyed=False)
            headers = (*headers, *own.items())
            return (route.topic, output.reply_to.key, route.encode(record), headers, None)
        if record is None and output.row is not None:
            key = route.key(output.row)
            if key is not None and len(key) > route.max_bytes:
                raise _refused(output, f"its key has {len(key)} bytes")
            return (route.topic, key, None, headers, None)
        if record is None:
            raise TypeError(
                f"it sends None to {output.to.name!r}: delete({output.to.name}, key) deletes a row"
            )
        if type(record) is not output.to.record.cls:
            raise TypeError(
                f"it sends a {type(record).__name__} to {output.to.name!r}, "
                f"which holds {output.to.record.name}"
            )
        return (route.topic, route.key(record), route.encode(record), headers, route.partitioning)

    def _no_stream(self, item: Any) -> TypeError:
        name, written = type(item).__name__, self._service.writes
        if several := [data.name for data in written if data.record.cls is type(item)]:
            return TypeError(
                f"it gives a {name}, which {' and '.join(several)} hold: address it with send(...)"
            )
        shown = ", ".join(f"{data.name} ({data.record.name})" for data in written)
        return TypeError(f"it gives a {name}, and writes {shown or 'nothing'}")


def _headers(output: Output[Any]) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of an output as they are sent; DataError where the client would not."""
    found: list[tuple[str, bytes | None]] = []
    size = 0
    given: Mapping[Any, Any] = output.headers  # what the user's code makes of the annotation
    for name, value in given.items():
        if not isinstance(name, str) or "\x00" in name:
            raise _refused(output, f"{name!r} cannot name a header")
        if value is not None and not isinstance(value, bytes | str):
            kind = type(value).__name__
            raise _refused(output, f"its header {name!r} is of {kind}, and must be of bytes")
        try:
            sent = value.encode() if isinstance(value, str) else value
            size += len(name.encode()) + len(sent or b"")
        except UnicodeEncodeError as error:
            raise _refused(output, f"its header {name!r} is no text: {error}") from error
        found.append((name, sent))
    if size > FRAME_BYTES:
        raise _refused(output, f"its headers have {size} bytes; {FRAME_BYTES} can be sent")
    return tuple(found)


def _refused(output: Output[Any], why: str) -> DataError:
    return DataError(f"what it sends to {output.to.name!r}: {why}", code="data.not-encodable")
