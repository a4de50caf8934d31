"""A member of a consumer group: thin over the client, batches in, offsets out.

The group's committed offsets are the only truth. Where one points at records that retention has
deleted the consumer stops loudly, or, where the settings say so, goes on behind them and tells its
listener how many offsets it left out: nothing is lost in silence.

Long because assignment, commits and the end of a client share its state and must be read together.
"""

# ruff: noqa: SLF001 - the client's own error names begin with an underscore

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self, cast

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from penstock.backbone.client.admin import Admin, topic_partitions
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.contact import LOG, Contact, take, within
from penstock.backbone.client.failures import beyond_end, cause, failure, trimmed, unreachable
from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.backbone.log.membership import Listener, Membership, consumer_config
from penstock.backbone.log.positions import ConsumerGroup
from penstock.backbone.log.startoffsets import find_starts
from penstock.core.settings.settings import ServiceSettings
from penstock.errors import PenstockError, TransientError

__all__ = ["Consumer"]


class Consumer:
    """Reads topics as a member of a group, committed records only, nothing committed by itself.

    Prefetching is bounded by ``settings.queued_bytes``. Not for several threads at once.

    Reading fails with ConfigurationError ``offset.trimmed`` (unless ``settings.on_trimmed`` is
    ``skip``) or ``offset.beyond-end`` when the group's offset is no longer in the log, and with
    TransientError when the cluster does not answer. Records may have been taken by then: close this
    consumer, and a new one starts from what was committed.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        group: str,
        topics: Sequence[str],
        settings: ServiceSettings | None = None,
        membership: Membership | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._membership = membership or Membership()
        self._listener = listener or Listener()
        self._group = group
        self._bootstrap = connection.bootstrap
        self._admin = Admin(connection)
        settings = settings or ServiceSettings()
        self._skips = settings.on_trimmed == "skip"
        self._contact = Contact(connection.bootstrap)
        self._starts: dict[Partition, int] = {}
        self._first_starts: dict[Partition, int] = {}
        self._ends: dict[Partition, int] = {}
        self._sought: set[Partition] = set()
        """Partitions that have not come to their end since they were last sought."""
        self._gaps: dict[Partition, int] = {}
        self._in_listener = False
        self._dead = False
        self._closed = False
        self._client = confluent_kafka.Consumer(
            consumer_config(
                connection,
                group=group,
                settings=settings,
                membership=self._membership,
            )
            | {"error_cb": self._contact.lost, "on_commit": _log_refused},
            logger=LOG,
        )
        self._client.subscribe(
            list(topics), on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
        )

    def consume(self, count: int, timeout: float) -> list[RawRecord]:
        """Return up to ``count`` records as soon as there is one; none after ``timeout`` seconds.

        Must be called again within the poll interval of the membership.
        """
        self._require_life()
        self._pass_gaps()
        try:
            messages = take(self._client, count=count, timeout=timeout)
        except KafkaException as error:
            raise self._failure(cause(error), doing="reading") from error
        if self._first_starts:
            self._commit_first_starts()
        records = [each for each in messages if each.error() is None]
        if len(records) < len(messages):
            self._check(messages)
        if messages:
            self._contact.kept()
        return cast("list[RawRecord]", records)

    def commit(self, offsets: Offsets) -> None:
        """Commit these offsets for the group, and wait for the result.

        Inside the listener they are only handed in, before anything else is said to the group: who
        gets the partitions next sees them, or reads the same records again.

        TransientError ``kafka.rebalanced``: the partitions belong to another member by now.
        ``kafka.unreachable``: nobody knows; close this consumer and make a new one.
        """
        self._require_life()
        if not offsets:
            return
        wanted = topic_partitions(offsets)
        doing = f"committing offsets of group {self._group}"
        try:
            if self._in_listener:
                self._client.commit(offsets=wanted, asynchronous=True)
                return
            done = within(
                lambda: self._client.commit(offsets=wanted, asynchronous=False),
                timeout=self._admin.timeout,
            )
        except KafkaException as error:
            raise self._failure(cause(error), doing=doing) from error
        except TimeoutError as error:
            # The client lets nobody in while that call lasts.
            self._dead = True
            reason = f"no answer within {self._admin.timeout:g}s"
            raise unreachable(doing=doing, bootstrap=self._bootstrap, reason=reason) from error
        for at in done:
            if at.error is not None:
                raise self._failure(at.error, doing=doing)

    def assignment(self) -> frozenset[Partition]:
        """Return the partitions that this member has now."""
        return frozenset(self._starts)

    def positions(self) -> dict[Partition, int]:
        """Return for each partition the offset after the last record that was handed over.

        At the end of a partition it is past what holds no records (transaction markers), so that a
        group that commits it has no lag.
        """
        self._require_life()
        wanted = [TopicPartition(*partition) for partition in self._starts]
        found = {(at.topic, at.partition): at.offset for at in self._client.position(wanted)}
        return {
            partition: found[partition] if found[partition] >= 0 else start
            for partition, start in self._starts.items()
        }

    def at_end(self, partition: Partition, offset: int) -> bool:
        """Return whether a partition was last seen to end at this offset."""
        return self._ends.get(partition) == offset

    def drained(self, partition: Partition, offset: int) -> bool:
        """Return whether a partition was last seen to end at this offset, or at marks behind it.

        To be asked when all records that were handed over are taken note of.
        """
        return partition not in self._sought and self._ends.get(partition, -1) >= offset

    def seek(self, offsets: Offsets) -> None:
        """Go on reading from these offsets, in partitions that are assigned."""
        self._require_life()
        for at in topic_partitions(offsets):
            try:
                self._client.seek(at)
            except KafkaException as error:
                raise self._failure(
                    cause(error), doing=f"seeking {at.topic}[{at.partition}]"
                ) from error
            self._starts[at.topic, at.partition] = at.offset
            self._sought.add((at.topic, at.partition))
            self._gaps.pop((at.topic, at.partition), None)

    def pause(self, partitions: Collection[Partition]) -> None:
        """Hand over no records of these partitions, and fetch none ahead, until resumed."""
        self._require_life()
        self._client.pause([TopicPartition(*partition) for partition in partitions])

    def resume(self, partitions: Collection[Partition]) -> None:
        """Hand over records of these partitions again."""
        self._require_life()
        self._client.resume([TopicPartition(*partition) for partition in partitions])

    @property
    def group(self) -> ConsumerGroup:
        """The group with this member's credentials, for a transaction's commit."""
        self._require_life()
        return ConsumerGroup(self._group, self._client.consumer_group_metadata())

    def trouble(self) -> str | None:
        """Return why the cluster cannot be reached, None if it can."""
        if self._dead:
            return f"Kafka at {self._bootstrap} did not answer a commit of group {self._group}"
        return self._contact.trouble(self._client)

    def close(self) -> None:
        """Tell the listener that the partitions are revoked, and leave the group.

        Leaving takes at most the request timeout, also when the cluster is away.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._starts:
                # Told here and not by the client: offsets committed now can be waited for.
                tell = self._listener.on_lost if self._dead else self._listener.on_revoke
                tell(list(self._starts))
        finally:
            self._starts.clear()
            try:
                within(self._client.close, timeout=self._admin.timeout)
            except TimeoutError:
                LOG.warning("group %s: left without an answer of the cluster", self._group)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _assign(self, client: confluent_kafka.Consumer, given: list[TopicPartition]) -> None:
        if self._dead or self._closed:
            return
        with self._listening():
            self._listener.before_assign([(at.topic, at.partition) for at in given])
        found = find_starts(client, self._admin, given, group=self._group)
        for partition, (wanted, low) in found.trimmed.items():
            self._skip(partition, wanted=wanted, low=low)
        first = found.first(self._membership.start)
        if self._membership.commits_first:
            self._first_starts.update(first)
        starts = found.committed | first
        if self._membership.strategy == "cooperative":
            client.incremental_assign(topic_partitions(starts))
        else:
            client.assign(topic_partitions(starts))
        self._starts.update(starts)
        with self._listening():
            self._listener.on_unread(found.unread)
            self._listener.on_assign(starts)

    def _commit_first_starts(self) -> None:
        """Commit where new partitions start, before any of their records is handed over.

        A member that dies before its first commit must not start again at a later "latest". It is
        tried once: later it could take back what a transaction has committed.
        """
        first, self._first_starts = self._first_starts, {}
        try:
            self.commit(first)
        except TransientError as error:
            if error.code != "kafka.rebalanced":
                raise
            LOG.info("group %s: first offsets not kept: %s", self._group, error.message)

    def _revoke(self, client: confluent_kafka.Consumer, taken: list[TopicPartition]) -> None:
        self._drop(client, taken, self._listener.on_revoke)

    def _lose(self, client: confluent_kafka.Consumer, taken: list[TopicPartition]) -> None:
        self._drop(client, taken, self._listener.on_lost)

    def _drop(
        self,
        client: confluent_kafka.Consumer,
        taken: list[TopicPartition],
        tell: Callable[[Collection[Partition]], None],
    ) -> None:
        partitions = [at for each in taken if (at := (each.topic, each.partition)) in self._starts]
        try:
            if partitions:
                with self._listening():
                    tell(partitions)
        finally:
            for partition in partitions:
                self._starts.pop(partition, None)
                self._ends.pop(partition, None)
                self._sought.discard(partition)
                self._gaps.pop(partition, None)
                self._first_starts.pop(partition, None)
            if self._membership.strategy == "cooperative":
                client.incremental_unassign(taken)
            else:
                client.unassign()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        self._in_listener = True
        try:
            yield
        finally:
            self._in_listener = False

    def _check(self, messages: list[Message]) -> None:
        """Raise the error in a message; the end of a partition is not an error."""
        for message in messages:
            error = message.error()
            if error is None:
                continue
            partition = (message.topic() or "", message.partition() or 0)
            if error.code() == KafkaError._PARTITION_EOF:
                self._ends[partition] = message.offset() or 0
                self._sought.discard(partition)
                continue
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                # Records before the gap come with this news: they are handled first.
                self._gaps[partition] = message.offset() or 0
                continue
            if error.code() == KafkaError._MAX_POLL_EXCEEDED:
                # Joining again follows by itself; the partitions are reported as lost.
                LOG.warning("group %s: %s", self._group, error.str())
                continue
            raise self._failure(error, doing=f"reading {partition[0]}[{partition[1]}]")

    def _pass_gaps(self) -> None:
        """Skip records that were next and are gone, if that is allowed."""
        while self._gaps:
            partition, wanted = self._gaps.popitem()
            low, high = self._admin.ends([partition])[partition]
            if wanted >= low:
                raise beyond_end(partition, wanted=wanted, high=high, group=self._group)
            self._skip(partition, wanted=wanted, low=low)
            self.seek({partition: low})

    def _skip(self, partition: Partition, *, wanted: int, low: int) -> None:
        """Skip what retention has deleted, if that is allowed."""
        if not self._skips:
            raise trimmed(partition, wanted=wanted, low=low, group=self._group)
        self._listener.on_skipped(partition, wanted, low)

    def _require_life(self) -> None:
        """Refuse to call a client that is stuck in a call, because that would block for ever."""
        if self._dead:
            raise TransientError(
                f"the consumer of group {self._group} has lost the cluster; create a new one",
                code="consumer.dead",
            )

    def _failure(self, error: KafkaError, *, doing: str) -> PenstockError:
        return failure(error, doing=doing, bootstrap=self._bootstrap)


def _log_refused(error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
    """Log offsets whose commit was refused while partitions moved: they are read again."""
    for at in offsets:
        if refused := error or at.error:
            LOG.info("offset %s of %s[%s]: %s", at.offset, at.topic, at.partition, refused.str())
