"""A document that is fetched again and again as a source: what it holds when it has changed."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias

import msgspec

from penstock.connectors.connector import WHOLE, Item, Position
from penstock.connectors.http.exchange import Answer, Endpoint, Exchange, read_endpoint
from penstock.connectors.options import ConnectorOptions
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, DataError, Problem

__all__ = ["HttpPoll", "http_poll"]

Split: TypeAlias = Literal["body", "lines", "json"]
_SPLITS: tuple[Split, ...] = ("body", "lines", "json")
_AT_ONCE = 1_000
_OK, _NOT_MODIFIED = 200, 304


class PollPlace(msgspec.Struct, frozen=True):
    """Which version of the document was read, and how many of its items."""

    digest: str
    count: int
    whole: bool = False
    etag: str | None = None
    modified: str | None = None


class PolledItem(Item, frozen=True):
    """A piece of a version of the document."""

    last: bool = False
    trouble: str = ""

    def fault(self) -> DataError | None:
        """Return why it cannot become a record."""
        return DataError(self.trouble, code="data.not-json") if self.trouble else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPoll:
    """A URL that is asked again and again; :func:`http_poll` makes it."""

    endpoint: Endpoint
    every: timedelta
    items: Split
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: Literal[False] = field(default=False, init=False)
    grows: Literal[True] = field(default=True, init=False)

    def describe(self) -> str:
        """Return what it reads, for people."""
        return f"what {self.endpoint.shown} answers, every {self.every.total_seconds():g} s"

    def splits(self) -> Sequence[str]:
        """Return the only split."""
        return (WHOLE,)

    def open(
        self, _split: str, position: Position | None, *, clock: Callable[[], float] = time.monotonic
    ) -> "PollReading":
        """Go on behind what was read of the document."""
        return PollReading(self, position, clock)

    def attempt(self, part: Source | Sink) -> str:
        """Fetch the document once, and use nothing of it."""
        exchange = Exchange(self.endpoint)
        try:
            answer = _require_document(exchange.ask("GET"))
        finally:
            exchange.close()
        return f"it answers {part.name} with {len(answer.body)} bytes"


class PollReading:
    """One pass over all versions of the document."""

    ended = False

    def __init__(
        self, spec: HttpPoll, position: Position | None, clock: Callable[[], float]
    ) -> None:
        self._spec, self._clock = spec, clock
        self._exchange = Exchange(spec.endpoint)
        self._place = PollPlace("", 0, whole=True) if position is None else _load(position)
        self._due_at = clock()
        self._waiting: list[PolledItem] = []

    def read(self) -> list[PolledItem]:
        """Return the next items; asks the server where it is time to."""
        if not self._waiting and self._clock() >= self._due_at:
            self._due_at = self._clock() + self._spec.every.total_seconds()
            self._fetch()
        found, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
        if found and found[-1].last:
            self._place = msgspec.structs.replace(self._place, whole=True)
        return found

    def position_after(self, item: Item) -> Position:
        """Return the version, and how many of its items were read."""
        if not isinstance(item, PolledItem):
            raise TypeError("no item of a document")
        place = msgspec.structs.replace(self._place, count=item.at + 1, whole=item.last)
        return msgspec.to_builtins(place)

    def close(self) -> None:
        """Close the connection."""
        self._exchange.close()

    def _fetch(self) -> None:
        place, headers = self._place, {}
        if place.whole and place.etag:
            headers["If-None-Match"] = place.etag
        elif place.whole and place.modified:
            headers["If-Modified-Since"] = place.modified
        answer = self._exchange.ask("GET", headers=headers)
        if answer.status == _NOT_MODIFIED:
            return
        _require_document(answer)
        known = {name.lower(): value for name, value in answer.headers.items()}
        digest = hashlib.blake2b(answer.body, digest_size=16).hexdigest()
        same = digest == place.digest
        self._place = PollPlace(
            digest, place.count, same and place.whole, known.get("etag"), known.get("last-modified")
        )
        if same and place.whole:
            return
        pieces = self._pieces(answer.body)
        done = place.count if same else 0
        self._waiting = [
            PolledItem(content, number, number == len(pieces) - 1, trouble)
            for number, (content, trouble) in enumerate(pieces)
            if number >= done
        ]
        if not self._waiting:
            self._place = msgspec.structs.replace(self._place, whole=True)

    def _pieces(self, body: bytes) -> list[tuple[bytes, str]]:
        if self._spec.items == "lines":
            return [(line, "") for line in body.splitlines() if line]
        if self._spec.items == "json":
            try:
                return [(bytes(each), "") for each in msgspec.json.decode(body, type=_RAWS)]
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                return [(body, f"the answer is no JSON array: {error}")]
        return [(body, "")]


_RAWS = list[msgspec.Raw]


def http_poll(
    url: str,
    *,
    every: str | timedelta = "1m",
    items: Split = "body",
    headers: dict[str, str] | None = None,
    timeout: str | timedelta = "10s",
    largest: str | int = "16MiB",
) -> HttpPoll:
    """Fetch a URL again and again, and read what it answers when that has changed, exactly once.

    With the server's ``ETag`` or ``Last-Modified`` an unchanged document is not sent again; without
    either it is compared. Each version that was fetched is read once, all of it; versions between
    two requests are not seen. While the server is away or says later, the source is degraded.

    Args:
        url: What is fetched, or a reference to it.
        every: How long to wait between two requests.
        items: What an item is: ``"body"``, the whole document; ``"lines"``; or ``"json"``, the
            elements of a JSON array.
        headers: Headers of each request; a value may be a reference, and one that is a secret must
            be.
        timeout: How long the server may be silent.
        largest: How large a document may be.

    Examples:
        >>> stations = http_poll("https://example.org/stations.json", items="json", every="5m")
        >>> app.source("stations", stations, into=readings).summary
        'source, what example.org answers, every 300 s'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("http_poll", problems)
    return HttpPoll(
        endpoint=read_endpoint(options, url, headers, timeout, largest),
        every=options.positive_span("every", every, timedelta(minutes=1)),
        items=options.word("items", items, _SPLITS, "body"),
        problems=tuple(problems),
    )


def _require_document(answer: Answer) -> Answer:
    if answer.status != _OK:
        raise ConfigurationError(
            f"the URL gives no document: {answer.words}",
            code="connector.refused",
            hint="look at the URL and at the headers; a redirection is not followed",
        )
    return answer


def _load(position: Position) -> PollPlace:
    try:
        return msgspec.convert(position, PollPlace)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"{position!r} is not a position of a document: {error}",
            code="source.position",
            hint="another connector wrote it: give the source another name",
        ) from error
