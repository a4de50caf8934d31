"""How a consumer takes part in its group, as values."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.core.settings.settings import ServiceSettings

__all__ = ["Listener", "Membership", "consumer_config"]

_FETCH_WAIT_MS = 50
_HEARTBEAT_LIMIT_MS = 1000
_PARTITION_FETCH_BYTES = 4 << 20
_RESPONSE_FRAME_BYTES = 1 << 20
_UNPACKED_BYTES = 256 << 20
"""The largest batch that is unpacked. The client bounds that by the size of a response.

A batch that a producer has compressed may be far larger than what a broker takes: refused, it would
hold its partition up for ever.
"""


def _ignore(*_: Any) -> None:
    """Do nothing: the default of a callback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """How a consumer takes part in its group.

    ``range`` gives one member the same partition numbers of all topics, which joins need, and takes
    all partitions away at each rebalance; ``cooperative`` moves only those that must move.
    ``start`` is where a partition is begun that the group has never read. With an ``instance_id``
    a restart within the session timeout keeps its partitions.
    """

    strategy: Literal["cooperative", "range"] = "cooperative"
    start: Literal["earliest", "latest"] = "earliest"
    instance_id: str | None = None
    commits_first: bool = True
    """Whether it commits at once where a partition is begun that the group has no offset for; else
    its listener does, which may know better where that is."""
    poll_interval: timedelta = timedelta(minutes=5)
    """A member that does not ask for records for this long loses its partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Callbacks for partitions that come and go; they run inside ``consume`` and ``close``.

    ``before_assign`` gets the new partitions before the group's offsets are read, which wait for
    transactions of former owners; ``on_unread`` those of them that the group has no offset for;
    ``on_assign`` gets all of them with the offset that each starts at;
    ``on_revoke`` is the last chance to commit; after ``on_lost`` another member may already have
    the partitions. ``on_skipped`` hears from which offset to which a partition was left out, where
    the settings allow that.
    """

    before_assign: Callable[[Collection[Partition]], None] = _ignore
    on_unread: Callable[[Collection[Partition]], None] = _ignore
    on_assign: Callable[[Offsets], None] = _ignore
    on_revoke: Callable[[Collection[Partition]], None] = _ignore
    on_lost: Callable[[Collection[Partition]], None] = _ignore
    on_skipped: Callable[[Partition, int, int], None] = _ignore


def consumer_config(
    connection: Connection, *, group: str, settings: ServiceSettings, membership: Membership
) -> dict[str, Any]:
    """Return the client's configuration of a member: bounded, quick, never committing by itself."""
    largest = connection.settings.max_message_bytes
    config: dict[str, Any] = {
        **connection.client_config(),
        "group.id": group,
        "partition.assignment.strategy": (
            "cooperative-sticky" if membership.strategy == "cooperative" else "range"
        ),
        "session.timeout.ms": settings.session_timeout // timedelta(milliseconds=1),
        # Members learn of a rebalance with their next heartbeat: it should be soon.
        "heartbeat.interval.ms": min(
            settings.session_timeout // timedelta(milliseconds=4), _HEARTBEAT_LIMIT_MS
        ),
        "max.poll.interval.ms": max(membership.poll_interval, settings.session_timeout)
        // timedelta(milliseconds=1),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "queued.max.messages.kbytes": max(1, settings.queued_bytes >> 10),
        "fetch.max.bytes": max(settings.queued_bytes, largest),
        "receive.message.max.bytes": max(
            settings.queued_bytes + _RESPONSE_FRAME_BYTES,
            largest + _RESPONSE_FRAME_BYTES,
            _UNPACKED_BYTES,
        ),
        "fetch.message.max.bytes": min(_PARTITION_FETCH_BYTES, settings.queued_bytes),
        "fetch.wait.max.ms": _FETCH_WAIT_MS,
        # The default second of back-off after a full queue would show as a stutter.
        "fetch.queue.backoff.ms": 10,
    }
    if membership.instance_id is not None:
        config["group.instance.id"] = membership.instance_id
    return config
