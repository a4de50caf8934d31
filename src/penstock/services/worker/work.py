"""What a worker has and knows, from one membership of its group to the next."""

from dataclasses import dataclass, field
from threading import get_ident
from time import monotonic

from penstock.services.task.disk import Disk
from penstock.services.task.following import Following
from penstock.services.task.task import Task
from penstock.services.worker.assignment import Assignment
from penstock.services.worker.care import Care
from penstock.services.worker.measures import Measures
from penstock.services.worker.membership import PollInterval
from penstock.services.worker.topicwatch import TopicWatch

__all__ = ["Activity", "Work"]


class Activity:
    """What a worker is doing now; written by its thread, read by any."""

    def __init__(self, service: str) -> None:
        self.service = service
        self.thread = 0
        """The thread it works in."""
        self.busy_since: float | None = None
        """Since when it is busy with what it has in hand, by the monotonic clock."""
        self._task: Task | None = None

    def start(self) -> None:
        """Take note of the thread that works."""
        self.thread = get_ident()

    def begin(self, task: Task | None = None) -> float:
        """Be busy, with a task or with all of them; return since when."""
        self._task = task
        self.busy_since = now = monotonic()
        return now

    def end(self) -> None:
        """Be busy no more."""
        self._task = self.busy_since = None

    @property
    def handling(self) -> str:
        """Return the records in hand, in words; empty: none are."""
        records = () if (task := self._task) is None else task.in_hand()
        if not records:
            return ""
        first, last = records[0], records[-1]
        text = f"{first.topic()}[{first.partition()}] offset {first.offset()}"
        return text if first is last else f"{text} to {last.offset()}"


@dataclass(slots=True, kw_only=True)
class Work:
    """The work of one worker: changed by its thread, read by the reporter's."""

    group: str
    assignment: Assignment
    disk: Disk
    following: Following
    care: Care
    poll_interval: PollInterval
    activity: Activity
    topics: TopicWatch
    measures: Measures = field(default_factory=Measures)
    trouble: str = ""
    """What keeps the worker from its work now; empty: nothing."""
    setback: str = ""
    """Why it began again, until it has committed something."""
