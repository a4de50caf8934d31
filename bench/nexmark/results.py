"""Reads what a query has written, as rows in the oracle's columns."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.core.graph.data import Lake, Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.pipelines.lake.table import lake_path

__all__ = ["result_rows"]

Row = dict[str, Any]


def result_rows(graph: Graph, query: str, site: Site, spark: SparkSession) -> list[Row]:
    """Return the rows of a query: of a table the last of each key, for readers of committed ones.

    The oracle counts the rows that q10 has put into each file, and those of q12 over all windows.
    """
    part = graph.part(query)
    if not isinstance(part, Pipeline):
        raise TypeError(query)
    data = part.writes
    if isinstance(data, Lake):
        files = spark.read.format("delta").load(lake_path(data.name, site))
        counted = files.groupBy(*data.partition_by).count().withColumnRenamed("count", "bids")
        return [row.asDict() for row in counted.collect()]
    rows = _values(site, data.topic.name, last=isinstance(data, Table))
    if query == "q12":
        totals: Counter[int] = Counter()
        for row in rows:
            totals[row["bidder"]] += row["total"]
        return [{"bidder": bidder, "total": total} for bidder, total in totals.items()]
    return list(rows)


def _values(site: Site, topic: str, *, last: bool) -> Iterator[Row]:
    """Yield what is on a topic; with ``last`` only what stands there last under each key."""
    records = LogReader(site.connection).read(topic)
    if not last:
        return (json.loads(found.value or b"") for found in records)
    kept = {found.key: found.value for found in records}
    return (json.loads(value) for value in kept.values() if value is not None)
