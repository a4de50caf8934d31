"""Runs services of an application: one process, a thread for each."""

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace

from penstock.backbone.site import Site
from penstock.core.graph import Graph, Service
from penstock.core.place import did_you_mean
from penstock.errors import ConfigurationError
from penstock.services.reporter import Reporter
from penstock.services.worker import Worker

__all__ = ["run_services"]

_LOOK_SECONDS = 0.1


def run_services(graph: Graph, names: Sequence[str], site: Site) -> None:
    """Run services until ``site.stop`` is set; their topics must have been declared.

    They end together: when one fails the others are stopped in order, and its error is raised.
    """
    services = [_service(graph, name) for name in names]
    ended = threading.Event()
    inside = replace(site, stop=ended)
    with ThreadPoolExecutor(max(1, len(services)), thread_name_prefix="service") as executor:
        futures = [executor.submit(_run, graph, service, inside) for service in services]
        try:
            _supervise(futures, stop=site.stop, ended=ended)
        finally:  # an interrupt of this thread must not leave the others running
            ended.set()
    for future in futures:
        future.result()


def _supervise(
    futures: Sequence[Future[None]], *, stop: threading.Event, ended: threading.Event
) -> None:
    """Wait until all have ended; tell them to when asked, or when one has failed."""
    running = set(futures)
    while running:
        done, running = wait(running, timeout=_LOOK_SECONDS, return_when=FIRST_EXCEPTION)
        if stop.is_set() or any(future.exception() for future in done):
            ended.set()


def _run(graph: Graph, service: Service, site: Site) -> None:
    worker = Worker(graph, service, site)
    with Reporter(worker, service, site):
        worker.run()


def _service(graph: Graph, name: str) -> Service:
    part = graph.part(name)
    if isinstance(part, Service):
        return part
    names = [part.name for part in graph.parts if isinstance(part, Service)]
    raise ConfigurationError(
        f"{graph.app!r} has no service {name!r}",
        code="part.unknown",
        hint=did_you_mean(name, names) or f"its services are {', '.join(names) or 'none'}",
    )
