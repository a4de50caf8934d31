"""The log below one service, on a broker."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.membership import Listener, Membership
from penstock.backbone.log.producer import SendLimits
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import Offset
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.settings.settings import ServiceSettings
from penstock.errors import PenstockError
from penstock.services.task.delivery import AtLeastOnce, AtMostOnce, ExactlyOnce
from penstock.services.task.servicelog import MarkingDelivery
from penstock.services.task.statedelivery import StateAtLeastOnce, StateAtMostOnce
from penstock.services.task.task import transactional_id

__all__ = ["KafkaServiceLog"]

_MOMENT = timedelta(seconds=2)
"""For questions whose answer is worth little when it comes late."""


class KafkaServiceLog:
    """The log below one service, on a broker."""

    def __init__(
        self, graph: Graph, service: Service, *, connection: Connection, settings: ServiceSettings
    ) -> None:
        self._group = f"{graph.app}.{service.name}"
        self._service = service
        self._connection = connection
        self._settings = settings
        self._limits = SendLimits(records=settings.outgoing_records)
        self._topics = Topics(connection)
        self._quick_topics = Topics(connection.within(_MOMENT))
        self._reader = LogReader(connection)
        self._member: Consumer | None = None

    def join(self, listener: Listener, *, poll_interval: timedelta) -> Consumer:
        """Return a new member of the service's group."""
        self._member = Consumer(
            self._connection,
            group=self._group,
            topics=[data.topic.name for data in self._service.reads],
            settings=self._settings,
            membership=Membership(
                # State needs the partitions of one number together.
                strategy="range" if len(self._service.reads) > 1 else "cooperative",
                # Where state is, it knows how far it is: that is committed once it is restored.
                commits_first=not self._service.keeps_state,
                poll_interval=poll_interval,
            ),
            listener=listener,
        )
        return self._member

    def at_end(self, partition: Partition, offset: int) -> bool:
        """Return whether the member last saw a partition end at this offset."""
        return self._current().at_end(partition, offset)

    def drained(self, partition: Partition, offset: int) -> bool:
        """Return whether the member last saw no record behind an offset."""
        return self._current().drained(partition, offset)

    def deliver(self, task: str) -> MarkingDelivery:
        """Make the delivery of a task."""
        promise = self._service.delivery
        if promise == "exactly_once":
            return self._transactions(task)
        if not self._service.keeps_state:
            kind = AtLeastOnce if promise == "at_least_once" else AtMostOnce
            return kind(self._connection, consumer=self._current, limits=self._limits)
        state = self._transactions(task)
        if promise == "at_least_once":
            return StateAtLeastOnce(self._connection, state=state, limits=self._limits)
        return StateAtMostOnce(
            self._connection, state=state, consumer=self._current, limits=self._limits
        )

    def identity(self, topic: str) -> str:
        """Return the id that the cluster gave the topic."""
        return self._topics.identity(topic)

    def shapes(self, topics: Collection[str]) -> Mapping[str, tuple[str, int]]:
        """Return the id and the number of partitions of those of the topics that exist."""
        return self._quick_topics.shapes(topics)

    def ends(self, topic: str, *, committed: bool = False) -> Mapping[int, tuple[int, int]]:
        """Return for each partition where it begins and where it ends."""
        return self._topics.ends(topic, committed=committed)

    def lag(self, positions: Offsets) -> int | None:
        """Return how many offsets there are behind positions; None: not known in a moment."""
        try:
            ends = {
                topic: self._quick_topics.ends(topic, committed=True)
                for topic in {topic for topic, _ in positions}
            }
        except PenstockError:  # the worker itself says what is wrong
            return None
        return sum(
            max(0, ends[topic][number][1] - at)
            for (topic, number), at in positions.items()
            if number in ends[topic]
        )

    def batches(
        self,
        topic: str,
        *,
        starts: Mapping[int, int],
        ends: Mapping[int, int] | None,
        stop: threading.Event,
    ) -> Iterator[Sequence[RawRecord]]:
        """Yield the committed records of partitions, many at a time, until ``stop`` is set."""
        return self._reader.batches(
            topic,
            start=Offset(starts),
            end=None if ends is None else Offset(ends),
            partitions=sorted(starts),
            follow=ends is None,
            stop=stop,
        )

    def _transactions(self, task: str) -> ExactlyOnce:
        return ExactlyOnce(
            self._connection,
            transactional_id=transactional_id(self._group, task),
            group=lambda: self._current().group,
            limits=self._limits,
            timeout=self._settings.transaction_timeout,
        )

    def _current(self) -> Consumer:
        if self._member is None:
            raise RuntimeError("only a member of the group commits")
        return self._member
