"""The parts of live queries alone, in one process, by the processor time that they take."""

import json
import random
import time
import tracemalloc
from collections.abc import Callable
from typing import Any
from zlib import crc32

from penstock.core.feeds.feed import Feed
from penstock.core.feeds.subscription import Subscription
from penstock.core.grid.matching import QUERIES, ROWS, CellMachine
from penstock.core.grid.messages import News, Placed
from penstock.core.live.index import QueryIndex
from penstock.core.live.query import read_query
from penstock.core.operators.operator import Arrival, MachineOutput
from penstock.core.panes.store import MemoryStore
from penstock.core.partitioner import partition_of

__all__ = ["evaluations", "fanout", "grid_counts", "indexed", "memory", "simulated"]

LISTS = 20_000


def document(chance: random.Random, number: int) -> dict[str, Any]:
    """Return a todo."""
    return {
        "_id": str(number),
        "list": f"list-{chance.randrange(LISTS)}",
        "text": "water the plants on the roof",
        "rank": chance.randrange(1000),
        "done": chance.random() < 0.5,
        "owner": {"name": f"owner-{chance.randrange(100)}"},
    }


def cost(work: Callable[[], int], seconds: float) -> float:
    """Return how many a second and core: a call says how many it has done."""
    work()
    began, done = time.process_time(), 0
    while (spent := time.process_time() - began) < seconds:
        done += work()
    return done / spent


def evaluations(seconds: float) -> dict[str, float]:
    """Return evaluations a second and core, every query against every document."""
    chance = random.Random(1)
    documents = [document(chance, number) for number in range(200)]
    kinds: dict[str, Callable[[int], Any]] = {
        "one comparison": lambda n: {"rank": {"$gt": n}},
        "equality and flag": lambda n: {"list": f"list-{n}", "done": False},
        "a range and a nested field": lambda n: {
            "rank": {"$gte": n, "$lt": n + 50},
            "owner.name": f"owner-{n % 100}",
        },
        "one of two": lambda n: {"$or": [{"rank": {"$lt": n}}, {"done": True}]},
        "a pattern of plain characters": lambda n: {"text": {"$regex": f"plants.*{n}"}},
        "another pattern": lambda n: {"text": {"$regex": f"pl[a-z]+ts.*{n}"}},
    }
    found = {}
    for name, make in kinds.items():
        queries = [read_query({"filter": make(n)}).matches for n in range(500)]

        def work(queries: Any = queries) -> int:
            for each in documents:
                for matches in queries:
                    matches(each)
            return len(documents) * len(queries)

        found[name] = cost(work, seconds)
    return found


def indexed(counts: tuple[int, ...], seconds: float) -> dict[int, tuple[float, float, float]]:
    """Return for each number of queries: writes through the index, through a cell, candidates.

    A third each asks for a list, for some lists, and for a range of ranks of a list.
    """
    found = {}
    for count in counts:
        chance = random.Random(2)
        cell = CellMachine(MemoryStore(), lambda record: record)
        index, queries = QueryIndex(), {}
        for number in range(count):
            given = _query(number)
            query = read_query(given)
            index.add(str(number), query.node)
            queries[str(number)] = query
            placed = Placed(cell="c", id=str(number), life=1, what="open", query=json.dumps(given))
            cell.handle(Arrival(QUERIES, b"c", placed, 0, "", number), MachineOutput())
        documents = [document(chance, number % 500) for number in range(2000)]
        met = sum(len(index.candidates(each)) for each in documents) / len(documents)

        def alone(index: Any = index, queries: Any = queries, documents: Any = documents) -> int:
            for each in documents[:500]:
                for name in index.candidates(each):
                    queries[name].matches(each)
            return 500

        offsets = iter(range(10**9))

        def whole(
            cell: CellMachine = cell, documents: Any = documents, offsets: Any = offsets
        ) -> int:
            for each in documents[:500]:
                arrival = Arrival(ROWS, each["_id"].encode(), each, 0, "", next(offsets))
                cell.handle(arrival, MachineOutput())
            return 500

        found[count] = (cost(alone, seconds), cost(whole, seconds), met)
    return found


def _query(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    first = f"list-{chance.randrange(LISTS)}"
    if number % 3 == 0:
        return {"filter": {"list": first, "done": False}}
    if number % 3 == 1:
        return {"filter": {"list": {"$in": [first, f"list-{chance.randrange(LISTS)}"]}}}
    low = chance.randrange(900)
    return {"filter": {"list": first, "rank": {"$gte": low, "$lt": low + 100}}}


def fanout(count: int, seconds: float) -> dict[str, float]:
    """Return frames a second and core: news taken by so many feeds, and told to a client each."""
    chance, feeds, clients = random.Random(3), [], []
    for number in range(count):
        feed = Feed(f"q{number:012d}", ordered=True)
        for at, what in enumerate(("begin", "ready")):
            feed.take(News(id=feed.name, life=1, number=at + 1, what=what))
        subscription = Subscription("s", feed)
        while subscription.pull(0.0) is not None:
            pass
        feeds.append(feed)
        clients.append(subscription)
    numbers, known = [2] * count, [0] * count

    def work() -> int:
        for _ in range(2000):
            at = chance.randrange(count)
            numbers[at] += 1
            text = json.dumps(document(chance, known[at] % 20))
            what = "add" if known[at] < 20 else "change"
            index = 0 if what == "add" else None
            known[at] += 1
            feeds[at].take(
                News(
                    id=feeds[at].name,
                    life=1,
                    number=numbers[at],
                    what=what,
                    operation="update",
                    index=index,
                    document=text,
                    positions={"0": numbers[at]},
                )
            )
            if clients[at].pull(0.0) is None:
                raise AssertionError("a client was told nothing")
        return 2000

    rate = cost(work, seconds)
    return {"frames": rate, "changes of each query": rate / count}


def memory(count: int) -> dict[str, float]:
    """Return bytes for each open query, of a cell and of a gateway with results of 20 documents."""
    cell, chance = CellMachine(MemoryStore(), lambda record: record), random.Random(6)
    documents = [json.dumps(document(chance, number)) for number in range(20 * count)]
    tracemalloc.start()
    for number in range(count):
        text = json.dumps(_query(number))
        placed = Placed(cell="c", id=str(number), life=1, what="open", query=text)
        cell.handle(Arrival(QUERIES, b"c", placed, 0, "", number), MachineOutput())
    of_cell = tracemalloc.get_traced_memory()[0]
    held = []
    for number in range(count):
        feed = Feed(f"q{number:012d}", ordered=True)
        feed.take(News(id=feed.name, life=1, number=1, what="begin"))
        for at in range(20):
            text = documents[20 * number + at]
            first = News(id=feed.name, life=1, number=at + 2, what="first", index=at, document=text)
            feed.take(first)
        feed.take(News(id=feed.name, life=1, number=22, what="ready"))
        subscription = Subscription("s", feed)
        while subscription.pull(0.0) is not None:
            pass
        held.append(subscription)
    of_gateway = tracemalloc.get_traced_memory()[0] - of_cell
    tracemalloc.stop()
    size = sum(map(len, documents)) / count
    return {"cell": of_cell / count, "gateway": of_gateway / count, "documents": size}


def grid_counts(size: int, queries: int, writes: int) -> dict[str, float]:
    """Return what one cell of a grid has to do: queries it has, writes and pairs that it meets."""
    rows, columns = range(size), range(size)
    chance = random.Random(4)
    held = dict.fromkeys(rows, 0)
    met = dict.fromkeys(columns, 0)
    for number in range(queries):
        held[crc32(f"q{number}".encode()) % size] += 1
    for _ in range(writes):
        met[partition_of(str(chance.randrange(10**6)).encode(), size)] += 1
    pairs = [held[row] * met[column] for row in rows for column in columns]
    return {
        "queries": max(held.values()),
        "writes": max(met.values()),
        "pairs": max(pairs),
        "all pairs": sum(pairs),
    }


def simulated(size: int, *, evaluate: float, write: float) -> dict[str, float]:
    """Return what a grid of so many rows and columns of one core each would carry.

    ``evaluate``: evaluations a second and core without an index; ``write``: writes a second and
    core with one. Each write is handled by every row, each query held by every column.
    """
    return {
        "cells": size * size,
        "writes/s, indexed": write * size,
        "queries held": 100_000.0 * size,
        "queries at 1,000 writes/s, unindexed": evaluate / (1000 / size) * size,
    }
