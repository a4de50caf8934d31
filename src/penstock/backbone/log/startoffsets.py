"""Where a member of a group starts in the partitions that it is assigned."""

from dataclasses import dataclass, field
from typing import Literal

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition

from penstock.backbone.client.admin import Admin
from penstock.backbone.client.failures import beyond_end, cause
from penstock.backbone.client.logrecord import Partition

__all__ = ["StartOffsets", "find_starts"]


@dataclass(frozen=True, slots=True)
class StartOffsets:
    """The group's own offsets, those of them that were trimmed, the ends of what it never read."""

    committed: dict[Partition, int] = field(default_factory=dict)
    trimmed: dict[Partition, tuple[int, int]] = field(default_factory=dict)
    """Where the group stands, and the oldest offset that is left."""
    unread: dict[Partition, tuple[int, int]] = field(default_factory=dict)

    def first(self, start: Literal["earliest", "latest"]) -> dict[Partition, int]:
        """Return where partitions are begun at an offset that the group has not committed."""
        side = 0 if start == "earliest" else 1
        found = {partition: ends[side] for partition, ends in self.unread.items()}
        return found | {partition: low for partition, (_, low) in self.trimmed.items()}


def find_starts(
    client: confluent_kafka.Consumer, admin: Admin, given: list[TopicPartition], *, group: str
) -> StartOffsets:
    """Compare the group's offsets with the log as it is.

    Waits for a transaction that is still moving them. ConfigurationError ``offset.beyond-end``: the
    log has not reached an offset, or has lost it.
    """
    found = StartOffsets()
    if not given:
        return found
    doing = f"reading the offsets of group {group}"
    try:
        committed = client.committed(given, timeout=admin.timeout)
    except KafkaException as error:
        raise admin.failure(cause(error), doing=doing) from error
    ends = admin.ends([(at.topic, at.partition) for at in given], committed=True)
    for at in committed:
        if at.error is not None:
            raise admin.failure(at.error, doing=doing)
        partition = (at.topic, at.partition)
        low, high = ends[partition]
        if at.offset < 0:
            found.unread[partition] = (low, high)
        elif at.offset < low:
            found.trimmed[partition] = (at.offset, low)
        elif at.offset > high:
            raise beyond_end(partition, wanted=at.offset, high=high, group=group)
        else:
            found.committed[partition] = at.offset
    return found
