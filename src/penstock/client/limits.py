"""How long a client waits, how often it tries, and how much it holds. Each limit has its name."""

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What one client allows itself; the defaults are for a service that calls a gateway."""

    connect_timeout: timedelta = timedelta(seconds=5)
    """How long a connection may take to be made, TLS included."""
    silence_timeout: timedelta = timedelta(seconds=30)
    """How long a gateway may send nothing while it owes an answer. A gateway waits for Kafka for
    ``serving.write_timeout``, which should be less."""
    patience: timedelta = timedelta(seconds=60)
    """How long one call may take in all, whatever is tried again. Streams have no such limit."""
    attempts: int = 8
    """How often one request is sent at most; for ``changes``: failures in a row."""
    first_wait: timedelta = timedelta(milliseconds=100)
    """The longest wait before the second attempt; it doubles, and the real one is random."""
    longest_wait: timedelta = timedelta(seconds=5)
    """What it doubles up to. A gateway's ``Retry-After`` may ask for more."""
    connections: int = 16
    """The most connections at once; further calls wait for one."""
    idle_timeout: timedelta = timedelta(seconds=30)
    """How long a connection is kept that nobody uses; less than a gateway keeps it."""
    answer_bytes: int = 64 << 20
    """The largest answer that is held as a whole, and the largest event or line of a stream."""
