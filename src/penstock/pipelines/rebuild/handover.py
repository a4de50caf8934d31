"""Hand the output of a pipeline over from one generation to the next."""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from penstock.backbone.declare import declare_anew
from penstock.backbone.log.positions import PositionStore
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Data, Lake, Table
from penstock.core.graph.parts import Pipeline
from penstock.pipelines.checkpoint.batches import query_id
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.lake.table import lake_path
from penstock.pipelines.program.checkpointfile import kept_size
from penstock.pipelines.rebuild.switchover import append_stream, replace_lake, replace_table
from penstock.pipelines.sink.begun import BegunBatches
from penstock.pipelines.sink.kafka import end_run, query_name
from penstock.pipelines.sink.kafkatask import Output, run_name, task_name
from penstock.pipelines.spark.session import shuffle_partitions

__all__ = ["Handover"]


class Handover:
    """Knows where each generation of one pipeline writes, and under which name.

    A generation writes to a shadow of the output until it is the current one. Every method may be
    called again after it was interrupted.
    """

    def __init__(self, name: str, pipeline: Pipeline, site: Site, spark: SparkSession) -> None:
        self._name = name
        self._data = pipeline.writes
        self._site = site
        self._spark = spark
        self._files = Files(spark)
        self._topics = Topics(site.connection)

    def run_name(self, number: int) -> str:
        """Return the name of the run that computes a generation."""
        return f"{self._name}~{number}"

    def shadow(self, number: int) -> Data:
        """Return where a generation writes until it is the current one."""
        name = f"{self._data.name}.rebuild.{number}"
        if isinstance(self._data, Lake):
            return replace(self._data, name=name)
        return replace(self._data, topic=replace(self._data.topic, name=name, retention=None))

    def switch(self, number: int, *, old: str, new: str, step: Callable[[str], None]) -> int | None:
        """Make the output that of a generation, given the checkpoints of the old one and of it.

        The old one writes nothing more. Return how many keys of a table are different, or how many
        records a stream got.
        """
        shadow = self.shadow(number)
        if isinstance(shadow, Lake):
            replace_lake(
                self._spark,
                shadow,
                old=lake_path(self._data.name, self._site),
                new=lake_path(shadow.name, self._site),
                fenced=query_id(self._files, old),
            )
            return None
        topics = {"old": self._data.name, "new": shadow.topic.name}
        self._fence(self._name, old, topics["old"])
        # The new one, too: only then all that it has committed can be read.
        self._fence(self.run_name(number), new, topics["new"])
        BegunBatches(self._site.connection).hand_over(self.run_name(number), to=self._name)
        step("fenced")
        name, connection = f"{self._name}.rebuild", self._site.connection
        if not isinstance(self._data, Table):
            return append_stream(connection, name, **topics)
        changed = replace_table(self._spark, connection, name, **topics)
        declare_anew(self._data, connection)
        return changed

    def remove(self, checkpoint: str) -> None:
        """Remove a checkpoint, and what the log keeps for its query."""
        output = self._output(self._name, checkpoint, self._data.name)
        if output is not None and not isinstance(self._data, Lake):
            store = PositionStore(self._site.connection)
            for number in range(self._tasks(checkpoint)):
                store.forget(task_name(output.name, number))
            store.forget(run_name(output.name))
        self._files.remove(checkpoint)

    def remove_shadow(self, number: int) -> None:
        """Remove what a generation has written before it was the current one."""
        shadow = self.shadow(number)
        if isinstance(shadow, Lake):
            self._files.remove(lake_path(shadow.name, self._site))
            return
        BegunBatches(self._site.connection).forget(self.run_name(number))
        if self._topics.exists(shadow.topic.name):
            self._topics.delete([shadow.topic.name])

    def _fence(self, name: str, checkpoint: str, topic: str) -> None:
        if (output := self._output(name, checkpoint, topic)) is not None:
            end_run(output, tasks=self._tasks(checkpoint))

    def _output(self, name: str, checkpoint: str, topic: str) -> Output | None:
        """Return where the query of a checkpoint writes; None if it never did."""
        query = query_id(self._files, checkpoint)
        if query is None:
            return None
        return Output(self._site.connection, query_name(name, query), topic)

    def _tasks(self, checkpoint: str) -> int:
        return max(kept_size(self._files, checkpoint), shuffle_partitions(self._spark))
