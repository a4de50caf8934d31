"""Runs a positioned source: its records and its position are committed together, exactly once.

Each transaction holds the records of some items of one split and the position behind them. A
restart, however the last run ended, takes over the transactional id (which fences a run that is
still alive somewhere) and goes on from the committed positions of all splits.
"""

from contextlib import AbstractContextManager, closing, nullcontext
from typing import TypeAlias

from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.site import Site
from penstock.connectors.connector import AttachedConnector, PositionedConnector
from penstock.connectors.progress import Progress
from penstock.connectors.retrying import Retries, keep_trying
from penstock.connectors.source.outlet import Outlet
from penstock.connectors.source.pacing import slice_seconds
from penstock.connectors.source.positions import read_positions
from penstock.connectors.source.session import Run, Session
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Source

__all__ = ["run_positioned"]

Connector: TypeAlias = PositionedConnector | AttachedConnector


def run_positioned(
    graph: Graph, source: Source, connector: Connector, *, site: Site, progress: Progress
) -> None:
    """Read until the source ends or the site stops; what is transient is tried again."""
    run = Run(
        topic=graph.positions(source).name,
        stop=site.stop,
        progress=progress,
        slice_seconds=slice_seconds(site.settings.services.stop_timeout),
        retries=Retries(),
    )
    keep_trying(
        lambda: _session(run, graph, source, connector, site),
        retries=run.retries,
        stop=site.stop,
        progress=progress,
    )


def _session(run: Run, graph: Graph, source: Source, connector: Connector, site: Site) -> None:
    """Read on from the committed positions with a producer of its own."""
    with (
        TransactionalProducer(site.connection, f"{graph.app}.{source.name}") as producer,
        _attached(connector) as attached,
    ):
        # Read when the producer has taken over: nobody else can move them from here on.
        positions = read_positions(site.connection, run.topic)
        outlet = Outlet(graph, source, producer)
        session = Session(
            run, connector=attached, outlet=outlet, producer=producer, positions=positions
        )
        with closing(session):
            session.read_on()


def _attached(connector: Connector) -> AbstractContextManager[PositionedConnector]:
    return (
        connector.attach() if isinstance(connector, AttachedConnector) else nullcontext(connector)
    )
