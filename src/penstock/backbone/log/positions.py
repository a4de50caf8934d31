"""Durable positions of readers that are not members of a consumer group.

A position is kept as the committed offsets of a group that never has members, so a transaction
can move it together with the records it writes: both happen or neither.
"""

import time
from dataclasses import dataclass, field
from functools import lru_cache

import confluent_kafka
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from penstock.backbone.client.admin import Admin, topic_partitions
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.contact import LOG
from penstock.backbone.client.failures import cause, failure
from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.errors import ConfigurationError, PenstockError, TransientError

__all__ = [
    "POSITION_PREFIX",
    "ConsumerGroup",
    "PositionReader",
    "PositionStore",
    "memberless",
    "position_group",
]

POSITION_PREFIX = "penstock.position."

_LOOK_INTERVAL = 0.02
_ASK_SECONDS = 5.0
"""How long one client is asked. One that has lost its coordinator with a broker may wait on it for
ever: then a new one asks."""


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group as a transaction needs it: its name, and who speaks for it (opaque)."""

    name: str
    metadata: bytes = field(repr=False)


def position_group(name: str) -> str:
    """Return the name of the group that keeps a position."""
    return POSITION_PREFIX + name


@lru_cache(maxsize=256)
def memberless(group: str) -> ConsumerGroup:
    """Return a group that has no members; its offsets move only by transactions and by hand."""
    # Only a client can make the metadata; without an address this one connects to nothing.
    consumer = confluent_kafka.Consumer({"group.id": group})
    try:
        return ConsumerGroup(group, consumer.consumer_group_metadata())
    finally:
        consumer.close()


class PositionStore:
    """Reads and moves positions. The topics that a position names must exist."""

    def __init__(self, connection: Connection) -> None:
        self._admin = Admin(connection)

    def read(self, name: str) -> dict[Partition, int]:
        """Return the position; empty if there is none.

        A transaction that is moving it is waited for, at most the request timeout; then
        TransientError ``position.unstable``. Taking over its producer first ends it at once.
        """
        group = position_group(name)
        deadline = time.monotonic() + self._admin.timeout
        while (found := committed_offsets(self._admin, group, stable=True)) is None:
            if time.monotonic() > deadline:
                raise TransientError(
                    f"group {group} is being moved by a transaction that does not end",
                    code="position.unstable",
                )
            time.sleep(_LOOK_INTERVAL)
        return found

    def move(self, name: str, offsets: Offsets) -> None:
        """Set the position, outside any transaction."""
        alter_offsets(self._admin, position_group(name), offsets)

    def forget(self, name: str) -> None:
        """Delete the position; nothing happens if there is none."""
        delete_group(self._admin, position_group(name))


class PositionReader:
    """Reads one position again and again, with a client of its own: about a millisecond each."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._bootstrap = connection.bootstrap
        self._doing = f"reading the position {name}"
        self._timeout = connection.settings.request_timeout.total_seconds()
        # Committed means that a transaction that is moving it is waited for.
        options = {"group.id": position_group(name), "isolation.level": "read_committed"}
        self._options = connection.client_config() | options
        self._consumer = self._client()

    def read(self, partition: Partition) -> int:
        """Return the position in a partition, -1 if there is none; see ``PositionStore.read``."""
        deadline = time.monotonic() + self._timeout
        patience = min(self._timeout, _ASK_SECONDS)
        while True:
            asked = time.monotonic()
            try:
                (at,) = self._consumer.committed([TopicPartition(*partition)], timeout=patience)
                if at.error is None:
                    return max(int(at.offset), -1)
                error = at.error
            except KafkaException as raised:
                error = cause(raised)
            if time.monotonic() - asked >= patience:
                self._begin_anew()
            if time.monotonic() > deadline:
                raise failure(error, doing=self._doing, bootstrap=self._bootstrap)
            time.sleep(_LOOK_INTERVAL)

    def close(self) -> None:
        """Release the client."""
        self._consumer.close()

    def _client(self) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(self._options, logger=LOG)

    def _begin_anew(self) -> None:
        former, self._consumer = self._consumer, self._client()
        former.close()


def committed_offsets(admin: Admin, group: str, *, stable: bool) -> dict[Partition, int] | None:
    """Return the committed offsets of any group; empty for one that does not exist.

    With ``stable`` None while a transaction is moving them, else what they were before it.
    """
    doing = f"reading the offsets of group {group}"
    wanted = [ConsumerGroupTopicPartitions(group)]
    _await_coordinator(admin, group, doing=doing)
    answer = admin.ask(
        lambda: admin.client.list_consumer_group_offsets(
            wanted, require_stable=stable, request_timeout=admin.timeout
        ),
        doing=doing,
    )[group]
    found = {}
    for at in answer.topic_partitions or []:
        if at.error is not None:
            if at.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
                return None
            raise admin.failure(at.error, doing=doing)
        if at.offset >= 0:
            found[at.topic, at.partition] = at.offset
    return found


def _await_coordinator(admin: Admin, group: str, *, doing: str) -> None:
    """Return when the group's coordinator answers.

    The client crashes the process when it is asked for all offsets of a group whose coordinator is
    still loading (librdkafka issue 5040); asked for those of one partition, it says so.
    """
    consumer = confluent_kafka.Consumer(
        admin.connection.client_config() | {"group.id": group}, logger=LOG
    )
    deadline = time.monotonic() + admin.timeout
    try:
        while True:
            try:
                consumer.committed([TopicPartition(group, 0)], timeout=admin.timeout)
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise admin.failure(cause(error), doing=doing) from error
                time.sleep(_LOOK_INTERVAL)
            else:
                return
    finally:
        consumer.close()


def alter_offsets(admin: Admin, group: str, offsets: Offsets) -> None:
    """Set committed offsets of a group that has no members now."""
    if not offsets:
        return
    doing = f"moving group {group}"
    wanted = [ConsumerGroupTopicPartitions(group, topic_partitions(offsets))]
    answer = admin.ask(
        lambda: admin.client.alter_consumer_group_offsets(wanted, request_timeout=admin.timeout),
        doing=doing,
    )[group]
    for at in answer.topic_partitions or []:
        if at.error is not None:
            raise _refused(admin, group, at.error, doing=doing)


def delete_group(admin: Admin, group: str) -> None:
    """Delete a group without members, with its offsets."""
    doing = f"deleting group {group}"
    futures = admin.client.delete_consumer_groups([group], request_timeout=admin.timeout)
    outcome = admin.outcome(futures[group], doing=doing)
    if isinstance(outcome, KafkaError) and outcome.code() != KafkaError.GROUP_ID_NOT_FOUND:
        raise _refused(admin, group, outcome, doing=doing)


def _refused(admin: Admin, group: str, error: KafkaError, *, doing: str) -> PenstockError:
    if error.code() not in {KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID}:
        return admin.failure(error, doing=doing)
    return ConfigurationError(
        f"{doing}: it has members",
        code="group.busy",
        hint=f"stop the consumers of {group}, then try again",
    )
