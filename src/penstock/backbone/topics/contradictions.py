"""Where a topic that exists differs from its declaration, and what can be done about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from penstock.core.topic import TopicSpec
from penstock.core.units import duration_text, size_text
from penstock.errors import ConfigurationError

__all__ = ["Difference", "TopicState", "contradiction", "differences"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic as it is. ``config`` has what was set for it, and what a declaration would set."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str]
    internal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One setting of one topic, as declared and as it is.

    ``obstacle`` says why it cannot be applied; empty: it can, when asked for.
    """

    topic: str
    setting: str
    declared: str
    existing: str
    obstacle: str = ""

    def __str__(self) -> str:
        """Return both sides on one line, in readable units."""
        declared = _readable(self.setting, self.declared)
        existing = _readable(self.setting, self.existing)
        why = f"; {self.obstacle}" if self.obstacle else ""
        return f"{self.topic}: {self.setting} declared {declared}, existing {existing}{why}"


def differences(
    spec: TopicSpec, state: TopicState, *, repartition: bool = False
) -> list[Difference]:
    """Return every difference; none: the topic is as declared.

    A declaration that leaves the replication to the cluster agrees with any. Adding partitions to
    a topic with keys has an obstacle unless ``repartition`` accepts what it does to them.
    """
    found = []
    if spec.partitions != state.partitions:
        found.append(
            Difference(
                topic=spec.name,
                setting="partitions",
                declared=str(spec.partitions),
                existing=str(state.partitions),
                obstacle=_partition_obstacle(spec, state, repartition=repartition),
            )
        )
    if spec.replication is not None and spec.replication != state.replication:
        found.append(
            Difference(
                topic=spec.name,
                setting="replication",
                declared=str(spec.replication),
                existing=str(state.replication),
                obstacle="use Kafka's own tools to change the replication of an existing topic",
            )
        )
    found += [
        Difference(
            topic=spec.name, setting=name, declared=value, existing=state.config.get(name, "")
        )
        for name, value in spec.config().items()
        if not _same(name, value, state.config.get(name, ""))
    ]
    return found


def contradiction(found: Sequence[Difference]) -> ConfigurationError:
    """Return the error that shows both sides of every difference of every topic."""
    topics = sorted({difference.topic for difference in found})
    stuck = any(difference.obstacle for difference in found)
    return ConfigurationError(
        f"the declaration differs from existing topics: {', '.join(topics)}",
        code="topic.contradiction",
        detail="\n  ".join(str(difference) for difference in found),
        hint=(
            "declare the topic as it exists, or delete it with its records"
            if stuck
            else "penstock topics apply APP --change"
        ),
    )


def _partition_obstacle(spec: TopicSpec, state: TopicState, *, repartition: bool) -> str:
    if spec.partitions < state.partitions:
        return "Kafka cannot remove partitions, because their records would be lost"
    if spec.partitioning == "key" and not repartition:
        return (
            "with more partitions a key moves to another one, which breaks the order of its "
            "records and the state of the key; if you want that: "
            "penstock topics apply APP --change --repartition"
        )
    return ""


def _same(name: str, declared: str, existing: str) -> bool:
    if name == "cleanup.policy":
        return set(declared.split(",")) == set(existing.split(","))
    return declared == existing


def _readable(setting: str, value: str) -> str:
    if not value:
        return "nothing"
    if value == "-1":
        return "no limit"
    if setting == "retention.ms":
        return duration_text(timedelta(milliseconds=int(value)))
    if setting == "retention.bytes":
        return size_text(int(value))
    return value
