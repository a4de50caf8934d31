"""Random writes and queries against a recount, through real sockets, while everything is killed.

What a client is told is taken strictly: an object that comes in twice, leaves twice, or a number that
is missing fails at once. Of results without a limit, every position is compared with a recount of the
table up to these offsets; of all, the end.
"""

import json
import os
import random
import threading
import time
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage
from websockets.sync.client import connect

from penstock.backbone.declare import declare_application
from penstock.backbone.log.reader import LogReader
from penstock.core.feeds.replica import Replica
from penstock.core.live.query import read_query
from penstock.core.rules.check import verified
from penstock.machine.ports import free_ports

from .live_process import LiveProcess, declare
from .live_site import Todo, Writing

SEEDS = [int(each) for each in os.environ.get("PENSTOCK_CHAOS_SEEDS", "7").split()]
LONG = "PENSTOCK_CHAOS_SEEDS" in os.environ
LISTS = ("home", "work", "away")
QUERIES = {
    "all": {},
    "home": {"filter": {"list": "home"}},
    "low": {"filter": {"rank": {"$lt": 5}, "done": False}},
    "first": {"filter": {"done": False}, "sort": [["rank", 1]], "limit": 4},
    "second": {"sort": [["list", 1], ["rank", -1]], "offset": 2, "limit": 5},
    "counts": {"group": ["list"], "aggregate": {"n": {"count": True}, "s": {"sum": "rank"}}},
}
EXACT = ("all", "home", "low", "counts")
PATIENCE = 120.0


class Following(threading.Thread):
    """Follows all queries on one socket, and comes back with its tokens."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self._port = port
        self.stop = threading.Event()
        self.failed = None
        self.copies = {name: Replica() for name in QUERIES}
        self.positions = {name: {} for name in QUERIES}
        self.states = {name: [] for name in QUERIES}
        self.breaks = 0
        self.resumed = 0

    def run(self):
        try:
            while not self.stop.is_set():
                try:
                    self._follow()
                except (OSError, ConnectionClosed, InvalidMessage, TimeoutError, EOFError):
                    self.breaks += 1
                    self.stop.wait(0.1)
        except BaseException as error:  # noqa: BLE001 - raised by the test
            self.failed = error

    def _follow(self):
        with connect(f"ws://127.0.0.1:{self._port}/v1/live", max_size=None) as socket:
            for name, query in QUERIES.items():
                asked = {"type": "subscribe", "id": name, "query": query}
                if token := self.copies[name].token:
                    asked["resume"] = token
                socket.send(json.dumps(asked))
            while not self.stop.is_set():
                # The gateway says every second that it is there.
                self._take(json.loads(socket.recv(timeout=15)))

    def _take(self, message):
        if message["type"] == "error" and message["problem"]["status"] == 503:
            return
        assert message["type"] != "error", message
        self.resumed += message["type"] == "resumed"
        name = message.get("id")
        if name is None:
            return
        copy = self.copies[name]
        if copy.take(message):
            positions = message["positions"]
            if message["type"] == "ready":
                self.positions[name] = dict(positions)
            else:
                self.positions[name] |= positions
            self.states[name].append((dict(self.positions[name]), copy.documents))


def result(name, rows):
    query, given = QUERIES[name], list(rows)
    if "group" in query:
        groups = {}
        for each in given:
            groups.setdefault(each["list"], []).append(each["rank"])
        return sorted((key, len(found), sum(found)) for key, found in groups.items())
    found = read_query(query).result(given)
    return found if "sort" in query else sorted(found, key=lambda each: each["_id"])


def shown(name, documents):
    if name == "counts":
        return sorted((each["list"], each["n"], each["s"]) for each in documents)
    return documents if "sort" in QUERIES[name] else sorted(documents, key=lambda e: e["_id"])


def write_some(table, chance, count):
    for _ in range(count):
        key = str(chance.randrange(40))
        if chance.random() < 0.2:
            table.delete(key)
        else:
            rank, place = chance.randrange(10), chance.choice(LISTS)
            table.put(Todo(key, place, "t", rank, done=chance.random() < 0.3))


def require_law(following, records):
    """Compare every state of a result without a limit with a recount up to its positions."""
    by_partition = {}
    for record in records:
        by_partition.setdefault(record.partition, []).append(record)
    for name in EXACT:
        rows, at = {}, dict.fromkeys(by_partition, 0)
        for positions, documents in following.states[name]:
            for partition, written in by_partition.items():
                until = positions.get(str(partition), -1)
                while at[partition] < len(written) and written[at[partition]].offset <= until:
                    record = written[at[partition]]
                    at[partition] += 1
                    key = record.key.decode()
                    if record.value is None:
                        rows.pop(key, None)
                    else:
                        rows[key] = {"_id": key, **json.loads(record.value)}
            assert shown(name, documents) == result(name, rows.values()), (name, positions)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [1, 3] if LONG else [2])
def test_no_event_is_lost_or_doubled_while_everything_is_killed(
    mortal_broker, tmp_path, seed, size
):
    chance, kafka = random.Random(seed), mortal_broker.connection
    name = f"deaths{time.time_ns()}"
    graph = verified(declare(name, rows=size, partitions=size).graph)
    declare_application(graph, kafka)
    (port,) = free_ports(1)
    words = (kafka.bootstrap, name, str(size), str(size))
    with ExitStack() as stack:
        workers = [LiveProcess(*words, "0", home=tmp_path) for _ in range(2 if LONG else 1)]
        gateway = LiveProcess(*words, str(port), home=tmp_path)
        for each in (*workers, gateway):
            stack.callback(each.kill)
        following = Following(port)
        following.start()
        stack.callback(following.stop.set)
        table = Writing(graph, kafka)

        def settled():
            expected = [{"_id": key, **row_of(row)} for key, row in table.rows.items()]
            return all(
                copy.ready and shown(each, copy.documents) == result(each, expected)
                for each, copy in following.copies.items()
            )

        write_some(table, chance, 30)
        wait_for(settled, following, (*workers, gateway))
        for victim in chance.sample(["worker", "gateway", "broker"], 3) * (5 if LONG else 1):
            write_some(table, chance, 10)
            if victim == "broker":
                mortal_broker.kill()
                mortal_broker.ensure()
            else:
                killed = gateway if victim == "gateway" else chance.choice(workers)
                killed.kill()
                write_some(table, chance, 10)
                killed.start()
            write_some(table, chance, 20)
            if chance.random() < 0.5:
                wait_for(settled, following, (*workers, gateway))
        wait_for(settled, following, (*workers, gateway))
        following.stop.set()
        following.join(30)
        assert following.failed is None
        assert following.breaks >= 1
        assert all(len(following.states[each]) >= len(QUERIES) for each in EXACT)
        require_law(following, LogReader(kafka).read(f"{name}.todos"))


def row_of(row):
    return {each: getattr(row, each) for each in ("id", "list", "text", "rank", "done", "owner")}


def wait_for(condition, following, processes):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if following.failed is not None:
            raise following.failed
        for each in processes:
            each.ensure()
        assert time.monotonic() < deadline, (
            {name: (copy.ready, copy.documents) for name, copy in following.copies.items()},
            *(each.said() for each in processes),
        )
        threading.Event().wait(0.05)
