"""Show Spark's progress by its own count of tasks."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["TaskCount", "tasks_told"]

_LOOK_SECONDS = 0.5


class TaskCount:
    """Counts the tasks of all stages that were seen; a stage that is gone from sight is done.

    Stages that have not begun are not counted: nobody knows yet into how many tasks they are cut.
    """

    def __init__(self) -> None:
        self._stages: dict[int, tuple[int, int]] = {}

    def take(self, active: dict[int, tuple[int, int]]) -> tuple[int, int]:
        """Take the stages under way, tasks done and all; return how many are done of all."""
        gone = {number: (all_, all_) for number, (_, all_) in self._stages.items()}
        self._stages = gone | active
        done, every = zip(*self._stages.values(), strict=True) if self._stages else ((), ())
        return sum(done), sum(every)


@contextmanager
def tasks_told(spark: SparkSession, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Tell how many tasks are done of how many, twice a second, while the block runs."""
    ended, count = threading.Event(), TaskCount()
    tracker: Any = spark.sparkContext.statusTracker()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            found = {number: tracker.getStageInfo(number) for number in tracker.getActiveStageIds()}
            active = {
                number: (each.numCompletedTasks, each.numTasks)
                for number, each in found.items()
                if each is not None
            }
            tell(*count.take(active))

    watcher = threading.Thread(target=look, name="tasks", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
