"""What a running part receives: settings, places, the connection, and where to report."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock.backbone.client.connection import Connection
from penstock.core.settings.settings import Settings
from penstock.core.status.report import PartReport
from penstock.machine.places import Places

__all__ = ["Site"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The surroundings of one run of one or several parts.

    A part ends soon after ``stop`` is set, leaving its work committed; it calls ``report`` a few
    times a minute, from any thread.
    """

    settings: Settings
    places: Places
    connection: Connection
    stop: threading.Event
    report: Callable[[PartReport], None]
