"""A topic of another Kafka cluster as a source: each record once, by the offsets of its partitions.

One consumer reads all partitions, and gives each split what is its own. It keeps no group: the
offsets are positions of the source, committed with the records on the log.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from penstock.connectors.connector import AWAY, Item, Position
from penstock.connectors.kafka.address import Address, Mechanism, read_address
from penstock.connectors.options import ConnectorOptions
from penstock.core.graph.parts import Sink, Source
from penstock.core.topic import topic_name_problem
from penstock.errors import ConfigurationError, DataError, Problem, TransientError

if TYPE_CHECKING:
    from penstock.backbone.client.logrecord import RawRecord

__all__ = ["KafkaTopic", "kafka_topic"]

_AT_ONCE = 2_000


class KafkaItem(Item, frozen=True):
    """A record of a topic; ``at`` is its offset."""

    wrong: DataError | None = None

    def fault(self) -> DataError | None:
        """Return why it cannot become a record."""
        return self.wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopic:
    """A topic of another cluster; :func:`kafka_topic` makes it."""

    topic: str
    address: Address
    start: str
    whole: bool
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: Literal[False] = field(default=False, init=False)

    def describe(self) -> str:
        """Return what it reads, for people."""
        return f"topic {self.topic} of another Kafka"

    @contextmanager
    def attach(self) -> Iterator["Partitions"]:
        """Read all partitions with one consumer, until it is closed."""
        partitions = Partitions(self)
        try:
            yield partitions
        finally:
            partitions.close()

    def open(self, split: str, position: Position | None) -> "PartitionReading":
        """Read one partition without being attached; see :meth:`attach`."""
        return Partitions(self).open(split, position, alone=True)

    def attempt(self, part: Source | Sink) -> str:
        """Ask for the partitions of the topic."""
        with _reached():
            ends = Partitions(self).ends()
        count = sum(high - low for low, high in ends.values())
        return f"{part.name}: {len(ends)} partitions, {count} offsets"


class Partitions:
    """All partitions of a topic, read by one consumer."""

    grows = True

    def __init__(self, spec: KafkaTopic) -> None:
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.topics import Topics

        connection = spec.address.connection()
        self._spec = spec
        self._reader, self._topics = LogReader(connection), Topics(connection)
        self._first: int | None = None
        """How many partitions there were when they were counted first."""
        self._resumes = False
        """Whether a partition has been read by a former run."""
        self._starts: dict[int, int] = {}
        self._batches: Iterator[Sequence[RawRecord]] | None = None
        self._taken: defaultdict[int, deque[RawRecord]] = defaultdict(deque)

    def ends(self) -> dict[int, tuple[int, int]]:
        """Return the first and the next offset of each partition."""
        return self._topics.ends(self._spec.topic, committed=True)

    def splits(self) -> Sequence[str]:
        """Return the numbers of the partitions; this also finds out whether the cluster is away."""
        with _reached():
            count = self._topics.describe(self._spec.topic).partitions
        if self._first is None:
            self._first = count
        return [str(number) for number in range(count)]

    def open(
        self, split: str, position: Position | None, *, alone: bool = False
    ) -> "PartitionReading":
        """Go on in a partition; all others are read on from where they are."""
        if not split.isdecimal() or not (position is None or type(position) is int):
            raise ConfigurationError(
                f"{position!r} is no position of a partition of Kafka",
                code="source.position",
                hint="another connector wrote it: give the source another name",
            )
        number, at = int(split), position
        if at is None:
            with _reached():
                low, high = self.ends()[number]
            # A partition that was added since is read from its beginning, wherever one starts.
            added = self._resumes or (self._first is not None and number >= self._first)
            at = low if added or self._spec.start == "earliest" else high
        self._resumes |= position is not None
        self._starts[number] = at
        self._forget()
        return PartitionReading(self, number, at, begins=position is None, alone=alone)

    def take(self, number: int) -> list["RawRecord"]:
        """Return what has come of a partition."""
        own = self._taken[number]
        if not own:
            self._pull()
        found = list(islice(own, _AT_ONCE))
        for _ in found:
            own.popleft()
        if found:
            self._starts[number] = (found[-1].offset() or 0) + 1
        return found

    def close(self) -> None:
        """Close the consumer."""
        self._forget()

    def _pull(self) -> None:
        with _reached():
            if self._batches is None:
                self._batches = self._open()
            for raw in next(self._batches, ()):
                self._taken[raw.partition() or 0].append(raw)

    def _open(self) -> "Iterator[Sequence[RawRecord]]":
        from penstock.backbone.topics.range import Offset

        numbers = sorted(self._starts)
        return self._reader.batches(
            self._spec.topic,
            start=Offset(dict(self._starts)),
            partitions=numbers,
            follow=True,
            waits=False,
        )

    def _forget(self) -> None:
        """Let the consumer go; what it gave too early is read again."""
        batches, self._batches = self._batches, None
        self._taken.clear()
        close = getattr(batches, "close", None)
        if close is not None:
            close()


class PartitionReading:
    """One pass over one partition."""

    ended = False

    def __init__(
        self, partitions: Partitions, number: int, at: int, *, begins: bool, alone: bool
    ) -> None:
        self._partitions, self._number, self._at = partitions, number, at
        self._begins, self._alone = begins, alone

    def read(self) -> list[KafkaItem]:
        """Return the next records."""
        return [self._item(raw) for raw in self._partitions.take(self._number)]

    def position_after(self, item: Item) -> Position:
        """Return the offset behind a record."""
        self._begins = False
        return item.at + 1

    def moved(self) -> Position | None:
        """Return where the partition is begun, once: what comes after it is not passed over."""
        begins, self._begins = self._begins, False
        return self._at if begins else None

    def close(self) -> None:
        """Close the consumer, or leave it to whoever opened it."""
        if self._alone:
            self._partitions.close()

    def _item(self, raw: "RawRecord") -> KafkaItem:
        at, value = raw.offset() or 0, raw.value()
        if not self._partitions._spec.whole:  # noqa: SLF001 - of this module
            if value is None:
                text = "it deletes the row of a key: whole=True gives parse the key"
                return KafkaItem(raw.key() or b"", at, DataError(text, code="source.no-row"))
            return KafkaItem(value, at)
        try:
            content: dict[str, Any] = {
                "key": _text(raw.key()),
                "value": _text(value),
                "headers": dict(raw.headers() or ()),
                "partition": self._number,
                "offset": at,
                "written_at": _written_at(raw),
            }
        except UnicodeDecodeError as error:
            text = f"key or value is not UTF-8: {error}"
            return KafkaItem(value or b"", at, DataError(text, code="data.not-utf8"))
        return KafkaItem(content, at)


def kafka_topic(
    topic: str,
    *,
    bootstrap: str,
    user: str | None = None,
    password: str | None = None,
    mechanism: Mechanism = "SCRAM-SHA-512",
    tls: bool = False,
    authority: str | None = None,
    start: Literal["earliest", "latest"] = "earliest",
    whole: bool = False,
    timeout: str | timedelta = "10s",
) -> KafkaTopic:
    """Read a topic of another Kafka cluster, exactly once.

    Only committed records are read. The offset of each partition is committed with the records on
    the log of this application; the other cluster keeps nothing, and nothing is written there.
    Offsets that retention has deleted before they were read stop the source (``offset.trimmed``).

    Args:
        topic: The name of the topic.
        bootstrap: ``host:port`` of some brokers, with commas between them. Or a reference.
        user: Who logs in (SASL).
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        mechanism: How one logs in.
        tls: Whether connections are encrypted.
        authority: With TLS: the file of the authority that signed the brokers' certificates, in
            PEM; None: those that the system knows.
        start: Where partitions are begun that the source has not read yet.
        whole: Whether an item is a dict of key, value, headers, partition, offset and written_at,
            rather than the value.
        timeout: How long a request may take.

    Examples:
        >>> theirs = kafka_topic("orders", bootstrap="kafka.example:9093", tls=True)
        >>> app.source("theirs", theirs, into=readings).summary
        'source, topic orders of another Kafka'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("kafka_topic", problems)
    name: Any = topic
    if not isinstance(name, str) or topic_name_problem(name):
        options.wrong("topic", f"{name!r} is no name of a topic", 'kafka_topic("orders")')
        name = "unknown"
    return KafkaTopic(
        topic=name,
        address=read_address(
            options,
            bootstrap,
            user=user,
            password=password,
            mechanism=mechanism,
            tls=tls,
            authority=authority,
            timeout=timeout,
        ),
        start=options.word("start", start, ("earliest", "latest"), "earliest"),
        whole=options.flag("whole", whole),
        problems=tuple(problems),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _written_at(raw: "RawRecord") -> Any:
    from penstock.backbone.client.logrecord import log_record

    return log_record(raw).timestamp_at


@contextmanager
def _reached() -> Iterator[None]:
    """Say of a cluster that does not answer that it is away: it is waited for without an end."""
    try:
        yield
    except TransientError as error:
        raise TransientError(f"the other Kafka: {error.message}", code=AWAY) from error
