"""Runs one source of an application until it ends, fails or is told to stop."""

from typing import TYPE_CHECKING

from penstock.connectors.connector import LiveConnector, PositionedConnector
from penstock.core.graph import Graph, Source
from penstock.core.place import did_you_mean
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.backbone.site import Site

__all__ = ["run_source"]


def run_source(graph: Graph, name: str, site: "Site") -> None:
    """Bring the lines of the source of this name onto its stream; the topics must exist.

    Returns when the outside has ended or soon after ``site.stop`` is set, with everything that was
    taken on the log. Reports to ``site.report`` every second. Raises ConfigurationError where the
    outside cannot be read, FencedError where the same source runs elsewhere, TransientError where
    Kafka stays away.
    """
    # The Kafka client is loaded by whoever runs a source, not by whoever declares one.
    from penstock.connectors.live import run_live
    from penstock.connectors.positioned import PositionedRun
    from penstock.connectors.progress import Progress

    source = _find(graph, name)
    connector = source.connector
    with Progress(name, site.report) as progress:
        progress.tell("reads", connector.describe())
        if isinstance(connector, PositionedConnector):
            PositionedRun(graph, source, connector, site=site, progress=progress).run()
        elif isinstance(connector, LiveConnector):
            run_live(graph, source, connector, site=site, progress=progress)
        else:
            raise ConfigurationError(
                f"source {name!r}: {type(connector).__name__} can neither run nor be opened",
                code="source.no-connector",
                hint="give it run(feed) or open(position), see penstock.connectors.connector",
            )


def _find(graph: Graph, name: str) -> Source:
    part = graph.part(name)
    if isinstance(part, Source):
        return part
    names = [part.name for part in graph.parts if isinstance(part, Source)]
    raise ConfigurationError(
        f"{graph.app!r} has no source {name!r}",
        code="part.unknown",
        hint=did_you_mean(name, names),
    )
