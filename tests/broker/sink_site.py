"""Sources and sinks of tests in a thread, and what they reported."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.connectors import run_sink, run_source
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Source
from penstock.core.settings.settings import Settings
from penstock.core.status.report import PartReport
from penstock.machine.places import Places

LIMIT_SECONDS = 120


@contextmanager
def running(kafka: Connection, graph: Graph, part: str) -> Iterator[list[PartReport]]:
    reports: list[PartReport] = []
    site = Site(
        settings=Settings(),
        places=Places(Path()),
        connection=kafka,
        stop=threading.Event(),
        report=reports.append,
    )
    failed: list[BaseException] = []

    def run() -> None:
        try:
            (run_source if isinstance(graph.part(part), Source) else run_sink)(graph, part, site)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: reports or failed)
    try:
        yield reports
    finally:
        site.stop.set()
        thread.join(LIMIT_SECONDS)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


def eventually(condition, seconds: float = LIMIT_SECONDS) -> None:
    pause = threading.Event()
    for _ in range(round(seconds / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    raise AssertionError("it did not come about in time")
