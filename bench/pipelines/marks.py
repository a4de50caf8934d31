"""What a batch of many tasks costs beside its rows, on a broker and without Spark.

    python bench/pipelines/marks.py [--tasks 16] [--batches 10]

- One Python worker writes a row for each task of a batch, with room for four producers and with
  room for all: the median time of a batch.
- The driver writes down that a batch is begun: the median time.
- Partitions tell buckets that have got nothing how far they are: packed for each, and once.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import pyarrow as pa

from penstock.backbone.client.connection import Connection
from penstock.backbone.topics.topics import Topics
from penstock.core.panes.arrivals import Arrivals, pack_arrivals
from penstock.core.topic import TopicSpec
from penstock.pipelines.sink import kafkatask as oncetask
from penstock.pipelines.sink.begun import BatchMarker, Begun
from penstock.pipelines.sink.kafkatask import BatchTask, KeptProducers, Output
from penstock.testing.broker import temporary_broker

ROW = pa.record_batch([pa.array([b"key"]), pa.array([b"value"])], names=["key", "value"])


def median_milliseconds(work: Callable[[int], None], times: int) -> float:
    spent = []
    for number in range(times):
        began = time.perf_counter()
        work(number)
        spent.append((time.perf_counter() - began) * 1000)
    # The first makes the producers.
    return statistics.median(spent[1:])


def batch_of(connection: Connection, *, tasks: int, kept: int, batches: int) -> float:
    oncetask._PRODUCERS = KeptProducers(limit=kept)  # noqa: SLF001 - the worker's own
    output = Output(connection, f"bench{kept}", "rows")

    def write(batch: int) -> None:
        for number in range(tasks):
            BatchTask(output, batch, 1).write(number, iter([ROW]))

    return median_milliseconds(write, batches)


def packed(count: int, *, once: bool) -> float:
    def pack(_: int) -> None:
        for source in range(count):
            for _ in range(1 if once else count):
                pack_arrivals(Arrivals(clock=1, source=str(source), position=5, newest=7))

    return median_milliseconds(pack, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=16)
    parser.add_argument("--batches", type=int, default=10)
    options = parser.parse_args()
    tasks, batches = options.tasks, options.batches
    with temporary_broker() as broker:
        connection = broker.connection
        Topics(connection).declare([TopicSpec(name="rows", partitions=2)])
        for kept in (4, 32):
            spent = batch_of(connection, tasks=tasks, kept=kept, batches=batches)
            print(f"{tasks} tasks in one worker, {kept} producers kept: {spent:,.0f} ms a batch")
        marker = BatchMarker(connection, "bench")
        spent = median_milliseconds(
            lambda batch: marker.mark(Begun(query="q", batch=batch, plan="p" * 32)), 40
        )
        marker.close()
        print(f"a batch written down as begun: {spent:.1f} ms")
    for count in (16, 64, 200):
        each, once = packed(count, once=False), packed(count, once=True)
        print(f"{count} partitions and buckets: packed each {each:.1f} ms, once {once:.1f} ms")


if __name__ == "__main__":
    main()
