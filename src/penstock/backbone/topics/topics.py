"""Topics as declared against topics as they are: created, compared, changed when asked for."""

import difflib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from confluent_kafka import KafkaError, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its __init__ re-exports
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)

from penstock.backbone.client.admin import Admin, Replicas
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.failures import unreachable
from penstock.backbone.topics.changes import TopicChange, apply_differences, create_topics
from penstock.backbone.topics.contradictions import TopicState, contradiction, differences
from penstock.backbone.topics.range import Instant
from penstock.core.topic import TopicSpec
from penstock.errors import ConfigurationError

__all__ = ["TopicChange", "TopicState", "Topics"]

_DECLARED_SETTINGS = frozenset(TopicSpec(name="any").config())
_INTERNAL_PREFIXES = ("__", "_penstock.")
_LOOK_INTERVAL = 0.05
_SETTLING = "waiting for the new topics"


class Topics:
    """The topics of one cluster. Every call is bounded by the request timeout of its settings."""

    def __init__(self, connection: Connection) -> None:
        self._admin = Admin(connection)

    def list(self, *, internal: bool = False) -> Sequence[TopicState]:
        """Return all topics by name; Kafka's own and Penstock's only with ``internal``."""
        found = self._admin.topics()
        return self._states(
            {name: found[name] for name in sorted(found) if internal or not _is_internal(name)}
        )

    def exists(self, name: str) -> bool:
        """Return whether there is such a topic."""
        return name in self._admin.topics()

    def describe(self, name: str) -> TopicState:
        """Return one topic; if there is none, ConfigurationError ``topic.missing``."""
        if states := self._existing([name]):
            return states[name]
        near = difflib.get_close_matches(name, self._admin.topics(), n=1)
        raise ConfigurationError(
            f"there is no topic {name!r} on {self._admin.connection.bootstrap}",
            code="topic.missing",
            detail=f"did you mean {near[0]!r}?" if near else "",
            hint="penstock topics list",
        )

    def declare(
        self, specs: Sequence[TopicSpec], *, change: bool = False, repartition: bool = False
    ) -> Sequence[TopicChange]:
        """Make the topics as declared and return what was done: nothing, the second time.

        A topic that exists otherwise is an error, ``topic.contradiction``, that shows all
        differences of all topics, and then nothing was done. With ``change`` they are applied;
        partitions are never taken away, and added to a topic with keys only with ``repartition``.
        Several processes may declare the same at once.
        """
        wanted = {spec.name: spec for spec in specs}
        if len(wanted) < len(set(specs)):
            raise ConfigurationError(
                "a topic is declared twice, in different ways", code="topic.declared-twice"
            )
        settled = self._settle(wanted, change=change, repartition=repartition)
        missing = {name: spec for name, spec in wanted.items() if name not in settled}
        created = create_topics(self._admin, missing.values())
        if missing:
            self._await(lambda: self._usable(missing), doing=_SETTLING)
        raced = {name: spec for name, spec in missing.items() if name not in created}
        settled |= self._settle(raced, change=change, repartition=repartition)
        return [
            *(TopicChange(topic=name, action="created") for name in created),
            *(done for changes in settled.values() for done in changes),
        ]

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics with all their records, and wait until their names are free."""
        gone = sorted(set(names))
        if not gone:
            return
        doing = f"deleting {', '.join(gone)}"
        futures = self._admin.client.delete_topics(
            gone, request_timeout=self._admin.timeout, operation_timeout=self._admin.timeout
        )
        self._admin.answers(futures, doing=doing)
        self._await(lambda: not set(gone) & set(self._admin.topics()), doing=doing)

    def identity(self, topic: str) -> str:
        """Return the id that the cluster gave the topic: another one after it was made again."""
        found = self._admin.ask(
            lambda: self._admin.client.describe_topics(TopicCollection([topic])),
            doing=f"describing topic {topic}",
        )
        return str(found[topic].topic_id)

    def shapes(self, names: Collection[str]) -> dict[str, tuple[str, int]]:
        """Return the id and the number of partitions of those of the topics that exist."""
        there = sorted(self._admin.topics().keys() & set(names))
        if not there:
            return {}
        found = self._admin.ask(
            lambda: self._admin.client.describe_topics(TopicCollection(there)),
            doing=f"describing topics {', '.join(there)}",
        )
        return {name: (str(each.topic_id), len(each.partitions)) for name, each in found.items()}

    def ends(self, topic: str, *, committed: bool = False) -> dict[int, tuple[int, int]]:
        """Return the first and the next offset of each partition.

        ``committed``: the end is what readers of committed records reach now.
        """
        partitions = [(topic, number) for number in range(self.describe(topic).partitions)]
        found = self._admin.ends(partitions, committed=committed)
        return {number: ends for (_, number), ends in found.items()}

    def all_ends(
        self, topics: Iterable[TopicState], *, committed: bool = False
    ) -> dict[str, dict[int, tuple[int, int]]]:
        """Return the first and the next offset of each partition of several topics, at once."""
        wanted = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for (name, number), ends in self._admin.ends(wanted, committed=committed).items():
            found.setdefault(name, {})[number] = ends
        return found

    def offsets_at(self, topic: str, instant: datetime) -> dict[int, int]:
        """Return for each partition the offset of the first record not before the instant.

        A partition without such a record gives its end.
        """
        ends = self.ends(topic)
        spec = OffsetSpec.for_timestamp(Instant(instant).milliseconds)
        found = self._admin.offsets(
            {(topic, number): spec for number in ends},
            committed=False,
            doing=f"looking for {instant.isoformat()} in {topic}",
        )
        return {
            number: offset if offset >= 0 else ends[number][1]
            for (_, number), offset in found.items()
        }

    def trim(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Delete the records before the given offsets, as retention would."""
        parts = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        self._admin.ask(
            lambda: self._admin.client.delete_records(
                parts, request_timeout=self._admin.timeout, operation_timeout=self._admin.timeout
            ),
            doing=f"trimming {topic}",
        )

    def _existing(self, names: Iterable[str]) -> dict[str, TopicState]:
        found = self._admin.topics()
        return {
            state.name: state
            for state in self._states({name: found[name] for name in names if name in found})
        }

    def _states(self, found: Mapping[str, Sequence[Replicas]]) -> Sequence[TopicState]:
        if not found:
            return []
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in found]
        described = self._admin.ask(
            lambda: self._admin.client.describe_configs(
                resources, request_timeout=self._admin.timeout
            ),
            doing="reading the settings of topics",
        )
        configs = {resource.name: _config(entries) for resource, entries in described.items()}
        return [
            TopicState(
                name=name,
                partitions=len(partitions),
                replication=min((len(each.brokers) for each in partitions), default=0),
                config=configs[name],
                internal=_is_internal(name),
            )
            for name, partitions in found.items()
        ]

    def _settle(
        self, wanted: Mapping[str, TopicSpec], *, change: bool, repartition: bool
    ) -> dict[str, Sequence[TopicChange]]:
        """Compare what exists with what is wanted, and change it if asked; return what exists."""
        states = self._existing(wanted) if wanted else {}
        found = {
            name: differences(wanted[name], state, repartition=change and repartition)
            for name, state in states.items()
        }
        every = [difference for several in found.values() for difference in several]
        if any(not change or difference.obstacle for difference in every):
            raise contradiction(every)
        done: dict[str, Sequence[TopicChange]] = {
            name: apply_differences(self._admin, several) for name, several in found.items()
        }
        if every:
            changed = {name: wanted[name] for name, several in found.items() if several}
            self._await(lambda: self._as_declared(changed), doing=_SETTLING)
        return done

    def _as_declared(self, wanted: Mapping[str, TopicSpec]) -> bool:
        """Whether topics that exist are seen to be what they were changed to."""
        states = self._existing(wanted)
        return not any(differences(wanted[name], states[name]) for name in wanted)

    def _usable(self, names: Iterable[str]) -> bool:
        """Whether every partition of these topics has a leader that answers for it."""
        found = self._admin.topics()
        wanted = {name: found.get(name, []) for name in names}
        if not all(each and all(one.leader >= 0 for one in each) for each in wanted.values()):
            return False
        answers = self._admin.client.list_offsets(
            {
                TopicPartition(name, number): OffsetSpec.latest()  # type: ignore[no-untyped-call]
                for name, each in wanted.items()
                for number in range(len(each))
            },
            request_timeout=self._admin.timeout,
        )
        outcomes = [self._admin.outcome(each, doing=_SETTLING) for each in answers.values()]
        return not any(isinstance(outcome, KafkaError) for outcome in outcomes)

    def _await(self, condition: Callable[[], bool], *, doing: str) -> None:
        """Wait until the metadata of the cluster show what was done to it."""
        deadline = time.monotonic() + self._admin.timeout
        while not condition():
            if time.monotonic() > deadline:
                raise unreachable(
                    doing=doing,
                    bootstrap=self._admin.connection.bootstrap,
                    reason=f"not seen within {self._admin.timeout:g}s",
                )
            time.sleep(_LOOK_INTERVAL)


def _is_internal(name: str) -> bool:
    return name.startswith(_INTERNAL_PREFIXES)


def _config(entries: Mapping[str, ConfigEntry]) -> dict[str, str]:
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG
    return {
        name: entry.value or ""
        for name, entry in sorted(entries.items())
        if name in _DECLARED_SETTINGS or ConfigSource(entry.source) is own
    }
