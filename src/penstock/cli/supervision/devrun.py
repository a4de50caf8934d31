"""One run of ``penstock dev``: from starting the broker to leaving nothing behind."""

import queue
import time
from datetime import timedelta

from penstock.cli.brokerguard import Log, guarded_log
from penstock.cli.screen.partlines import count_text
from penstock.cli.screen.terminal import shortened
from penstock.cli.session import Session
from penstock.cli.stopping import Stop
from penstock.cli.supervision.board import Board
from penstock.cli.supervision.partprocess import PartProcess
from penstock.cli.supervision.plan import Plan, Unit
from penstock.cli.supervision.presence import announce_run
from penstock.cli.supervision.statusview import Status, StatusView
from penstock.cli.supervision.supervisor import Supervisor
from penstock.cli.supervision.watch import Watched, Watcher
from penstock.core.backoff import Backoff
from penstock.core.graph.parts import ON_SPARK
from penstock.core.status.report import PartReport
from penstock.core.units import span_text

__all__ = ["DevRun"]

_LOOK_SECONDS = 0.1
_REPORTS_WAITING = 10_000
_SOURCE_GRACE = timedelta(seconds=10)
_ENGINE_GRACE = timedelta(seconds=30)
"""Extra time for services and pipelines to stop, because Spark needs it."""


class DevRun:
    """The run of a plan. ``run`` returns the exit code when everything has ended."""

    def __init__(
        self, session: Session, plan: Plan, *, watched: Watched | None, view: StatusView, stop: Stop
    ) -> None:
        self.session = session
        self.plan = plan
        self.watched = watched
        self.view = view
        self.stop = stop
        self._began = time.monotonic()
        self._shown_at = 0.0
        self._reports: queue.Queue[tuple[str, PartReport]] = queue.Queue(_REPORTS_WAITING)
        self._board = Board(plan.units, clock=time.monotonic)
        dev = session.loaded.settings.dev
        self._supervisor = Supervisor(
            plan.units,
            start=self._start,
            board=self._board,
            note=view.note,
            backoff=Backoff(dev.restart_backoff, dev.restart_backoff_max),
        )

    def run(self) -> int:
        """Run until told to stop, the time is over, or everything has ended."""
        from penstock.backbone.declare import declare_application

        loaded, graph = self.session.loaded, self.session.application.graph
        note = self.view.note
        with (
            announce_run(self.session, self._board, command="dev", note=note) as presence,
            guarded_log(loaded.settings, self.session.places, note=presence.note) as log,
        ):
            presence.broker, presence.connection = lambda: log.status, log.connection
            declare_application(graph, log.connection)
            watcher = Watcher(self.watched, log.connection) if self.watched else None
            try:
                if watcher:
                    watcher.start()
                self._hint()
                self._loop(log, watcher)
                unwell = [row for row in self._board.rows() if not row.healthy]
                self._end(log)
            finally:
                # After an error, or a second Ctrl-C: at once.
                self._supervisor.kill()
                if watcher:
                    watcher.stop()
            self.view.note("stopping the broker")
        self._sum_up()
        if self.session.arguments.span and not self.stop.event.is_set() and unwell:
            names = ", ".join(f"{row.part} ({row.state})" for row in unwell)
            self.session.terminal.failure(f"not well at the end: {names}")
            return 1
        return self.stop.exit_code

    def _start(self, unit: Unit) -> PartProcess:
        def take(report: PartReport) -> None:
            self._reports.put((unit.name, report))

        return PartProcess.start(unit, session=self.session, take=take)

    def _loop(self, log: Log, watcher: Watcher | None) -> None:
        span = self.session.arguments.span
        while not self.stop.event.wait(_LOOK_SECONDS):
            self._tick(log, watcher)
            self._supervisor.look()
            if self._supervisor.all_ended:
                self.view.note("all parts have ended")
                return
            if span and time.monotonic() - self._began >= span.total_seconds():
                return

    def _tick(self, log: Log, watcher: Watcher | None = None) -> None:
        """Take the reports that have come, and show the status where it is due."""
        while True:
            try:
                process, report = self._reports.get_nowait()
            except queue.Empty:
                break
            if (news := self._board.take(report, process=process)) is not None:
                self.view.changed(news)
        interval = self.session.loaded.settings.dev.status_interval.total_seconds()
        if time.monotonic() - self._shown_at >= interval:
            self._shown_at = time.monotonic()
            self.view.show(self._status(log, watcher))

    def _status(self, log: Log, watcher: Watcher | None) -> Status:
        logs = shortened(self.session.loaded.places.logs)
        return Status(
            app=self.session.application.graph.app,
            broker=f"{log.status}, up {span_text(time.monotonic() - self._began)}",
            rows=self._board.rows(),
            watched=watcher.name if watcher else "",
            values=watcher.rows() if watcher else (),
            hint=f"Ctrl-C ends; logs in {logs}",
        )

    def _hint(self) -> None:
        for name in self.plan.left_out:
            command = f"penstock run {self.session.arguments.app} --part {name}"
            self.view.note(f"{name} needs a terminal of its own: {command}")

    def _end(self, log: Log) -> None:
        """Stop everything in order: what brings records first."""
        self.view.note("stopping")
        grace = self.session.loaded.settings.services.stop_timeout + _ENGINE_GRACE
        incoming = ["source", "gateway"]
        self._supervisor.stop(incoming, grace=_SOURCE_GRACE, tick=lambda: self._tick(log))
        for kinds in (["service", *ON_SPARK], ["sink"]):
            self._supervisor.stop(kinds, grace=grace, tick=lambda: self._tick(log))
        self._tick(log)

    def _sum_up(self) -> None:
        self.view.close()
        for row in self._board.rows():
            counts = row.counts
            words = [f"in {count_text(counts.received)}", f"out {count_text(counts.written)}"]
            if counts.dead_lettered:
                words.append(f"dead letters {count_text(counts.dead_lettered)}")
            if row.restarts:
                words.append(f"restarts {row.restarts}")
            self.session.terminal.note(f"{row.part}: {', '.join(words)}")
        where = shortened(self.session.loaded.places.home)
        self.session.terminal.note(f"ended; the log and all state are kept in {where}")
