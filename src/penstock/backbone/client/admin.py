"""Calls to the cluster that always end: with an answer, or with an error after the time-out."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its __init__ re-exports
    AdminClient,
    ListOffsetsResultInfo,
    OffsetSpec,
)

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.contact import LOG
from penstock.backbone.client.failures import cause, failure, unreachable
from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.errors import PenstockError, TransientError

__all__ = ["Admin", "Replicas", "topic_partitions"]

K = TypeVar("K")
T = TypeVar("T")

_FIRST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_NEXT = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_PASSING = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)
"""Errors of a broker that is starting, or taking over the work of another."""
_ASK_AGAIN_SECONDS = 0.05
_GRACE = 2.0
"""Seconds beyond the request's own time-out until we stop waiting for an answer."""


def topic_partitions(offsets: Offsets) -> list[TopicPartition]:
    """Return offsets in the client's words, in order."""
    return [TopicPartition(topic, number, at) for (topic, number), at in sorted(offsets.items())]


class Replicas(NamedTuple):
    """Where one partition is kept; ``leader`` is -1 while it has none."""

    leader: int
    brokers: tuple[int, ...]


class Admin:
    """Administrative calls: metadata, offsets, and everything that returns futures."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.timeout = connection.settings.request_timeout.total_seconds()

    @cached_property
    def client(self) -> AdminClient:
        """The client itself, made when it is first needed.

        It has seen the cluster before anything else is asked: a client that has not sometimes takes
        seconds to find the leaders of partitions.
        """
        client = AdminClient(self.connection.client_config(), logger=LOG)
        try:
            client.list_topics(timeout=self.timeout)
        except KafkaException as error:
            raise self.failure(cause(error), doing="asking for the list of topics") from error
        return client

    def failure(self, error: KafkaError, *, doing: str) -> PenstockError:
        """Return the error to raise for what the client reports."""
        return failure(error, doing=doing, bootstrap=self.connection.bootstrap)

    def outcome(self, future: "Future[T]", *, doing: str) -> T | KafkaError:
        """Wait for one answer, which may be a refusal; raise only if there is none in time."""
        try:
            return future.result(self.timeout + _GRACE)
        except KafkaException as error:
            return cause(error)
        except TimeoutError as error:
            raise unreachable(
                doing=doing,
                bootstrap=self.connection.bootstrap,
                reason=f"no answer within {self.timeout:g}s",
            ) from error

    def answer(self, future: "Future[T]", *, doing: str) -> T:
        """Wait for one answer; raise the error it is, or the one for no answer in time."""
        outcome = self.outcome(future, doing=doing)
        if isinstance(outcome, KafkaError):
            raise self.failure(outcome, doing=doing)
        return outcome

    def answers(self, futures: "Mapping[K, Future[T]]", *, doing: str) -> dict[K, T]:
        """Wait for several answers; raise the first error."""
        return {name: self.answer(future, doing=doing) for name, future in futures.items()}

    def ask(self, question: "Callable[[], Mapping[K, Future[T]]]", *, doing: str) -> dict[K, T]:
        """Return the answers to a request that may be repeated.

        It is repeated, until the time-out, while a leader or a coordinator is starting.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            futures = question()
            answers: dict[K, T] = {}
            errors: list[KafkaError] = []
            for name, future in futures.items():
                outcome = self.outcome(future, doing=doing)
                if isinstance(outcome, KafkaError):
                    errors.append(outcome)
                else:
                    answers[name] = outcome
            if not errors:
                return answers
            lasting = [error for error in errors if error.code() not in _PASSING]
            if lasting or time.monotonic() > deadline:
                raise self.failure((lasting or errors)[0], doing=doing)
            time.sleep(_ASK_AGAIN_SECONDS)

    def topics(self) -> dict[str, list[Replicas]]:
        """Return for each topic that exists its partitions, by number."""
        try:
            metadata = self.client.list_topics(timeout=self.timeout)
        except KafkaException as error:
            raise self.failure(cause(error), doing="asking for the list of topics") from error
        return {
            name: [
                Replicas(leader=partition.leader, brokers=tuple(partition.replicas))
                for _, partition in sorted(found.partitions.items())
            ]
            for name, found in metadata.topics.items()
            # A topic that is being made or deleted may show no partitions.
            if found.error is None and found.partitions
        }

    def offsets(
        self, wanted: Mapping[Partition, Any], *, committed: bool, doing: str
    ) -> dict[Partition, int]:
        """Return the offsets that the specifications (``OffsetSpec``) stand for; -1: there is none.

        ``committed`` asks for the last stable offset where the end is wanted: what a reader of
        committed records can reach.
        """
        if not wanted:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = {TopicPartition(*partition): spec for partition, spec in wanted.items()}

        def question() -> "Mapping[TopicPartition, Future[ListOffsetsResultInfo]]":
            return self.client.list_offsets(
                asked, isolation_level=level, request_timeout=self.timeout
            )

        found = self.ask(question, doing=doing)
        return {(at.topic, at.partition): info.offset for at, info in found.items()}

    def ends(
        self, partitions: list[Partition], *, committed: bool = False
    ) -> dict[Partition, tuple[int, int]]:
        """Return the first and the next offset of each partition."""
        doing = "reading the ends of " + ", ".join(sorted({topic for topic, _ in partitions}))
        lows = self.offsets(dict.fromkeys(partitions, _FIRST), committed=committed, doing=doing)
        highs = self.offsets(dict.fromkeys(partitions, _NEXT), committed=committed, doing=doing)
        if any(low < 0 or highs[partition] < low for partition, low in lows.items()):
            raise TransientError(
                f"{doing}: the broker does not know them yet",
                code="kafka.failed",
                detail=f"{highs}",
            )
        return {partition: (lows[partition], highs[partition]) for partition in partitions}
