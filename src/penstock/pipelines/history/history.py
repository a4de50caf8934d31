"""The history of a pipeline's streams: copied in the order of the log, read before it.

The copy lies beside the checkpoint in numbered pieces, one for each batch. The file with the seams
is written when the copy is complete. A start that does not find it copies again; one that finds it
continues. While there are pieces to read, the log waits, so no batch has both.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.site import Site
from penstock.core.graph.data import Archive, OnLog, Stream
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.rules.archive import APPENDED_AT, OFFSET, PARTITION
from penstock.errors import ConfigurationError
from penstock.pipelines.checkpoint.batches import Offsets
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.gate.reading import topic_rows
from penstock.pipelines.history.archive import ArchiveVersion, deduplicated, kept_now, with_kept
from penstock.pipelines.lake.table import lake_type

__all__ = ["Histories", "History"]

PIECE_RECORDS = 1_000_000
PIECE_BYTES = 64 << 20
"""The most records of a history in one batch."""

_FILE = "history.json"
_THROUGH = "history-through"
_DIRECTORY = "history"
_ROW_GROUP_BYTES = 512 << 20
"""More than a piece has: what is one row group is read by one task, in order."""
_FIRST_MILLISECOND, _STEP_MILLISECONDS = 1_000_000_000_000, 1000
_SO_FAR = "_penstock_so_far"


@dataclass(frozen=True, slots=True)
class History:
    """The copy of one stream's history, and by partition where the log goes on."""

    pieces: int
    records: int
    seam: Mapping[int, int]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Return the stored copy."""
        seam = {int(number): offset for number, offset in found["seam"].items()}
        return cls(found["pieces"], found["records"], seam)


class Histories:
    """The histories of one pipeline, which may have none."""

    def __init__(
        self, graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession, *, checkpoint: str
    ) -> None:
        self._graph = graph
        self._pipeline = pipeline
        self._site = site
        self._spark = spark
        self._files = Files(spark)
        self._checkpoint = checkpoint
        self._archives = {
            data.name: data.archive for data in pipeline.reads if data.archive is not None
        }
        self._found: dict[str, History] = {}
        self._read: dict[str, int] = {}
        self._followed = False
        self._through = not self._archives

    @property
    def seams(self) -> Offsets:
        """Return the offsets from which the log is read."""
        return {
            (self._archives[stream].stream.topic.name, number): offset
            for stream, history in self._found.items()
            for number, offset in history.seam.items()
        }

    @property
    def records(self) -> int:
        """Return the total number of records."""
        return sum(history.records for history in self._found.values())

    @property
    def through(self) -> bool:
        """Whether all of it is read, and the log is no longer held back."""
        return self._through

    @property
    def left(self) -> int:
        """Return about how many records are not read yet."""
        if self._through:
            return 0
        return sum(
            history.records * (history.pieces - self._read.get(stream, 0)) // history.pieces
            for stream, history in self._found.items()
            if history.pieces
        )

    def load(self) -> bool:
        """Read what an earlier start has settled; return whether nothing is left to settle.

        Raises ConfigurationError where a checkpoint was made with another history, or with none.
        """
        there = self._files.names(self._checkpoint)
        if _FILE in there:
            said = json.loads(self._files.text(f"{self._checkpoint}/{_FILE}"))
            self._found = {stream: History.of(found) for stream, found in said.items()}
            self._through = _THROUGH in there
        if set(self._found) == set(self._archives):
            if self._archives and self._through:
                self._remove_copies()
            return True
        if _FILE in there or self._files.names(f"{self._checkpoint}/offsets"):
            raise self._changed()
        return False

    def settle(self) -> None:
        """Copy the histories, then write the seams down; what a killed start left is removed."""
        self._files.remove(f"{self._checkpoint}/{_DIRECTORY}")
        for stream, archive in self._archives.items():
            self._found[stream] = self._copied(archive)
        made = {stream: asdict(history) for stream, history in self._found.items()}
        self._files.write(f"{self._checkpoint}/{_FILE}", json.dumps(made, indent=1))

    def rows(
        self, data: OnLog, *, per_batch: int | None, lossy: bool = False, headers: bool = False
    ) -> DataFrame:
        """Return the rows of an input as a stream: its history, if it has any, and its topic.

        ``headers`` are of the topic; an archive has none.
        """
        archive = data.archive if isinstance(data, Stream) else None
        history = None if archive is None else self._found[data.name]
        log = topic_rows(
            self._spark,
            self._site.connection,
            data.topic.name,
            per_batch=per_batch if self._through else 0,
            lossy=lossy,
            start=history.seam if history else None,
            headers=headers,
        )
        if archive is None or history is None:
            return log
        reader: Any = self._spark.readStream.schema(lake_type(archive))
        pieces = reader.option("maxFilesPerTrigger", "1").parquet(self._directory(archive))
        if len(history.seam) > 1:
            # As rows of the log are: a task for each partition, in its order.
            pieces = pieces.repartition(len(history.seam), PARTITION)
        return with_kept(log, pieces, archive.stream)

    def follow(self, progress: Any) -> None:
        """Take note of a finished batch."""
        # Spark names a directory with a scheme that may be written in several ways.
        checkpoint = "/".join(self._checkpoint.split("/")[-2:])
        for stream in self._found:
            place = f"/{checkpoint}/{_DIRECTORY}/{stream}]"
            for source in progress["sources"]:
                if source["description"].endswith(place):
                    self._read[stream] = _pieces_read(source["endOffset"])
        self._followed = True

    @property
    def ended(self) -> bool:
        """Whether all of it is in finished batches, so that the query must be started again."""
        return (
            not self._through
            and self._followed
            and all(self._read.get(each, 0) >= found.pieces for each, found in self._found.items())
        )

    def finish(self) -> None:
        """Record that all of it is read, and remove the copies; the query must not run."""
        self._files.write(f"{self._checkpoint}/{_THROUGH}", "")
        self._through = True
        self._remove_copies()

    def detail(self) -> dict[str, str]:
        """Return how far it is, in words; nothing once the log is read."""
        if self._through or not self.records:
            return {}
        read = self.records - self.left
        return {"history": f"{read / self.records:.0%} of {self.records:,} records"}

    def metrics(self) -> dict[str, float]:
        """Return how far it is, in numbers; nothing for a pipeline without history."""
        if not self._archives:
            return {}
        return {"history_records": self.records, "history_records_left": self.left}

    def _directory(self, archive: Archive[Any]) -> str:
        return f"{self._checkpoint}/{_DIRECTORY}/{archive.stream.name}"

    def _copied(self, archive: Archive[Any]) -> History:
        directory = self._directory(archive)
        kept = kept_now(self._graph, archive, self._site, self._spark)
        writer: Any = _in_order(kept).write.mode("overwrite")
        writer.option("parquet.block.size", str(_ROW_GROUP_BYTES)).parquet(directory)
        records = self._spark.read.schema(lake_type(archive)).parquet(directory).count()
        return History(self._number_pieces(directory), records, kept.seam)

    def _remove_copies(self) -> None:
        for archive in self._archives.values():
            directory = self._directory(archive)
            if self._files.names(directory):
                self._files.remove(directory)
            # Spark goes on to look into it.
            self._files.make(directory)

    def _number_pieces(self, directory: str) -> int:
        """Give pieces the times by which Spark takes them one after the other; return how many."""
        names = [each for each in self._files.names(directory) if each.startswith("part-")]
        names.sort(key=lambda each: int(each.split("-")[1]))
        for number, each in enumerate(names):
            at = _FIRST_MILLISECOND + number * _STEP_MILLISECONDS
            self._files.set_modified(f"{directory}/{each}", at)
        times = self._files.modified(directory)
        found = [times[each] for each in names]
        if found != sorted(set(found)):
            raise ConfigurationError(
                f"{directory}: this file system does not keep modification times",
                code="history.times",
                detail="the pieces of a history are read in the order of their modification times",
                hint="set spark.checkpoint_dir to a disk, or to HDFS",
            )
        return len(names)

    def _changed(self) -> ConfigurationError:
        had, now = _with_history(self._found), _with_history(self._archives)
        return ConfigurationError(
            f"pipeline {self._pipeline.name!r} began {had}, and would continue {now}",
            code="history.changed",
            detail=f"its checkpoint {self._checkpoint} can only continue as it began",
            hint=f"give it a new name, or recompute it: penstock rebuild {self._pipeline.name}",
        )


def _with_history(streams: Iterable[str]) -> str:
    names = ", ".join(streams)
    return f"with the history of {names}" if names else "without history"


def _in_order(kept: ArchiveVersion) -> DataFrame:
    """Return an archive in the order of the log, cut into pieces as partitions of the frame.

    Within a partition of the topic by offset; between them by the highest timestamp so far, which
    never goes back.
    """
    rows = deduplicated(kept.rows)
    so_far = Window.partitionBy(PARTITION).orderBy(OFFSET).rowsBetween(Window.unboundedPreceding, 0)
    pieces = max(ceil(kept.rows.count() / PIECE_RECORDS), ceil(kept.size_bytes / PIECE_BYTES), 1)
    return (
        rows.withColumn(_SO_FAR, F.max(APPENDED_AT).over(so_far))
        .repartitionByRange(pieces, _SO_FAR, OFFSET)
        .sortWithinPartitions(PARTITION, OFFSET)
        .drop(_SO_FAR)
    )


def _pieces_read(offset: str | Mapping[str, int] | None) -> int:
    found = json.loads(offset) if isinstance(offset, str) else offset
    return 0 if found is None else int(found["logOffset"]) + 1
