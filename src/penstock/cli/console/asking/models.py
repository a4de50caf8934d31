"""The models of an application: their versions, and what its streams say of them."""

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Self

from penstock.cli.console.reach import Reach
from penstock.cli.console.tail import decoder_of, record_document
from penstock.core.graph.data import OnLog
from penstock.core.graph.graph import Graph
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.errors import ConfigurationError, DataError, PenstockError
from penstock.models.version import ModelVersion
from penstock.serving.desk.offers import Asked

__all__ = ["ModelNews", "ModelViews", "model_tables"]

_VERSIONS = 200
"""So many versions are told, the newest."""
_READ = 20_000
_SAID = 10
"""So many of the newest records of each stream that names models."""
_AGAIN_SECONDS = 5.0


def model_tables(graph: Graph) -> list[OnLog]:
    """Return the tables that hold versions of models."""
    return [data for data in graph.on_log if data.record == record_type(ModelVersion)]


class ModelViews:
    """Reads the versions, and the newest records that name a model."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def document(self, asked: Asked) -> dict[str, Any]:
        """Return the versions of all models, and what streams say of models."""
        del asked
        graph = self._reach.application
        return {
            "tables": [self._table(graph, data) for data in model_tables(graph)],
            "said": [self._said(data) for data in graph.on_log if _names_models(data)],
        }

    def _table(self, graph: Graph, data: OnLog) -> dict[str, Any]:
        codec: JsonCodec[ModelVersion] = JsonCodec(data.record)
        versions: dict[bytes | None, dict[str, Any]] = {}
        unreadable = 0
        for record in self._read(data.topic.name, _READ):
            versions.pop(record.key, None)
            if record.value is None:
                continue
            try:
                versions[record.key] = _told(codec.decode(record.value))
            except DataError:
                unreadable += 1
        found = sorted(versions.values(), key=lambda each: (each["model"], -each["version"]))
        return {
            "table": data.name,
            "topic": data.topic.name,
            "used_by": [
                part.name for part in graph.parts if data.name in {i.name for i in part.inputs}
            ],
            "versions": found[:_VERSIONS],
            "more": len(found) > _VERSIONS,
            "unreadable": unreadable,
        }

    def _said(self, data: OnLog) -> dict[str, Any]:
        decode = decoder_of(data)
        records = sorted(self._read(data.topic.name, _SAID), key=_written_at, reverse=True)
        return {
            "stream": data.name,
            "topic": data.topic.name,
            "newest": [record_document(decode(each)[0]) for each in records[:_SAID]],
        }

    def _read(self, topic: str, count: int) -> Iterator[Any]:
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.range import Last

        try:
            reader = LogReader(self._reach.log.connection)
            found = reader.read(topic, start=Last(count), when_trimmed="skip")
        except ConfigurationError:
            return iter(())  # it is declared, and nobody has made it yet
        return islice(found, _READ)


def _names_models(data: OnLog) -> bool:
    names = {field.name for field in data.record.schema.fields}
    return {"model", "version"} <= names and data.record != record_type(ModelVersion)


def _written_at(record: Any) -> float:
    return record.timestamp_at.timestamp() if record.timestamp_at else 0.0


def _told(version: ModelVersion) -> dict[str, Any]:
    return {
        "model": version.model,
        "version": version.version,
        "published_at": version.published_at,
        "trained_on": version.trained_on,
        "figures": version.figures,
        "sha256": version.sha256,
        "shape": version.shape,
        "bytes": len(version.parameters.encode()),
    }


class ModelNews:
    """Tells of each version that is published, from a thread of its own, while the block runs."""

    def __init__(
        self, reach: Reach, tell: Callable[[str], None], *, again_seconds: float = _AGAIN_SECONDS
    ) -> None:
        self._reach = reach
        self._tell = tell
        self._again = again_seconds
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        graph = self._reach.graph()
        for data in model_tables(graph) if graph else ():
            threading.Thread(
                target=self._run, args=[data], name=f"models-{data.name}", daemon=True
            ).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()

    def _run(self, data: OnLog) -> None:
        while not self._stop.wait(self._again):
            try:
                self._follow(data)
            except PenstockError:
                continue  # the log is not there yet, or away: what is wrong is told elsewhere

    def _follow(self, data: OnLog) -> None:
        from penstock.backbone.client.logrecord import log_record
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.range import LATEST

        codec: JsonCodec[ModelVersion] = JsonCodec(data.record)
        batches = LogReader(self._reach.log.connection).batches(
            data.topic.name, start=LATEST, follow=True, stop=self._stop, when_trimmed="skip"
        )
        for batch in batches:
            for raw in batch:
                record = log_record(raw)
                try:
                    version = codec.decode(record.value) if record.value else None
                except DataError:
                    continue
                if version is not None:
                    self._tell(_words(version))


def _words(version: ModelVersion) -> str:
    figures = ", ".join(f"{name} {value:.4g}" for name, value in sorted(version.figures.items()))
    return f"model {version.model}: version {version.version} was published" + (
        f" ({figures})" if figures else ""
    )
