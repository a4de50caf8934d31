"""A topic as it is declared: the values a broker must hold for a stream to be itself."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from penstock.core.units import duration_text, size_text

__all__ = [
    "DEFAULT_MAX_RECORD_BYTES",
    "DEFAULT_PARTITIONS",
    "FRAME_BYTES",
    "Partitioning",
    "TopicSpec",
    "topic_name_problem",
]

Partitioning = Literal["key", "round_robin"]

DEFAULT_PARTITIONS = 2
DEFAULT_MAX_RECORD_BYTES = 1 << 20
FRAME_BYTES = 64 << 10
"""Room for a batch's own header, keys and headers on top of the largest record."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NAME_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """How a topic is cut, kept and copied. ``None`` means: no limit, or the cluster's default.

    ``max_record_bytes`` is the largest record the stream accepts. The broker is told to take much
    more (see ``settings``), so that a too large record reaches the dead-letter topic and its
    producer's other records go on.
    """

    name: str
    partitions: int = DEFAULT_PARTITIONS
    partitioning: Partitioning = "key"
    retention: timedelta | None = timedelta(days=7)
    retention_bytes: int | None = None
    compacted: bool = False
    replication: int | None = None
    max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES

    def config(self) -> dict[str, str]:
        """Return the topic's settings in the broker's own words."""
        retention_ms = -1 if self.retention is None else round(self.retention.total_seconds() * 1e3)
        return {
            "cleanup.policy": "compact" if self.compacted else "delete",
            "retention.ms": str(retention_ms),
            "retention.bytes": str(-1 if self.retention_bytes is None else self.retention_bytes),
        }

    def describe(self) -> dict[str, str]:
        """Return the declaration as short texts, for tables and error messages."""
        return {
            "partitions": str(self.partitions),
            "partitioning": self.partitioning,
            "retention": "for ever" if self.retention is None else duration_text(self.retention),
            "retention_bytes": (
                "no limit" if self.retention_bytes is None else size_text(self.retention_bytes)
            ),
            "compacted": "yes" if self.compacted else "no",
            "replication": (
                "the cluster's default" if self.replication is None else str(self.replication)
            ),
            "max_record": size_text(self.max_record_bytes),
        }


def topic_name_problem(name: str) -> str | None:
    """Say what is wrong with a topic's name, or None."""
    if not name:
        return "it is empty"
    if len(name) > _NAME_LIMIT:
        return f"it has {len(name)} characters; {_NAME_LIMIT} are allowed"
    if name in {".", ".."}:
        return "Kafka reserves it"
    if not _NAME.fullmatch(name):
        return "letters, digits, '.', '_' and '-' are allowed"
    return None
