"""Runs services of an application: one process, a thread for each."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from math import inf
from time import monotonic

from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.settings.settings import ServiceSettings
from penstock.core.wiring.lookup import find_part
from penstock.services.door import StateDoor
from penstock.services.worker.reporter import Reporter
from penstock.services.worker.stalls import STOP_GRACE, stuck_error
from penstock.services.worker.worker import Worker

__all__ = ["run_services"]

_LOOK_SECONDS = 0.1


def run_services(graph: Graph, names: Sequence[str], site: Site) -> None:
    """Run services until ``site.stop`` is set; their topics must have been declared.

    They end together: when one fails the others are stopped in order, and its error is raised.
    StuckError where one does not stop: its thread is left behind at work, and the process has to
    end for it to end.
    """
    services = [find_part(graph, name, Service) for name in names]
    if not any(service.keeps_state for service in services):
        _run_all(graph, services, site)
        return
    with StateDoor(site) as door:
        named = site.connection.named(door.client_name)
        _run_all(graph, services, replace(site, connection=named), door=door)


def _run_all(
    graph: Graph, services: Sequence[Service], site: Site, *, door: StateDoor | None = None
) -> None:
    ended = threading.Event()
    inside = replace(site, stop=ended)
    workers = [Worker(graph, service, inside) for service in services]
    if door is not None:
        pairs = zip(services, workers, strict=True)
        door.attend({service.name: (service, worker) for service, worker in pairs})
    executor = ThreadPoolExecutor(max(1, len(services)), thread_name_prefix="service")
    running = {
        executor.submit(_run, worker, service, inside): worker
        for worker, service in zip(workers, services, strict=True)
    }
    executor.shutdown(wait=False)
    try:
        _supervise(running, stop=site.stop, ended=ended, settings=site.settings.services)
    finally:  # an interrupt of this thread must not leave the others running
        ended.set()
    for future in running:
        future.result()


def _supervise(
    workers: Mapping[Future[None], Worker],
    *,
    stop: threading.Event,
    ended: threading.Event,
    settings: ServiceSettings,
) -> None:
    """Wait until all have ended; tell them to when asked, or when one has failed."""
    limit = settings.stop_timeout + STOP_GRACE
    running, failed, deadline = set(workers), None, inf
    while running:
        done, running = wait(running, timeout=_LOOK_SECONDS, return_when=FIRST_EXCEPTION)
        failed = next((error for each in done if (error := each.exception())), failed)
        if stop.is_set() or failed:
            ended.set()
            deadline = min(deadline, monotonic() + limit.total_seconds())
        if running and monotonic() >= deadline:
            stuck = [each.work.activity for future, each in workers.items() if future in running]
            raise stuck_error(stuck, limit=limit, failed=failed) from failed


def _run(worker: Worker, service: Service, site: Site) -> None:
    with Reporter(worker.work, worker.log, service, site):
        worker.run()
