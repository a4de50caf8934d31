"""Runs one source or sink of an application until it ends, fails or is told to stop."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from penstock.connectors.connector import (
    AttachedConnector,
    LiveConnector,
    PositionedConnector,
    WritingConnector,
)
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Sink, Source
from penstock.core.units import span_text
from penstock.core.wiring.lookup import find_part
from penstock.errors import ConfigurationError, StuckError

if TYPE_CHECKING:
    from penstock.backbone.site import Site
    from penstock.connectors.progress import Progress

__all__ = ["run_sink", "run_source"]

_LOOK_SECONDS = 0.1


def run_source(graph: Graph, name: str, site: "Site") -> None:
    """Run one source of an application until it ends; ``penstock run`` does this for you.

    The topics must exist. It returns when the source has ended, or soon after ``site.stop`` is set,
    with everything that was taken on the log. It reports to ``site.report`` every second.

    It raises a ConfigurationError if the source cannot be read, a FencedError if the same source
    runs elsewhere, a TransientError if Kafka stays away, and a StuckError if ``parse`` hangs when
    it is to stop: its thread stays behind, and ends only with the process.
    """
    source = find_part(graph, name, Source)
    _report_on(source, lambda progress: _read(graph, source, site, progress), site=site)


def run_sink(graph: Graph, name: str, site: "Site") -> None:
    """Run one sink of an application until it is stopped; ``penstock run`` does this for you.

    The topics must exist. It returns soon after ``site.stop`` is set, with everything that was read
    written. It reports and raises as ``run_source`` does.
    """
    sink = find_part(graph, name, Sink)
    _report_on(sink, lambda progress: _write(graph, sink, site, progress), site=site)


def _report_on(part: Source | Sink, run: "Callable[[Progress], None]", *, site: "Site") -> None:
    from penstock.connectors.progress import Progress

    slow_call = site.settings.services.slow_call
    with Progress(part.name, site.report, kind=part.kind, slow_call=slow_call) as progress:
        progress.tell("reads" if part.kind == "source" else "writes", part.connector.describe())
        _supervise(lambda: run(progress), site=site, progress=progress)


def _read(graph: Graph, source: Source, site: "Site", progress: "Progress") -> None:
    # The Kafka client is loaded by whoever runs a source, not by whoever declares one.
    from penstock.connectors.source.live import run_live
    from penstock.connectors.source.positioned import run_positioned

    connector = source.connector
    if isinstance(connector, PositionedConnector | AttachedConnector):
        run_positioned(graph, source, connector, site=site, progress=progress)
    elif isinstance(connector, LiveConnector):
        run_live(graph, source, connector, site=site, progress=progress)
    else:
        raise ConfigurationError(
            f"source {source.name!r}: {type(connector).__name__} can neither run nor be opened",
            code="source.no-connector",
            hint="give it run(feed), or grows, splits() and open(split, position)",
        )


def _write(graph: Graph, sink: Sink, site: "Site", progress: "Progress") -> None:
    from penstock.connectors.sink.run import run_writing

    connector = sink.connector
    if not isinstance(connector, WritingConnector):
        raise ConfigurationError(
            f"sink {sink.name!r}: {type(connector).__name__} cannot be opened",
            code="sink.no-connector",
            hint="give it limits and open(sink)",
        )
    run_writing(graph, sink, connector, site=site, progress=progress)


def _supervise(run: Callable[[], None], *, site: "Site", progress: "Progress") -> None:
    """Run a part in a thread of its own, which is left behind where the user's code hangs."""
    outcome: Future[None] = Future()

    def work() -> None:
        try:
            run()
            outcome.set_result(None)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            outcome.set_exception(error)

    threading.Thread(target=work, daemon=True, name="connector").start()
    limit = site.settings.services.stop_timeout
    deadline = inf
    while not wait([outcome], timeout=_LOOK_SECONDS).done:
        if site.stop.is_set():
            deadline = min(deadline, monotonic() + limit.total_seconds())
        if monotonic() >= deadline and (in_hand := progress.in_hand):
            raise StuckError(
                f"a source or sink did not stop within {span_text(limit.total_seconds())}",
                code="source.stuck",
                detail=in_hand,
                hint="let parse come to an end; items it was not done with are read again,"
                " where they can be",
            )
    outcome.result()
