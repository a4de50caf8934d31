"""The client against a real gateway: records in, questions out, changes, over breaks."""

import asyncio
import re
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock import App, State, record
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.client import Client, ClientLimits, RowChange, Sent, SyncClient
from penstock.core.rules.check import verified
from penstock.errors import ConfigurationError, DataError, TransientError

from .breaking_proxy import BreakingProxy
from .serving_site import open_door, working


@record(key="device")
class Reading:
    device: str
    celsius: float


@record(key=("room", "number"))
class Place:
    room: str
    number: int
    name: str = ""


@dataclass
class Highest:
    device: str
    value: float


class Site:
    """An application with a gateway and a service that run."""

    port: int
    url: str

    def __init__(self, kafka, home):
        name = f"client{time.time_ns()}"
        app = App(name)
        self.readings = app.stream(f"{name}.readings", Reading, max_record="1KiB")
        self.hottest = app.table(f"{name}.hottest", Reading)
        self.places = app.table(f"{name}.places", Place)

        @app.service(reads=self.readings, writes=self.hottest)
        def watch(reading: Reading, highest: State[float]) -> Reading | None:
            if reading.celsius <= highest.get(-274.0):
                return None
            highest.set(reading.celsius)
            return reading

        self.watch = watch
        self.kafka, self.home = kafka, home
        app.gateway("door", takes=self.readings, shows=(self.hottest, self.places, watch))
        self.graph = verified(app.graph)
        Topics(kafka).declare(self.graph.topics())

    def on_log(self):
        return [each.value for each in LogReader(self.kafka).read(self.readings.topic.name)]

    def open(self, **options):
        return open_door(self.graph, self.kafka, self.home, **options)


@pytest.fixture(scope="module")
def site(kafka, tmp_path_factory):
    site = Site(kafka, tmp_path_factory.mktemp("client"))
    often = timedelta(milliseconds=50)
    opened = site.open(watch_interval=often)
    with opened as door, working(site.graph, kafka, site.home, "watch"):
        site.port = door.port
        site.url = f"http://127.0.0.1:{door.port}"
        yield site


@contextmanager
def through_a_proxy(site):
    with BreakingProxy(site.port) as proxy:
        yield proxy, f"http://127.0.0.1:{proxy.port}"


IMPATIENT = ClientLimits(
    attempts=3, first_wait=timedelta(milliseconds=1), longest_wait=timedelta(milliseconds=5)
)


def test_what_was_sent_is_read_back_at_least_so_far(site):
    async def talk():
        async with Client(site.url) as client:
            sent = await client.send(site.readings, Reading("a", 20.0))
            quick = await client.send(site.readings, Reading("a", 21.0), once=False)
            value = await client.value(site.watch, "a", at_least=(sent, quick))
            several = await client.send_many(
                site.readings, [Reading("b", float(n)) for n in range(5)]
            )
            values = [
                (each.key, each.value)
                async for each in client.values(site.watch, page=1, at_least=several)
                if each.key in "ab"
            ]
            return sent, quick, value, several, values

    sent, quick, value, several, values = asyncio.run(talk())
    assert isinstance(sent, Sent)
    assert value.value == 21.0
    assert value.stale_seconds is not None
    assert value.positions[site.readings.topic.name][quick.partition] > quick.offset
    assert [each.offset for each in several] == sorted(each.offset for each in several)
    assert values == [("a", 21.0), ("b", 4.0)]


def test_rows_are_records_of_the_application(site):
    with SyncClient(site.url) as client:
        told = client.changes(site.hottest, prefix="row-")
        assert next(told) == RowChange(kind="ready")
        for device, celsius in (("row-1", 1.0), ("row-2", 2.0), ("row-1", 3.0)):
            client.send(site.readings, Reading(device, celsius))
        changes = [next(told) for _ in range(3)]
        assert {(each.key, each.value) for each in changes} == {
            ("row-1", Reading("row-1", 1.0)),
            ("row-2", Reading("row-2", 2.0)),
            ("row-1", Reading("row-1", 3.0)),
        }
        assert [each.before for each in changes if each.value == Reading("row-1", 3.0)] == [
            Reading("row-1", 1.0)
        ]
        told.close()
        assert client.get(site.hottest, "row-1").value == Reading("row-1", 3.0)
        missing = client.get(site.hottest, "no such row / at all?%00")
        assert missing.value is None
        assert missing.positions
        rows = list(client.scan(site.hottest, prefix="row-", page=1))
        assert [row.value for row in rows] == [Reading("row-1", 3.0), Reading("row-2", 2.0)]
        assert client.get(site.places, ("hall", 7)).key == '["hall",7]'
        with pytest.raises(TypeError, match="is not a key of Place"):
            client.get(site.places, ("hall", "seven"))
        with pytest.raises(ValueError, match="has positions of"):
            client.get(site.hottest, "row-1", at_least=Sent(site.readings.topic.name, 0, 0))


def test_refusals_are_typed_errors_with_their_code_and_place(site):
    with SyncClient(site.url, limits=IMPATIENT) as client:
        with pytest.raises(DataError) as wrong:
            client.send(site.readings, Reading("a", "warm"))
        assert wrong.value.code == "data.not-encodable"
        other = App("other")
        strange = other.stream(site.readings.name, Place)
        with pytest.raises(DataError) as refused:
            client.send(strange, Place("a", 1))
        assert refused.value.code in ("data.missing-field", "data.unknown-field")
        assert "allowed" in refused.value.detail
        unknown = other.stream("nothing", Place)
        with pytest.raises(ConfigurationError) as gone:
            client.send(unknown, Place("a", 1))
        assert gone.value.code == "stream.unknown"
        with pytest.raises(TransientError) as stale:
            client.value(
                site.watch, "a", at_least=Sent(site.readings.topic.name, 0, 10**9), wait="1ms"
            )
        assert stale.value.code == "position.behind"
    with pytest.raises(ConfigurationError):
        client.send(site.readings, Reading("a", 1.0))


def test_a_stream_of_records_is_acknowledged_while_it_is_sent(site):
    count = 5_000

    async def talk():
        found, answered = [], asyncio.Event()

        async def records():
            for number in range(count):
                device = "s" * 2000 if number == 3000 else f"stream-{number % 9}"
                yield Reading(device, float(number))
                if number == 10:  # the first are answered although the stream goes on
                    await answered.wait()

        async with Client(site.url) as client:
            async for each in client.stream(site.readings, records()):
                found.append(each)
                if len(found) == 10:
                    answered.set()
        return found

    found = asyncio.run(talk())
    assert len(found) == count
    assert [at for at, each in enumerate(found) if not isinstance(each, Sent)] == [3000]
    assert found[3000].code == "data.too-large"
    places = {(each.partition, each.offset) for each in found if isinstance(each, Sent)}
    assert len(places) == count - 1
    with SyncClient(site.url) as client:
        several = list(client.stream(site.readings, [Reading("t", 1.0)] * 3))
    assert all(isinstance(each, Sent) for each in several)


def test_a_request_whose_answers_are_lost_is_written_once(site):
    with through_a_proxy(site) as (proxy, url), SyncClient(url, limits=IMPATIENT) as client:
        proxy.lose_answers(2)
        sent = client.send(site.readings, Reading("once", 1.0))
        proxy.lose_answers(1)
        several = client.send_many(site.readings, [Reading("once", 2.0), Reading("once", 3.0)])
        assert sent.offset < several[0].offset < several[1].offset
        values = [value for value in site.on_log() if b'"once"' in value]
        assert len(values) == 3
        proxy.lose_answers(3)
        with pytest.raises(TransientError) as lost:
            client.get(site.hottest, "a")
        assert lost.value.code == "client.broken"
        assert proxy.connections == 6


def test_changes_go_on_behind_the_last_one_after_a_break(site):
    with ExitStack() as stack:
        proxy, url = stack.enter_context(through_a_proxy(site))
        client = stack.enter_context(SyncClient(url))
        query = "select device, value from watch.highest where device = 'broken'"
        told = client.changes(site.hottest, key="broken")
        states = client.value_changes(site.watch, key="broken")
        rows = client.sql_changes(query, into=Highest)
        plain = client.sql_changes(query)
        several = [told, states, rows, plain]
        assert [next(each).kind for each in several] == ["ready"] * 4
        direct = stack.enter_context(SyncClient(site.url))
        found = []
        for number in range(4):
            if number % 2:
                proxy.cut()
            direct.send(site.readings, Reading("broken", float(number)))
            found.append([next(each) for each in several])
        assert {each.kind for step in found for each in step} == {"change"}
        for at, value in enumerate(map(float, range(4))):
            assert [each.value for each in found[at]] == [
                Reading("broken", value),
                value,
                Highest("broken", value),
                {"device": "broken", "value": value},
            ]
            before = [each.value for each in found[at - 1]] if at else [None] * 4
            assert [each.before for each in found[at]] == before
        assert [each.key for each in found[0]] == ["broken", "broken", "", ""]
        for each in several:
            each.close()
        ranged = stack.enter_context(closing(client.value_changes(site.watch, prefix="broke")))
        assert [next(ranged) for _ in range(2)] == [
            RowChange(kind="row", key="broken", value=3.0),
            RowChange(kind="ready"),
        ]
        with pytest.raises(DataError, match="no column"):
            next(client.sql_changes("select wrong from watch.highest"))


def test_a_gateway_that_began_anew_tells_the_rows_again(site):
    with site.open() as first, BreakingProxy(first.port) as proxy:
        client = SyncClient(f"http://127.0.0.1:{proxy.port}")
        client.__enter__()
        told = client.changes(site.hottest, key="anew")
        assert next(told).kind == "ready"
        client.send(site.readings, Reading("anew", 1.0))
        assert next(told).kind == "change"
        with site.open(query_time=timedelta(microseconds=1)) as second:
            proxy.lead_to(second.port)
            proxy.cut()
            again = [next(told) for _ in range(3)]
            told.close()
            for name in (site.hottest.name, "watch.highest"):
                with pytest.raises(DataError) as late:
                    client.sql(f"select count(*) as n from {name}")  # noqa: S608
                assert late.value.code == "query.time"
            client.__exit__(None, None, None)
    # Either it remembered enough, or it says that it did not: never a gap in silence.
    assert [each.kind for each in again] == ["reset", "row", "ready"]
    assert again[1].value == Reading("anew", 1.0)


def test_calls_at_once_share_a_bounded_number_of_connections(site):
    async def talk():
        limits = ClientLimits(connections=3)
        async with Client(proxy_url, limits=limits) as client:
            return await asyncio.gather(
                *(
                    client.send(site.readings, Reading(f"many-{number}", 1.0), once=False)
                    for number in range(60)
                )
            )

    with through_a_proxy(site) as (proxy, proxy_url):
        sent = asyncio.run(talk())
        assert len({(each.partition, each.offset) for each in sent}) == 60
        assert proxy.connections == 3


def test_threads_share_a_client(site):
    with SyncClient(site.url) as client:
        found = []

        def send(number):
            found.append(client.send(site.readings, Reading(f"thread-{number}", 1.0), once=False))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(set(found)) == 8


def test_the_programs_of_the_guide_give_what_it_says(kafka, tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
    first, *programs = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    module: dict[str, Any] = {"__name__": "guide"}
    exec(first, module)  # noqa: S102 - that is the point
    graph = verified(module["app"].graph)
    Topics(kafka).declare(graph.topics())
    try:
        with open_door(graph, kafka, tmp_path) as door, working(graph, kafka, tmp_path, "watch"):
            for program in programs:
                exec(program.replace("localhost:8800", f"localhost:{door.port}"), module)  # noqa: S102
    finally:
        Topics(kafka).delete([topic.name for topic in graph.topics()])
    assert capsys.readouterr().out.splitlines() == [
        "21.5",
        "1000",
        "ready",
        "change None Reading(device='tower', celsius=30.0)",
        "{'value': 30.0}",
    ]
