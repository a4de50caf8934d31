"""Gives dead letters back to the streams they came from, each once, and remembers which.

A transaction holds the records and the mark of the letters that they were, so that a letter is
given back once, whatever ends the giving. The marks are on a topic of their own. Whoever gives
back takes over from whoever did before, and only then reads what is marked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import OnLog
from penstock.core.graph.graph import Graph
from penstock.core.records.codec import JsonCodec
from penstock.core.records.deadletter import GIVEN_BACK, Coordinates, DeadLetter, read_letter
from penstock.core.topic import TopicSpec
from penstock.errors import ConfigurationError, DataError

__all__ = [
    "MOST",
    "VERDICTS",
    "Choice",
    "Giving",
    "Verdict",
    "give_back",
    "given_back",
    "plan",
    "read_record_place",
]

MOST = 100_000
"""The most letters that are given back at once; the oldest first."""
MOST_TIMES = 3
"""A record that failed again after it was given back so often goes back only when told to."""
_IN_TRANSACTION = 500
_SHOWN = 20

Verdict = Literal["back", "done", "unreadable", "round", "cut", "outside", "nobody"]
VERDICTS: Mapping[Verdict, str] = {
    "back": "can be given back",
    "done": "were given back before",
    "unreadable": "are still no records of their stream: they would fail again",
    "round": f"failed again after they were given back {MOST_TIMES} times",
    "cut": "hold no whole record: a timer, a result, or what was too large",
    "outside": "came from outside the log: their source has to read them again",
    "nobody": "belong to a part or a stream that the application does not have any more",
}
"""What becomes of letters, in words."""


class LetterPlace(NamedTuple):
    """Where a letter stands on the dead-letter topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which letters are meant: all of those that are named. ``again``: whatever failed often."""

    part: str | None = None
    code: str | None = None
    record: Coordinates | None = None
    """Only letters of the record that stood there."""
    most: int = MOST
    again: bool = False

    def wants(self, letter: DeadLetter) -> bool:
        """Return whether a letter is one of those."""
        return (
            self.part in (None, letter.part)
            and self.code in (None, letter.code)
            and self.record in (None, letter.coordinates)
        )


@dataclass(kw_only=True)
class Giving:
    """What is given back, or would be: how many letters by verdict, and who gets them."""

    counts: Counter[Verdict] = field(default_factory=Counter)
    to: Counter[str] = field(default_factory=Counter)
    """Records by the stream that they go to; several parts may have failed on one."""
    readers: dict[str, list[str]] = field(default_factory=dict)
    """The parts that read these streams: each gets the record once more."""
    examples: dict[Verdict, list[tuple[DeadLetter, str]]] = field(default_factory=dict)
    """Some letters by verdict, with more words on why."""
    more: bool = False
    """Whether there are more than the choice takes at once."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "counts": {verdict: self.counts[verdict] for verdict in get_args(Verdict)},
            "words": {name: VERDICTS[name] for name, count in self.counts.items() if count},
            "to": dict(self.to),
            "readers": self.readers,
            "more": self.more,
            "examples": {
                verdict: [
                    {
                        "record": str(letter.coordinates),
                        "part": letter.part,
                        "code": letter.code,
                        "given_back": letter.given_back,
                        "why": why,
                    }
                    for letter, why in several
                ]
                for verdict, several in self.examples.items()
            },
        }


def marks_topic(graph: Graph) -> TopicSpec:
    """Return the topic that remembers which letters were given back; it is never trimmed."""
    return TopicSpec(
        name=f"{graph.app}.given-back", partitions=1, retention=None, partitioning="round_robin"
    )


def given_back(graph: Graph, connection: Connection) -> set[LetterPlace]:
    """Return the places of the letters that were given back, on the dead-letter topic."""
    topics, letters, marks = Topics(connection), graph.dead_letters.name, marks_topic(graph).name
    if not topics.exists(marks) or not topics.exists(letters):
        return set()
    identity = topics.identity(letters)
    found: set[LetterPlace] = set()
    for record in LogReader(connection).read(marks, when_trimmed="skip"):
        mark = _MARKS.decode(record.value or b"{}")
        if mark.of == identity:
            found |= {LetterPlace(mark.partition, offset) for offset in mark.offsets}
    return found


def plan(graph: Graph, connection: Connection, choice: Choice) -> Giving:
    """Return what :func:`give_back` would do; nothing is written."""
    giving = Giving()
    for _ in _judged(graph, connection, choice, giving):
        pass
    return giving


def give_back(graph: Graph, connection: Connection, choice: Choice) -> Giving:
    """Write the records of dead letters to their streams again, with a header that says so.

    Each letter is given back once, also where this ends early or is called twice at once: then one
    of the calls fails with FencedError. TransientError: call it again, it goes on with the rest.
    """
    spec = marks_topic(graph)
    if not Topics(connection).exists(graph.dead_letters.name):
        return Giving()
    Topics(connection).declare([spec])
    giving = Giving()
    with TransactionalProducer(connection, f"{graph.app}.give-back") as producer:
        identity = Topics(connection).identity(graph.dead_letters.name)
        found = _judged(graph, connection, choice, giving)
        while several := list(islice(found, _IN_TRANSACTION)):
            producer.begin()
            for _, letter, data in several:
                if data is not None:
                    _send(producer, letter, data)
            for mark in _marks(identity, [place for place, _, _ in several]):
                producer.send(spec.name, key=None, value=_ENCODER.encode(mark))
            producer.commit()
    return giving


def _send(producer: TransactionalProducer, letter: DeadLetter, data: OnLog) -> None:
    own = [each for each in letter.headers if each[0] != GIVEN_BACK]
    producer.send(
        data.topic.name,
        key=letter.key,
        value=letter.value,
        headers=[*own, (GIVEN_BACK, str(letter.given_back + 1).encode())],
        partition=data.topic.partitioning,
    )


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Letters that were given back; ``of`` is the id of the topic that they are on."""

    of: str = ""
    partition: int = 0
    offsets: list[int] = []
    at: str = ""


_ENCODER = msgspec.json.Encoder()
_MARKS = msgspec.json.Decoder(_Mark)


def _marks(identity: str, places: Iterable[LetterPlace]) -> Iterator[_Mark]:
    offsets: dict[int, list[int]] = {}
    for place in places:
        offsets.setdefault(place.partition, []).append(place.offset)
    for partition, found in offsets.items():
        yield _Mark(
            of=identity, partition=partition, offsets=found, at=datetime.now(UTC).isoformat()
        )


def _judged(
    graph: Graph, connection: Connection, choice: Choice, giving: Giving
) -> Iterator[tuple[LetterPlace, DeadLetter, OnLog | None]]:
    """Yield the letters that can be given back, and count all in ``giving``.

    Several parts may have failed on one record: it goes back once, with the first of its letters.
    """
    if not Topics(connection).exists(graph.dead_letters.name):
        return
    done, judge = given_back(graph, connection), _Judge(graph, choice)
    gone: set[Coordinates] = set()
    for record in LogReader(connection).read(graph.dead_letters.name, when_trimmed="skip"):
        letter = read_letter(record.key, record.value, record.headers)
        if not choice.wants(letter):
            continue
        place = LetterPlace(record.partition, record.offset)
        verdict, why, data = ("done", "", None) if place in done else judge.of(letter)
        if verdict == "back" and giving.counts["back"] >= choice.most:
            giving.more = True
            return
        giving.counts[verdict] += 1
        examples = giving.examples.setdefault(verdict, [])
        if len(examples) < _SHOWN:
            examples.append((letter, why))
        if data is None:
            continue
        first = letter.coordinates not in gone
        if first:
            gone.add(letter.coordinates)
            giving.to[data.name] += 1
            giving.readers.setdefault(data.name, _readers(graph, data))
        yield place, letter, data if first else None


def _readers(graph: Graph, data: OnLog) -> list[str]:
    return [part.name for part in graph.parts if data.name in {each.name for each in part.inputs}]


class _Judge:
    """Says of letters whether they can be given back now."""

    def __init__(self, graph: Graph, choice: Choice) -> None:
        self._again = choice.again
        self._streams = {data.topic.name: data for data in graph.on_log}
        self._codecs: dict[str, JsonCodec[Any]] = {}
        self._reads = {part.name: {each.name for each in part.inputs} for part in graph.parts}

    def of(self, letter: DeadLetter) -> tuple[Verdict, str, OnLog | None]:
        """Return what becomes of a letter, why, and the stream that it goes to."""
        place = letter.coordinates
        data = self._streams.get(place.topic)
        if letter.part in self._reads and data is None:
            return "outside", place.topic, None
        if data is None or data.name not in self._reads.get(letter.part, ()):
            return "nobody", f"{letter.part} does not read {place.topic}", None
        if not letter.whole or place.offset < 0:
            return "cut", "", None
        if why := self._unreadable(letter, data):
            return "unreadable", why, None
        if letter.given_back >= MOST_TIMES and not self._again:
            return "round", f"{letter.given_back} times", None
        return "back", "", data

    def _unreadable(self, letter: DeadLetter, data: OnLog) -> str:
        """Return why a letter is no record of its stream; empty: it is one."""
        if letter.value is None and data.kind == "table":
            return ""
        codec = self._codecs.get(data.name)
        if codec is None:
            codec = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
            self._codecs[data.name] = codec
        try:
            codec.accept(letter.key, letter.value)
        except DataError as error:
            return error.message
        return ""


def read_record_place(text: str) -> Coordinates:
    """Return the place that a text such as ``words[0]@12`` names; else ConfigurationError."""
    head, _, offset = text.rpartition("@")
    topic, _, partition = head.removesuffix("]").rpartition("[")
    if topic and partition.isdecimal() and offset.isdecimal() and len(partition + offset) < 30:  # noqa: PLR2004
        return Coordinates(topic, int(partition), int(offset))
    raise ConfigurationError(
        f"{text!r} is no place of a record",
        code="record.place",
        hint="write TOPIC[PARTITION]@OFFSET",
    )
