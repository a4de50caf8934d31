"""What the console may ask, and of whom: the log, the application, its workers."""

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.cli.console.log import LogWatcher
from penstock.core.graph.graph import Graph
from penstock.core.settings.settings import ServingSettings
from penstock.errors import ConfigurationError

__all__ = ["Reach"]


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
