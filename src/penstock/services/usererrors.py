"""Words for what went wrong with a record: where it stands, and what the user's code raised."""

import logging

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.records.deadletter import Coordinates
from penstock.machine.process.usercode import TookTooLongError, describe_error, is_users

__all__ = ["LOG", "TookTooLongError", "coordinates_of", "describe_error", "is_users"]

LOG = logging.getLogger("penstock.services")
LOG.addHandler(logging.NullHandler())


def coordinates_of(raw: RawRecord) -> Coordinates:
    """Return where a record stands on the log."""
    return Coordinates(raw.topic() or "", raw.partition() or 0, raw.offset() or 0)
