"""Writes the archive of classes that Spark maps, by a session that is there for nothing else."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.errors import TransientError
from penstock.pipelines.spark.classes import archive_words
from penstock.pipelines.spark.session import local_session

__all__ = ["write_archive"]

WRITE_SECONDS = 600
"""How long a JVM may take to end that writes an archive; on a quiet machine it takes 15 s."""

_FILES = 2
_CLIENTS = ("consumer.KafkaConsumer", "producer.KafkaProducer", "admin.KafkaAdminClient")
_NOWHERE = "127.0.0.1:1"


def write_archive() -> bool:
    """Write the archive, if it is missing and nobody else writes it; tell whether it did.

    TransientError: the JVM did not end in time.
    """
    words = archive_words(writes=True)
    if not any(word.startswith("-XX:ArchiveClassesAtExit=") for word in words):
        return False
    with tempfile.TemporaryDirectory(prefix="penstock-classes-") as directory:
        spark = local_session(Path(directory) / "session", java=words)
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - there is no public way
        _load_classes(spark, Path(directory))
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(WRITE_SECONDS)
        except subprocess.TimeoutExpired as error:
            gateway.proc.kill()
            raise TransientError(
                "the archive of Spark's classes was not written in time",
                code="spark.archive",
                detail=f"after {WRITE_SECONDS} s",
            ) from error
    return bool(archive_words())


def _load_classes(spark: SparkSession, directory: Path) -> None:
    """Run a stream with state, Python and the lake: so the JVM loads what streams load."""
    from pyspark.sql import functions as f

    given = directory / "in"
    given.mkdir()
    for number in range(_FILES):
        lines = (f'{{"at": "2026-01-01T00:0{n}:00Z", "n": {n}}}\n' for n in range(9))
        (given / f"{number}.json").write_text("".join(lines), encoding="utf-8")
    rows = spark.readStream.schema("at timestamp, n long").option("maxFilesPerTrigger", 1)
    counts = (
        rows.json(str(given))
        .mapInPandas(_unchanged, "at timestamp, n long")
        .withWatermark("at", "1 minute")
        .groupBy(f.window("at", "1 minute"), "n")
        .agg(f.count("*").alias("count"), f.sum("n").alias("sum"))
    )

    def write(batch: Any, _number: int) -> None:
        batch.write.format("delta").mode("append").save(str(directory / "table"))

    writing = counts.writeStream.outputMode("update").foreachBatch(write)
    checkpoint = str(directory / "checkpoint")
    writing.option("checkpointLocation", checkpoint).trigger(
        availableNow=True
    ).start().awaitTermination()
    spark.read.format("delta").load(str(directory / "table")).collect()
    _make_clients(spark)


def _unchanged(frames: Iterator[Any]) -> Iterator[Any]:
    return frames


def _make_clients(spark: SparkSession) -> None:
    """Make clients of Kafka and close them: most of their classes are loaded without a broker."""
    jvm: Any = spark._jvm  # noqa: SLF001 - there is no public way
    texts = "org.apache.kafka.common.serialization."
    for name in _CLIENTS:
        settings = jvm.java.util.HashMap()
        settings["bootstrap.servers"] = _NOWHERE
        settings["key.deserializer"] = settings["value.deserializer"] = (
            f"{texts}ByteArrayDeserializer"
        )
        settings["key.serializer"] = settings["value.serializer"] = f"{texts}ByteArraySerializer"
        made = jvm
        for part in f"org.apache.kafka.clients.{name}".split("."):
            made = getattr(made, part)
        client = made.create(settings) if name.startswith("admin") else made(settings)
        client.close()
