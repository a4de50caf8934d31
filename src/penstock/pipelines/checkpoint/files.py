"""Read a query's checkpoint through Spark's file systems, because it may be on any of them."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from penstock.backbone.client.logrecord import Partition
from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph

__all__ = [
    "Files",
    "Offsets",
    "PlannedBatch",
    "checkpoint_at",
    "committed_batches",
    "committed_offsets",
    "interrupted",
    "offsets_of",
    "planned_batch",
    "planned_batches",
    "query_id",
]

Offsets = dict[Partition, int]


def checkpoint_at(graph: Graph, pipeline: str, site: Site) -> str:
    """Return where the progress and state of a pipeline are kept."""
    root = site.settings.spark.checkpoint_dir or str(site.places.checkpoints)
    return f"{root.rstrip('/')}/{graph.app}/{pipeline}"


def committed_offsets(spark: SparkSession, checkpoint: str) -> Offsets:
    """Return the offsets up to which a query has finished; none for a new query.

    Spark writes ``offsets/N`` when it begins batch N and ``commits/N`` when the batch is done.
    """
    files = Files(spark)
    done = committed_batches(files, checkpoint)
    if not done:
        return {}
    return planned_batch(files, checkpoint, done[-1]).end


class PlannedBatch(NamedTuple):
    """What Spark wrote down when it began a batch."""

    end: Offsets
    watermark: int
    """In milliseconds."""


def planned_batch(files: "Files", checkpoint: str, batch: int) -> PlannedBatch:
    """Return how far a batch reaches, and the watermark it began with."""
    _, said, *sources = files.text(f"{checkpoint}/offsets/{batch}").splitlines()
    end: Offsets = {}
    for line in sources:
        if line.startswith("{"):
            end |= offsets_of(line)
    return PlannedBatch(end, json.loads(said)["batchWatermarkMs"])


def committed_batches(files: "Files", checkpoint: str) -> list[int]:
    """Return the numbers of the finished batches that Spark still remembers, in order."""
    return _numbered(files, f"{checkpoint}/commits")


def interrupted(files: "Files", checkpoint: str) -> bool:
    """Return whether a batch was begun and not finished."""
    return planned_batches(files, checkpoint)[-1:] != committed_batches(files, checkpoint)[-1:]


def query_id(files: "Files", checkpoint: str) -> str | None:
    """Return the id that Spark gave the query of a checkpoint; None: it was never started."""
    if "metadata" not in files.names(checkpoint):
        return None
    return str(json.loads(files.text(f"{checkpoint}/metadata"))["id"])


def planned_batches(files: "Files", checkpoint: str) -> list[int]:
    """Return the numbers of the batches that were begun, as far as Spark remembers, in order."""
    return _numbered(files, f"{checkpoint}/offsets")


def _numbered(files: "Files", directory: str) -> list[int]:
    return sorted(int(name) for name in files.names(directory) if name.isdecimal())


def offsets_of(text: str | Mapping[str, Any] | None) -> Offsets:
    """Return the offsets that Spark gives for a Kafka source; empty for anything else."""
    found = json.loads(text) if isinstance(text, str) else text
    if not isinstance(found, Mapping):
        return {}
    return {
        (topic, int(number)): int(offset)
        for topic, partitions in found.items()
        if isinstance(partitions, Mapping)
        for number, offset in partitions.items()
        if number.isdecimal()
    }


class Files:
    """The few calls to Hadoop's file systems that PySpark does not offer."""

    def __init__(self, spark: SparkSession) -> None:
        self._java: Any = spark.sparkContext._jvm  # noqa: SLF001
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        self._configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def names(self, directory: str) -> list[str]:
        """Return the names of the files in a directory; none where there is no such directory."""
        system, path = self._at(directory)
        if not system.exists(path):
            return []
        return [each.getPath().getName() for each in system.listStatus(path)]

    def text(self, file: str) -> str:
        """Return what a file holds."""
        system, path = self._at(file)
        stream = system.open(path)
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def data(self, file: str) -> bytes:
        """Return the bytes of a file."""
        system, path = self._at(file)
        stream = system.open(path)
        try:
            return bytes(self._java.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all it holds; nothing happens if there is none."""
        found = self._java.org.apache.hadoop.fs.Path(path)
        found.getFileSystem(self._configuration).delete(found, True)  # noqa: FBT003 - Java's own

    def write(self, file: str, content: str | bytes) -> None:
        """Write a file atomically: it replaces an older one when it is complete."""
        content = content.encode() if isinstance(content, str) else content
        fs = self._java.org.apache.hadoop.fs
        path, unfinished = fs.Path(file), fs.Path(f"{file}.part")
        stream = path.getFileSystem(self._configuration).create(unfinished)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        rename = getattr(fs, "Options$Rename")
        how = self._gateway.new_array(rename, 1)
        how[0] = rename.OVERWRITE
        context = fs.FileContext.getFileContext(path.toUri(), self._configuration)
        context.rename(context.makeQualified(unfinished), context.makeQualified(path), how)

    def modified(self, directory: str) -> dict[str, int]:
        """Return the names of the files in a directory, with their times in milliseconds."""
        system, path = self._at(directory)
        found = system.listStatus(path)
        return {each.getPath().getName(): int(each.getModificationTime()) for each in found}

    def set_modified(self, file: str, at: int) -> None:
        """Set the modification time of a file, in milliseconds, if the file system keeps it."""
        system, path = self._at(file)
        system.setTimes(path, at, -1)

    def make(self, directory: str) -> None:
        """Make a directory, where it is not there, and those above it."""
        system, path = self._at(directory)
        system.mkdirs(path)

    def _at(self, text: str) -> tuple[Any, Any]:
        path = self._java.org.apache.hadoop.fs.Path(text)
        return path.getFileSystem(self._configuration), path
