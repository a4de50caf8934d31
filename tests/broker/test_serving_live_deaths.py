"""Random writes and queries against a recount, through real sockets, while everything is killed.

What a client is told is taken strictly: an object that comes in twice, leaves twice, or a number that
is missing fails at once. Of results without a limit, every position is compared with a recount of the
table up to these offsets. A result with a limit says nothing of writes behind the limit, and shows
their rows later: each of its states must be that of a cut through the table that is not before these
offsets, not behind the next ones, and not before the cut of the state before.
"""

import json
import os
import random
import threading
import time
from bisect import bisect_right
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException
from itertools import product
from urllib.parse import quote

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
    "counts": {"group": ["list"], "aggregate": {"n": {"count": True}, "s": {"sum": "rank"}}},
}
EXACT = tuple(QUERIES)
LIMITED = 6
CACHED = "limited0"
PATIENCE = 120.0


def limited(chance):
    """Return random sorted queries with a limit."""
    filters = [{}, {"done": False}, {"rank": {"$gte": 3}}, {"list": {"$in": ["home", "away"]}}]
    found = {}
    for number in range(LIMITED):
        paths = chance.sample(["rank", "list", "done"], chance.choice([1, 2]))
        found[f"limited{number}"] = {
            "filter": chance.choice(filters),
            "sort": [[path, chance.choice([1, -1])] for path in paths],
            "offset": chance.choice([0, 0, 1, 3]),
            "limit": chance.choice([1, 2, 4, 6]),
        }
    return found


class Following(threading.Thread):
    """Follows all queries on one socket, and comes back with its tokens."""

    def __init__(self, port, queries):
        super().__init__(daemon=True)
        self.port = port
        self.queries = queries
        self.stop = threading.Event()
        self.failed = None
        self.copies = {name: Replica() for name in queries}
        self.positions = {name: {} for name in queries}
        self.states = {name: [] for name in queries}
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
        with connect(f"ws://127.0.0.1:{self.port}/v1/live", max_size=None) as socket:
            for name, query in self.queries.items():
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
            whole = message["type"] == "ready"
            self.states[name].append((dict(self.positions[name]), copy.documents, whole))


def cached(following, status):
    """Return what the cache answers, if its status is this one; no result is older than a second."""
    connection = HTTPConnection("127.0.0.1", following.port, timeout=PATIENCE)
    query = quote(json.dumps(following.queries[CACHED]))
    try:
        connection.request("GET", f"/v1/live/result?query={query}&max_stale=1s")
        answer = connection.getresponse()
        document = json.loads(answer.read())
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    assert answer.status in (200, 503), document
    assert answer.status == 503 or int(answer.headers["age"]) <= 1
    return document if answer.status == status else None


def result(query, rows):
    given = list(rows)
    if "group" in query:
        groups = {}
        for each in given:
            groups.setdefault(each["list"], []).append(each["rank"])
        return sorted((key, len(found), sum(found)) for key, found in groups.items())
    found = read_query(query).result(given)
    return found if "sort" in query else sorted(found, key=lambda each: each["_id"])


def shown(query, documents):
    if "group" in query:
        return sorted((each["list"], each["n"], each["s"]) for each in documents)
    return documents if "sort" in query else sorted(documents, key=lambda e: e["_id"])


def write_some(table, chance, count):
    for _ in range(count):
        key = str(chance.randrange(40))
        if chance.random() < 0.2:
            table.delete(key)
        else:
            rank, place = chance.randrange(10), chance.choice(LISTS)
            table.put(Todo(key, place, "t", rank, done=chance.random() < 0.3))


def read_tables(records):
    """Return for each partition what the table was in it: offsets, and rows up to each of them."""
    found = {}
    for record in records:
        offsets, rows = found.setdefault(record.partition, ([-1], [{}]))
        key, row = record.key.decode(), dict(rows[-1])
        row.pop(key, None)
        if record.value is not None:
            row[key] = {"_id": key, **json.loads(record.value)}
        offsets.append(record.offset)
        rows.append(row)
    return found


def require_law(following, tables):
    """Compare every state of a result without a limit with a recount up to its positions."""
    for name in EXACT:
        query = following.queries[name]
        for positions, documents, _ in following.states[name]:
            rows = [
                row
                for partition, (offsets, tables_) in tables.items()
                for row in tables_[
                    bisect_right(offsets, positions.get(str(partition), -1)) - 1
                ].values()
            ]
            assert shown(query, documents) == result(query, rows), (name, positions)


def require_law_of_limits(following, tables):
    """Find for every state of a limited result a cut through the table that has it, in order."""
    for name in set(following.queries) - set(EXACT):
        query, known = following.queries[name], {}

        def at(cut, query=query, known=known):
            if cut not in known:
                parts = zip(cut, tables.values(), strict=True)
                known[cut] = result(query, [r for n, (_, of) in parts for r in of[n].values()])
            return known[cut]

        before = [tuple(0 for _ in tables)]
        for (positions, documents, _), bounds in zip(
            following.states[name], bounds_of(following.states[name], tables), strict=True
        ):
            same = [cut for cut in product(*bounds) if at(cut) == documents]
            cuts = [cut for cut in same if any(not_before(cut, each) for each in before)]
            assert cuts, (name, query, positions, documents)
            before = []
            for cut in sorted(cuts):  # keep the least ones
                if not any(not_before(cut, each) for each in before):
                    before.append(cut)


def not_before(cut, other):
    return all(one >= another for one, another in zip(cut, other, strict=True))


def bounds_of(states, tables):
    """Return for each state how many records of each partition it may have seen.

    A change has the offset of its cause, which the state before has not seen. A whole result has
    the last offsets that changed it, and the state before may have seen these.
    """
    found, highest = [], {each: len(offsets) for each, (offsets, _) in tables.items()}
    later = {}
    for positions, _, whole in reversed(states):
        bounds = []
        for partition, (offsets, _) in tables.items():
            position = positions.get(str(partition), -1)
            low = bisect_right(offsets, position) - 1
            if later.get(partition, (position, low))[0] != position:
                highest[partition] = later[partition][1]
            later[partition] = (position, low)
            bounds.append(range(low, max(highest[partition], low + 1)))
        found.append(bounds)
        later = {} if whole else later
    return reversed(found)


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
        queries = QUERIES | limited(chance)
        following = Following(port, queries)
        following.start()
        stack.callback(following.stop.set)
        table = Writing(graph, kafka)

        def settled():
            expected = [{"_id": key, **row_of(row)} for key, row in table.rows.items()]
            return all(
                copy.ready
                and shown(queries[each], copy.documents) == result(queries[each], expected)
                for each, copy in following.copies.items()
            )

        write_some(table, chance, 30)
        wait_for(settled, following, (*workers, gateway))
        for victim in chance.sample(["worker", "gateway", "broker"], 3) * (5 if LONG else 1):
            write_some(table, chance, 10)
            if victim == "broker":
                wait_for(lambda: cached(following, 200), following, (*workers, gateway))
                mortal_broker.kill()
                problem = wait_for(lambda: cached(following, 503), following, (gateway,))
                assert problem["code"] == "live.unready"
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
        answer = wait_for(lambda: cached(following, 200), following, (*workers, gateway))
        assert answer["documents"] == following.copies[CACHED].documents
        following.stop.set()
        following.join(30)
        assert following.failed is None
        assert following.breaks >= 1
        assert all(len(following.states[each]) >= len(QUERIES) for each in EXACT)
        tables = read_tables(LogReader(kafka).read(f"{name}.todos"))
        require_law(following, tables)
        if size < 3:  # there are too many cuts through three partitions
            require_law_of_limits(following, tables)


def row_of(row):
    return {each: getattr(row, each) for each in ("id", "list", "text", "rank", "done", "owner")}


def wait_for(condition, following, processes):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        if following.failed is not None:
            raise following.failed
        for each in processes:
            each.ensure()
        assert time.monotonic() < deadline, "\n".join(
            [
                *(
                    f"{name}: {copy.ready} {following.positions[name]} {copy.documents}"
                    for name, copy in following.copies.items()
                ),
                *(each.said() for each in processes),
            ]
        )
        threading.Event().wait(0.05)
    return found
