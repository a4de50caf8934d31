"""Dead letters as a test reads them."""

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.records.deadletter import DeadLetter, read_letter

__all__ = ["DeadLetter", "read_dead_letter"]


def read_dead_letter(raw: RawRecord) -> DeadLetter:
    """Return the dead letter in a record of a dead-letter topic."""
    return read_letter(raw.key(), raw.value(), raw.headers() or ())
