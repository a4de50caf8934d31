"""What a service says about itself, as a function of how it stands."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.core.panes.panecounts import PANE_KINDS
from penstock.core.status.eventtimes import EventTimes
from penstock.core.status.exposition import series
from penstock.core.status.rates import Rates
from penstock.core.status.report import Counts, PartReport, PartState
from penstock.errors import PenstockError, UserCodeError
from penstock.services.step.retries import Retried
from penstock.services.worker.measures import MonotonicCounter

__all__ = ["Restoring", "Standing", "Teller", "error_text"]

_SERIES = {
    "keys": "state_keys",
    "timers": "state_timers",
    "state records": "state_records",
    "late answers": "late_answers_total",
    "actors in memory": "actors",
    "actors started": "actors_started_total",
    "actors waked": "actors_waked_total",
    "actors passivated": "actors_passivated_total",
    "late records": "late_records_total",
    "ahead records": "ahead_records_total",
    **{f"panes {kind.replace('_', ' ')}": series("panes_total", kind=kind) for kind in PANE_KINDS},
}
"""The facts of steps as Prometheus knows them."""
_MOST_SHOWN = 3
"""So many troubles are told in words, the others counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """A task on its way up."""

    task: str
    trouble: str = ""
    restored: int = 0
    expected: int = 0
    seconds_left: float | None = None
    progress: str = "0%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a worker stands at one moment."""

    at: datetime
    joined: bool = False
    stopping: bool = False
    slow: str = ""
    """A call that takes too long, in words."""
    lost: str = ""
    """Topics of the service that are gone, in words."""
    trouble: str = ""
    """What keeps the whole worker from its work."""
    restoring: Sequence[Restoring] = ()
    setbacks: Mapping[str, str] = field(default_factory=dict)
    """Why tasks were begun again that have committed nothing since."""
    retries: Sequence[Retried] = ()
    running: Sequence[Partition] = ()
    counts: Counts = field(default_factory=Counts)
    facts: Counter[str] = field(default_factory=Counter)
    event_times: EventTimes = field(default_factory=EventTimes)
    measured: Mapping[str, float] = field(default_factory=dict)
    """Series of what the worker measures."""
    failures: int = 0
    """How often a task began again."""
    copies: int = 0
    copied: int = 0
    """How many standby copies there are, and how many records were read for them."""
    on_disk: bool = False
    resumed: Offsets = field(default_factory=dict)
    """Where tasks went on from their state's own positions."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Broadcast tables that are not whole yet, and how far they are read."""
    stale_tables: Mapping[str, str] = field(default_factory=dict)
    """Broadcast tables that are not kept current, and why."""
    skipped: int = 0
    """How many offsets retention deleted before they were read."""
    last_dead_letter: str = ""

    def reason(self) -> str:
        """Return what keeps it from its work, wholly or in part; empty: nothing does."""
        setbacks = dict(self.setbacks)
        setbacks |= {each.task: each.trouble for each in self.restoring if each.trouble}
        troubles = [f"partition {task}: {trouble}" for task, trouble in setbacks.items()]
        troubles += [f"table {name}: {trouble}" for name, trouble in self.stale_tables.items()]
        failing = [each.trouble for each in self.retries if each.lasting]
        return self.slow or self.lost or self.trouble or _several([*troubles, *failing])

    def all_run(self, state: PartState) -> bool:
        """Return whether all partitions are worked on, be it that a record holds one up."""
        held_up = state == "degraded" and not (self.trouble or self.restoring)
        return state == "running" or held_up


class Teller:
    """Makes reports of standings, one after another: it knows since when, and how fast."""

    def __init__(self, part: str, *, delivery: str, began: float) -> None:
        self._part = part
        self._delivery = delivery.replace("_", " ")
        self._degraded_at: datetime | None = None
        self._rising = MonotonicCounter()
        self._rates = Rates(began)

    def state(self, standing: Standing) -> tuple[PartState, str]:
        """Return the state of the service, and why it is so."""
        reason = standing.reason()
        if not reason:
            self._degraded_at = None
        elif self._degraded_at is None:
            self._degraded_at = standing.at
        if standing.stopping:
            return "stopping", reason
        if self._degraded_at is not None:
            since = self._degraded_at.isoformat(timespec="seconds")
            return "degraded", reason if " since " in reason else f"{reason}, since {since}"
        up = standing.joined and not standing.restoring
        return ("running" if up else "starting"), ""

    def report(
        self,
        standing: Standing,
        state: PartState,
        reason: str,
        *,
        now: float,
        lag: int | None = None,
    ) -> PartReport:
        """Return the report; ``now`` are seconds of the monotonic clock."""
        rate_in, rate_out = self._rates.since_last(standing.counts, at=now)
        at = standing.at.timestamp()
        return PartReport(
            part=self._part,
            kind="service",
            state=state,
            at=at,
            reason=reason,
            counts=standing.counts,
            lag=lag,
            rate_in=rate_in,
            rate_out=rate_out,
            detail=self._detail(standing),
            metrics=self._metrics(standing) | standing.event_times.series(at),
        )

    def _metrics(self, standing: Standing) -> dict[str, float]:
        restoring = standing.restoring
        found = dict(standing.measured)
        found["restarts_total"] = found.get("restarts_total", 0) + standing.failures
        found["skipped_offsets_total"] = standing.skipped
        found["restoring_partitions"] = len(restoring)
        found["restored_records"] = sum(each.restored for each in restoring)
        found["restore_expected_records"] = sum(each.expected for each in restoring)
        lefts = [each.seconds_left for each in restoring if each.seconds_left is not None]
        if lefts:
            found["restore_left_seconds"] = max(lefts)
        found["running_partitions"] = len(standing.running)
        places = {(each.place.topic, each.place.partition) for each in standing.retries}
        found["retrying_partitions"] = len(places)
        found["standby_partitions"], found["standby_records"] = standing.copies, standing.copied
        for fact, number in standing.facts.items():
            name = _SERIES.get(fact) or series("operator_facts_total", kind=fact)
            rises = "_total" in name
            found[name] = self._rising.never_less(name, number) if rises else number
        return found

    def _detail(self, standing: Standing) -> dict[str, str]:
        running = sorted(f"{topic}[{number}]" for topic, number in standing.running)
        detail = {"delivery": self._delivery, "partitions": ", ".join(running) or "none"}
        if restoring := [f"{each.task}: {each.progress}" for each in standing.restoring]:
            detail["restoring"] = ", ".join(restoring)
        if standing.tables:
            read = (f"{name}: {words}" for name, words in standing.tables.items())
            detail["broadcast tables"] = ", ".join(read)
        if retrying := [each.words(standing.at) for each in standing.retries]:
            detail["retrying"] = _several(retrying)
        detail |= {name: str(number) for name, number in standing.facts.items()}
        if "keys" in detail and standing.on_disk:
            detail["keys"] = f"about {detail['keys']}"  # RocksDB's estimate
        if watermark := standing.event_times.words(standing.at.timestamp()):
            detail["watermark"] = watermark
        if standing.resumed:
            places = [
                f"{topic}[{at}] at {offset}" for (topic, at), offset in standing.resumed.items()
            ]
            detail["offsets"] = f"forgotten by the group, the state's own used: {_several(places)}"
        if standing.skipped:
            detail["skipped"] = (
                f"{standing.skipped} offsets, deleted by retention before they were read"
            )
        if standing.last_dead_letter:
            detail["last dead letter"] = standing.last_dead_letter
        return detail


def error_text(error: BaseException | None) -> str:
    """Return why a service ended, with the record where it was one's; empty: it was told to."""
    if error is None:
        return ""
    if isinstance(error, UserCodeError):
        return f"{error.message}, {error.detail}"
    return error.message if isinstance(error, PenstockError) else repr(error)


def _several(texts: Sequence[str]) -> str:
    """Return texts in one line: the first few, and how many more there are."""
    shown = "; ".join(texts[:_MOST_SHOWN])
    more = len(texts) - _MOST_SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown
