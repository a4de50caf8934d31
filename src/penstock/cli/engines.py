"""Run parts of an application in this process: each engine in a thread; they end together."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

from penstock.backbone.site import Site
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import ON_SPARK, Part, Service, Sink, Source
from penstock.errors import StuckError

__all__ = ["STOP_GRACE", "Run", "run_engines", "run_parts"]

_LOOK_SECONDS = 0.2
STOP_GRACE = timedelta(seconds=60)
"""Extra time for engines to stop, beyond that of services: Spark abandons a batch, its JVM ends.

Longer than ``penstock dev`` waits before it kills the process.
"""

Run: TypeAlias = Callable[[Site], None]


def run_parts(graph: Graph, parts: Sequence[Part], site: Site) -> None:
    """Run parts until all have ended or ``site.stop`` is set; their topics must exist.

    When one engine fails the others are told to stop, and its error is raised. StuckError where one
    does not stop in time; that, and a second signal that interrupts the waiting, leave the threads
    behind: the process is meant to end then.
    """
    run_engines(_runs(graph, parts), site, limit=site.settings.services.stop_timeout + STOP_GRACE)


def run_engines(runs: Mapping[str, Run], site: Site, *, limit: timedelta) -> None:
    """Run engines, by the names of their parts, each in a thread; see :func:`run_parts`."""
    ended = threading.Event()
    inside = replace(site, stop=ended)
    engines = [_Engine(run, inside, name=name) for name, run in runs.items()]
    for engine in engines:
        engine.start()
    asked_at: float | None = None
    while left := [engine for engine in engines if engine.is_alive()]:
        if site.stop.is_set() or any(engine.error for engine in engines):
            asked_at = asked_at or time.monotonic()
            ended.set()
        if asked_at is not None and time.monotonic() - asked_at > limit.total_seconds():
            raise _stuck(engines, left, limit)
        for engine in engines:
            engine.join(_LOOK_SECONDS)
    for engine in engines:
        if engine.error is not None:
            raise engine.error


def _stuck(engines: Sequence["_Engine"], left: Sequence["_Engine"], limit: timedelta) -> StuckError:
    failed = [f"{engine.name}: {engine.error}" for engine in engines if engine.error]
    names = ", ".join(engine.name for engine in left)
    return StuckError(
        f"{names} did not stop within {limit.total_seconds():g}s",
        code="part.stuck",
        detail="; ".join(failed) or "it was asked to stop, and its threads are still running",
        hint="the process ends anyway; work that was not committed will be done again",
    )


class _Engine(threading.Thread):
    """One running engine; it keeps what the engine raises."""

    def __init__(self, run: Run, site: Site, *, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._work = run
        self._site = site
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._work(self._site)
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits
            self.error = error


def _runs(graph: Graph, parts: Sequence[Part]) -> dict[str, Run]:
    """Return what is to be run: all pipelines at once, all services at once, others alone."""
    found: dict[str, Run] = {}
    services = [part.name for part in parts if isinstance(part, Service)]
    pipelines = [part.name for part in parts if part.kind in ON_SPARK]
    if services:
        from penstock import services as service_engine

        found[", ".join(services)] = lambda site: service_engine.run(graph, services, site)
    if pipelines:
        from penstock import pipelines as pipeline_engine

        found[", ".join(pipelines)] = lambda site: pipeline_engine.run(graph, pipelines, site)
    alone = [part for part in parts if isinstance(part, Source | Sink)]
    found |= {part.name: _connected(graph, part) for part in alone}
    return found | {part.name: _served(graph, part) for part in parts if isinstance(part, Gateway)}


def _served(graph: Graph, part: Gateway) -> Run:
    from penstock import serving

    return lambda site: serving.run(graph, part.name, site)


def _connected(graph: Graph, part: Source | Sink) -> Run:
    from penstock.connectors import run_sink, run_source

    run = run_source if isinstance(part, Source) else run_sink
    return lambda site: run(graph, part.name, site)
