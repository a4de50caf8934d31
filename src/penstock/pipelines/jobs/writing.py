"""What a run of a job gives, written in one transaction with the time at which it began."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from penstock.backbone.client.logrecord import Partition
from penstock.backbone.log.positions import position_group
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.core.graph.job import Job
from penstock.core.records.codec import JsonCodec
from penstock.core.topic import Partitioning
from penstock.errors import ConfigurationError, DefinitionError, Problem

__all__ = ["MOST_RECORDS", "TRANSACTION_TIMEOUT", "Encoded", "encoded", "write"]

MOST_RECORDS = 10_000
"""So many records a run may give: they are held in memory, and written at once."""
TRANSACTION_TIMEOUT = timedelta(minutes=1)

Encoded = tuple[str, bytes | None, bytes, Partitioning | None]
"""Topic, key, value and partitioning (None: by key)."""


def encoded(job: Job, given: Any) -> list[Encoded]:
    """Return what a function gave, ready to send; DefinitionError, DataError where it cannot be."""
    routes = {data.record.cls: data for data in job.writes}
    codecs = {
        cls: JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
        for cls, data in routes.items()
    }
    found: list[Encoded] = []
    for each in _several(given):
        data = routes.get(type(each))
        if data is None:
            shown = ", ".join(f"{each.name} ({each.record.name})" for each in job.writes)
            text = f"job {job.name!r} gives a {type(each).__name__}, and writes {shown}"
            hint = "return records of these types, several in a list"
            raise DefinitionError((Problem("job.gives", text, hint, job.place),))
        if len(found) >= MOST_RECORDS:
            raise ConfigurationError(
                f"job {job.name!r} gives more than {MOST_RECORDS:,} records",
                code="job.too-many",
                hint="a job gives a few records: for many, write a pipeline",
            )
        codec: JsonCodec[Any] = codecs[type(each)]
        by: Partitioning | None = (
            "round_robin" if data.topic.partitioning == "round_robin" else None
        )
        found.append((data.topic.name, codec.key(each), codec.encode_valid(each), by))
    return found


def _several(given: Any) -> Iterable[Any]:
    if given is None:
        return ()
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return (each for each in given if each is not None)
    return (given,)


def write(
    producer: TransactionalProducer,
    records: Iterable[Encoded],
    *,
    name: str,
    position: Mapping[Partition, int],
) -> None:
    """Write records and the position of a job, or neither."""
    producer.begin()
    for topic, key, value, by in records:
        producer.send(topic, key=key, value=value, partition=by)
    producer.commit(dict(position), group=position_group(name))
