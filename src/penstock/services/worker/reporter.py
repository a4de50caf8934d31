"""What a service says about itself, once a second, from a thread of its own."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.parts import Service
from penstock.core.panes.panecounts import PANE_KINDS
from penstock.core.status.eventtimes import EventTimes
from penstock.core.status.exposition import series
from penstock.core.status.report import Counts, PartReport, PartState
from penstock.errors import PenstockError, TransientError, UserCodeError
from penstock.services.usererrors import LOG
from penstock.services.worker.measures import MonotonicCounter
from penstock.services.worker.stalls import slow_call
from penstock.services.worker.worker import Worker

__all__ = ["REPORT_SECONDS", "Reporter"]

REPORT_SECONDS = 1.0

_SERIES = {
    "keys": "state_keys",
    "timers": "state_timers",
    "state records": "state_records",
    "late records": "late_records_total",
    "ahead records": "ahead_records_total",
    **{f"panes {kind.replace('_', ' ')}": series("panes_total", kind=kind) for kind in PANE_KINDS},
}
"""The facts of steps as Prometheus knows them."""

_ASK_LIMIT = timedelta(seconds=2 * REPORT_SECONDS)
"""For questions whose answer is worth little when it comes late."""


_MOST_TOLD = 3
"""So many troubles are told in words, the others counted."""


class Reporter:
    """Reports on a worker while the block runs, and how it ended."""

    def __init__(self, worker: Worker, service: Service, site: Site) -> None:
        self._worker = worker
        self._service = service
        self._site = site
        self._topics = Topics(site.connection.within(_ASK_LIMIT))
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{service.name}-report")
        self._degraded_at: datetime | None = None
        self._rates = _Rates()
        self._rising = MonotonicCounter()

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
        self._site.report(self._report("failed" if error else "stopped", _why(error)))

    def _run(self) -> None:
        while True:
            try:
                self._site.report(self._report(*self._state()))
            except Exception:  # noqa: BLE001 - whatever it is, the next report may be well
                # The worker changes under its eyes; a report that fails is not the last one.
                LOG.exception("a report of %s failed", self._service.name)
            if self._done.wait(REPORT_SECONDS):
                return

    def _state(self) -> tuple[PartState, str]:
        worker = self._worker
        takeovers = worker.assignment.takeovers()
        setbacks = dict(worker.assignment.setbacks)
        setbacks |= {each.share: each.trouble for each in takeovers if each.trouble}
        troubles = [f"partition {share}: {trouble}" for share, trouble in setbacks.items()]
        failing = [each.trouble for each in worker.assignment.retries() if each.lasting]
        slow = slow_call(worker, limit=self._site.settings.services.slow_call)
        trouble = slow or worker.trouble or _several([*troubles, *failing])
        if not trouble:
            self._degraded_at = None
        elif self._degraded_at is None:
            self._degraded_at = datetime.now(UTC)
        if self._site.stop.is_set():
            return "stopping", trouble
        if self._degraded_at is not None:
            since = self._degraded_at.isoformat(timespec="seconds")
            return "degraded", trouble if " since " in trouble else f"{trouble}, since {since}"
        up = worker.joined and not takeovers
        return ("running" if up else "starting"), ""

    def _report(self, state: PartState, reason: str) -> PartReport:
        counts = self._worker.assignment.counts()
        rate_in, rate_out = self._rates.after(counts)
        return PartReport(
            part=self._service.name,
            kind="service",
            state=state,
            at=time.time(),
            reason=reason,
            counts=counts,
            lag=self._lag() if self._all_run(state) else None,
            rate_in=rate_in,
            rate_out=rate_out,
            detail=self._detail(),
            metrics=self._metrics(),
        )

    def _all_run(self, state: PartState) -> bool:
        """Return whether all partitions are worked on, be it that a record holds one up."""
        worker = self._worker
        held_up = state == "degraded" and not (worker.trouble or worker.assignment.takeovers())
        return state == "running" or held_up

    def _metrics(self) -> dict[str, float]:
        assignment = self._worker.assignment
        restoring = assignment.takeovers()
        found = self._worker.measures.series()
        found["restarts_total"] += assignment.failures
        found["restoring_partitions"] = len(restoring)
        found["restored_records"] = sum(each.restored for each in restoring)
        found["restore_expected_records"] = sum(each.expected for each in restoring)
        lefts = [each.seconds_left for each in restoring]
        if known := [left for left in lefts if left is not None]:
            found["restore_left_seconds"] = max(known)
        found["running_partitions"] = len(assignment.running)
        places = (each.place for each in assignment.retries())
        found["retrying_partitions"] = len({(place.topic, place.partition) for place in places})
        found["standby_partitions"], found["standby_records"] = self._worker.disk.copies()
        for fact, number in self._facts().items():
            name = _SERIES[fact]
            counted = "_total" in name
            found[name] = self._rising.never_less(name, number) if counted else number
        return found | self._event_times().series(time.time())

    def _facts(self) -> Counter[str]:
        facts = Counter[str]()
        for task in self._worker.assignment.tasks():
            facts.update(task.step.facts())
        return facts

    def _event_times(self) -> EventTimes:
        return EventTimes.of_all(
            task.step.event_times() for task in self._worker.assignment.tasks()
        )

    def _lag(self) -> int | None:
        positions = {
            partition: task.positions[partition]
            for partition, task in list(self._worker.assignment.running.items())
        }
        ends: dict[str, dict[int, tuple[int, int]]] = {}
        with suppress(TransientError):  # the worker itself says what is wrong
            for topic in {topic for topic, _ in positions}:
                ends[topic] = self._topics.ends(topic, committed=True)
            return sum(
                max(0, ends[topic][number][1] - at) for (topic, number), at in positions.items()
            )
        return None

    def _detail(self) -> dict[str, str]:
        assignment = self._worker.assignment
        running = sorted(f"{topic}[{number}]" for topic, number in list(assignment.running))
        detail = {
            "delivery": self._service.delivery.replace("_", " "),
            "partitions": ", ".join(running) or "none",
        }
        if restoring := [f"{each.share}: {each.progress}" for each in assignment.takeovers()]:
            detail["restoring"] = ", ".join(restoring)
        now_at = datetime.now(UTC)
        if retrying := [each.words(now_at) for each in assignment.retries()]:
            detail["retrying"] = _several(retrying)
        detail |= {name: str(number) for name, number in self._facts().items()}
        if "keys" in detail and self._worker.disk.used:
            detail["keys"] = f"about {detail['keys']}"  # RocksDB's estimate
        if watermark := self._event_times().words(time.time()):
            detail["watermark"] = watermark
        if resumed := [each for task in assignment.tasks() for each in task.resumed.items()]:
            places = [f"{topic}[{number}] at {offset}" for (topic, number), offset in resumed]
            detail["offsets"] = f"forgotten by the group, the state's own used: {_several(places)}"
        if skipped := self._worker.measures.skipped.offsets:
            detail["skipped"] = f"{skipped} offsets, deleted by retention before they were read"
        if dead := assignment.last_dead_letter:
            detail["last dead letter"] = dead
        return detail


def _why(error: BaseException | None) -> str:
    """Return why a service ended, with the record where it was one's."""
    if isinstance(error, UserCodeError):
        return f"{error.message}, {error.detail}"
    return error.message if isinstance(error, PenstockError) else repr(error) if error else ""


def _several(texts: Sequence[str]) -> str:
    """Return texts in one line: the first few, and how many more there are."""
    shown = "; ".join(texts[:_MOST_TOLD])
    more = len(texts) - _MOST_TOLD
    return f"{shown}; and {more} more" if more > 0 else shown


class _Rates:
    """Records in and out per second, between two looks."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._counts = Counts()

    def after(self, counts: Counts) -> tuple[float, float]:
        now = time.monotonic()
        seconds, before = max(now - self._at, 1e-3), self._counts
        self._at, self._counts = now, counts
        rate_in = (counts.received - before.received) / seconds
        return max(0.0, rate_in), max(0.0, (counts.written - before.written) / seconds)
