"""The parts of an application in this process: each engine in a thread, ending together."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.backbone.site import Site
from penstock.core.graph import Graph, Part, Pipeline, Service, Source
from penstock.core.place import did_you_mean
from penstock.errors import ConfigurationError

__all__ = ["find_parts", "run_parts"]

_LOOK_SECONDS = 0.2


def find_parts(graph: Graph, names: Sequence[str]) -> list[Part]:
    """Return the parts of these names, each once; ConfigurationError names all that are none."""
    unknown = [name for name in names if graph.part(name) is None]
    if unknown:
        known = [part.name for part in graph.parts]
        raise ConfigurationError(
            f"{graph.app} has no part {', '.join(unknown)}",
            code="part.unknown",
            hint=did_you_mean(unknown[0], known),
        )
    wanted = set(names)
    return [part for part in graph.parts if part.name in wanted]


def run_parts(graph: Graph, parts: Sequence[Part], site: Site) -> None:
    """Run parts until all have ended or ``site.stop`` is set; their topics must exist.

    When one engine fails the others are told to stop, and its error is raised. A second signal
    that interrupts the waiting leaves the threads behind: the process is meant to end then.
    """
    ended = threading.Event()
    inside = replace(site, stop=ended)
    engines = [_Engine(run, inside) for run in _runs(graph, parts)]
    for engine in engines:
        engine.start()
    while any(engine.is_alive() for engine in engines):
        if site.stop.is_set() or any(engine.error for engine in engines):
            ended.set()
        for engine in engines:
            engine.join(_LOOK_SECONDS)
    for engine in engines:
        if engine.error is not None:
            raise engine.error


class _Engine(threading.Thread):
    """One engine at work; what it raises is kept for whoever waits."""

    def __init__(self, run: Callable[[Site], None], site: Site) -> None:
        super().__init__(name="engine", daemon=True)
        self._work = run
        self._site = site
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._work(self._site)
        except Exception as error:  # noqa: BLE001 - raised again by whoever waits
            self.error = error


def _runs(graph: Graph, parts: Sequence[Part]) -> list[Callable[[Site], None]]:
    """Return what is to be run: all pipelines at once, all services at once, each source alone."""
    found: list[Callable[[Site], None]] = []
    services = [part.name for part in parts if isinstance(part, Service)]
    pipelines = [part.name for part in parts if isinstance(part, Pipeline)]
    if services:
        from penstock import services as service_engine

        found.append(lambda site: service_engine.run(graph, services, site))
    if pipelines:
        from penstock import pipelines as pipeline_engine

        found.append(lambda site: pipeline_engine.run(graph, pipelines, site))
    sources = (part.name for part in parts if isinstance(part, Source))
    return [*found, *(_source(graph, name) for name in sources)]


def _source(graph: Graph, name: str) -> Callable[[Site], None]:
    from penstock.connectors import run_source

    return lambda site: run_source(graph, name, site)
