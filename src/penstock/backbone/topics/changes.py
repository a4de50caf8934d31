"""What a declaration does to a cluster: topics are created, and changed when asked for."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaError
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its __init__ re-exports
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from penstock.backbone.client.admin import Admin
from penstock.backbone.topics.contradictions import Difference
from penstock.core.topic import TopicSpec

__all__ = ["TopicChange", "apply_differences", "create_topics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """One thing that a declaration did; ``setting`` is empty for a topic that it created."""

    topic: str
    action: Literal["created", "changed"]
    setting: str = ""
    before: str = ""
    after: str = ""


def create_topics(admin: Admin, specs: Collection[TopicSpec]) -> list[str]:
    """Create topics; return the names of those that nobody else created meanwhile."""
    if not specs:
        return []
    futures = admin.client.create_topics(
        [
            NewTopic(
                spec.name,
                num_partitions=spec.partitions,
                replication_factor=spec.replication or admin.connection.settings.replication,
                config=spec.config(),
            )
            for spec in specs
        ],
        request_timeout=admin.timeout,
        operation_timeout=admin.timeout,
    )
    created = []
    for name, future in futures.items():
        doing = f"creating {name}"
        outcome = admin.outcome(future, doing=doing)
        if not isinstance(outcome, KafkaError):
            created.append(name)
        elif outcome.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise admin.failure(outcome, doing=doing)
    return created


def apply_differences(admin: Admin, found: Sequence[Difference]) -> list[TopicChange]:
    """Make one topic as it is declared; no difference may have an obstacle."""
    if not found:
        return []
    topic, doing = found[0].topic, f"changing {found[0].topic}"
    settings = {difference.setting: difference.declared for difference in found}
    if partitions := settings.pop("partitions", None):
        grown = admin.client.create_partitions(
            [NewPartitions(topic, int(partitions))], request_timeout=admin.timeout
        )
        admin.answers(grown, doing=doing)
    if settings:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        altered = admin.client.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)],
            request_timeout=admin.timeout,
        )
        admin.answers(altered, doing=doing)
    return [
        TopicChange(
            topic=topic,
            action="changed",
            setting=difference.setting,
            before=difference.existing,
            after=difference.declared,
        )
        for difference in found
    ]
