"""Reports on a worker, once a second, from a thread of its own."""

import threading
from collections import Counter
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType
from typing import Self

from penstock.backbone.site import Site
from penstock.core.graph.parts import Service
from penstock.core.status.eventtimes import EventTimes
from penstock.core.status.report import PartState
from penstock.services.task.servicelog import ServiceLog
from penstock.services.task.takeover import Takeover
from penstock.services.usererrors import LOG
from penstock.services.worker.report import Restoring, Standing, Teller, error_text
from penstock.services.worker.stalls import slow_call
from penstock.services.worker.work import Work

__all__ = ["REPORT_SECONDS", "Reporter", "standing_of"]

REPORT_SECONDS = 1.0


class Reporter:
    """Reports on the work of a worker while the block runs, and how it ended."""

    def __init__(self, work: Work, log: ServiceLog, service: Service, site: Site) -> None:
        self._work = work
        self._log = log
        self._service = service
        self._site = site
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{service.name}-report")
        self._teller = Teller(service.name, delivery=service.delivery, began=monotonic())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        standing = standing_of(self._work, self._site)
        self._report(standing, "failed" if error else "stopped", error_text(error))

    def _run(self) -> None:
        while True:
            try:
                self._work.topics.look(monotonic())
                standing = standing_of(self._work, self._site)
                self._report(standing, *self._teller.state(standing))
            except Exception:  # noqa: BLE001 - whatever it is, the next report may be well
                # The worker changes under its eyes; a report that fails is not the last one.
                LOG.exception("a report of %s failed", self._service.name)
            if self._done.wait(REPORT_SECONDS):
                return

    def _report(self, standing: Standing, state: PartState, reason: str) -> None:
        lag = None
        if standing.all_run(state):
            running = self._work.assignment.running
            lag = self._log.lag({at: task.positions[at] for at, task in list(running.items())})
        self._site.report(self._teller.report(standing, state, reason, now=monotonic(), lag=lag))


def standing_of(work: Work, site: Site) -> Standing:
    """Return how a worker stands now; any thread may ask."""
    assignment = work.assignment
    tasks = assignment.tasks()
    copies, copied = work.disk.copies()
    facts = Counter[str]()
    for task in tasks:
        facts.update(task.step.facts())
    return Standing(
        at=datetime.now(UTC),
        joined=assignment.joined,
        stopping=site.stop.is_set(),
        slow=slow_call(work.activity, limit=site.settings.services.slow_call),
        lost=work.topics.lost,
        trouble=work.trouble,
        restoring=[_restoring(each) for each in assignment.takeovers()],
        setbacks=dict(assignment.setbacks),
        retries=assignment.retries(),
        running=list(assignment.running),
        counts=assignment.counts(),
        facts=facts,
        event_times=EventTimes.of_all(task.step.event_times() for task in tasks),
        measured=work.measures.series(),
        failures=assignment.failures,
        copies=copies,
        copied=copied,
        on_disk=work.disk.used,
        resumed={at: end for task in tasks for at, end in task.resumed.items()},
        tables=work.following.reading(),
        stale_tables=work.following.troubles(),
        skipped=assignment.skipped.offsets,
        last_dead_letter=assignment.last_dead_letter,
    )


def _restoring(takeover: Takeover) -> Restoring:
    restore = takeover.restore
    return Restoring(
        task=takeover.task,
        trouble=takeover.trouble,
        restored=restore.restored,
        expected=restore.expected,
        seconds_left=restore.seconds_left,
        progress=restore.progress,
    )
