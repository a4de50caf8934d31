"""Prepare histories in a separate thread, so that other pipelines do not wait for a copy."""

import threading
from uuid import uuid4

from pyspark.sql import SparkSession

from penstock.core.graph.parts import Pipeline
from penstock.errors import PenstockError
from penstock.pipelines.history.history import Histories
from penstock.pipelines.spark.failures import of_query

__all__ = ["Settling"]

_LOOK_SECONDS = 0.5


class Settling:
    """The histories of one pipeline until it may start; call ``ready`` repeatedly."""

    def __init__(self, histories: Histories, pipeline: Pipeline, spark: SparkSession) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._histories = histories
        self._group = f"history-{uuid4().hex}"
        self._thread: threading.Thread | None = None
        self._error: PenstockError | None = None
        self._done = False

    def ready(self) -> bool:
        """Whether seams and copies exist; start making them if not.

        Raises what went wrong; the next call starts again.
        """
        if self._done or (self._thread is None and self._histories.load()):
            self._done = True
            return True
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._group)
            self._thread.start()
        if self._thread.is_alive():
            return False
        self._thread, error, self._error = None, self._error, None
        if error is not None:
            raise error
        self._done = True
        return True

    def stop(self) -> None:
        """Abandon an unfinished copy; the next start makes a new one."""
        while self._thread is not None and self._thread.is_alive():
            self._spark.sparkContext.cancelJobGroup(self._group)
            self._thread.join(_LOOK_SECONDS)

    def _work(self) -> None:
        context = self._spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", self._pipeline.name)
        context.setJobGroup(self._group, "copying a history", interruptOnCancel=True)
        try:
            self._histories.settle()
        except PenstockError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - raised by whoever asks
            self._error = of_query(error, self._pipeline)
