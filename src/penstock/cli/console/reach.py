"""What the console may ask, and of whom: the log, the application, its workers."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.cli.console.log import LogWatcher
from penstock.core.graph.graph import Graph
from penstock.core.settings.settings import EMBEDDED, HttpSettings, ServingSettings
from penstock.errors import ConfigurationError
from penstock.machine.configfile import Loaded

__all__ = ["Reach", "broker_directory", "console_link", "new_key"]

_KEY_BYTES = 24


def new_key(settings: HttpSettings) -> str:
    """Return a key for those who may write with the console of this run; empty: nobody may."""
    return secrets.token_urlsafe(_KEY_BYTES) if settings.console_writes == "on" else ""


def console_link(address: str, key: str) -> str:
    """Return the link of a console; its key is in a part that no browser sends to a server."""
    return f"{address}/#key={key}" if key else f"{address}/"


def broker_directory(loaded: Loaded) -> Path | None:
    """Return where the embedded broker has its data; None: the log is elsewhere."""
    return loaded.places.broker if loaded.settings.kafka.bootstrap == EMBEDDED else None


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How the documents of the console come to what they tell.

    ``graph`` gives what the application declares; None where no application is known. ``secret``
    is what workers know the asker by.
    """

    log: LogWatcher
    graph: Callable[[], Graph | None]
    secret: Callable[[], bytes] = bytes
    serving: ServingSettings = field(default_factory=ServingSettings)
    """The limits of queries."""

    @property
    def application(self) -> Graph:
        """The application; ConfigurationError where none is known."""
        if (graph := self.graph()) is None:
            raise ConfigurationError(
                "no application is known here", code="console.no-app", hint="penstock console APP"
            )
        return graph
