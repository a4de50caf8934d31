"""SQL over the tables and states that a gateway shows.

Long because all of it asks one running application, which takes seconds to start.
"""

# ruff: noqa: S608 - the texts of queries are what is tested

import asyncio
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from penstock import App, State, record
from penstock.aggregates import count as number_of
from penstock.aggregates import maximum
from penstock.backbone.topics.topics import Topics
from penstock.cli.main import main
from penstock.client import Client, Sent, SyncClient
from penstock.core.rules.check import verified
from penstock.errors import DataError
from penstock.state import ListState, MapState
from penstock.windows import fixed

from .serving_site import open_door, until, working
from .test_serving_push import listening

PARTITIONS = 3


@record(key="word")
class Word:
    word: str
    length: int = 0


@record(key="word")
class Count:
    word: str
    count: int
    at: datetime | None = None
    kind: Literal["short", "long"] = "short"


@record(key="word", time="at")
class Tick:
    word: str
    at: datetime
    weight: Decimal


@record(key="word")
class Origin:
    word: str
    language: str


def application(name):
    app = App(name)
    words = app.stream(f"{name}.words", Word, partitions=PARTITIONS)
    counts = app.table(f"{name}.counts", Count, partitions=PARTITIONS)
    origins = app.table(f"{name}.origins", Origin, partitions=PARTITIONS)
    asked = app.stream(f"{name}.origins-in", Origin, partitions=PARTITIONS)

    @app.service(reads=asked, writes=origins)
    def keep(origin: Origin) -> Origin:
        return origin

    @app.service(reads=words, writes=counts)
    def count(  # noqa: PLR0917 - a state of each kind
        word: Word,
        total: State[int],
        lengths: MapState[int, int],
        recent: ListState[int],
        last: State[Word],
        odd: State[tuple[int, str]],
    ) -> Count:
        value = total.get(0) + 1
        total.set(value)
        lengths[word.length] = lengths.get(word.length, 0) + 1
        recent.set([*recent, value][-2:])
        last.set(word)
        odd.set((value, word.word))
        return Count(word.word, value)

    ticks = app.stream(f"{name}.ticks", Tick, partitions=PARTITIONS)
    declared = ticks.window(fixed("1m"), by="word").aggregate(n=number_of(), most=maximum("weight"))
    sums = app.table(f"{name}_sums", declared, on="services", partitions=PARTITIONS)
    shows = (counts, origins, count, sums)
    app.gateway(
        "door",
        takes=(words, asked, ticks),
        shows=shows,
        roles={"counter": (counts,), "all": (words, asked, ticks, *shows)},
    )
    return app


def declared(kafka, name):
    graph = verified(application(name).graph)
    Topics(kafka).declare(graph.topics())
    return graph


TOKENS = """
[callers.all]
sha256 = "{all}"
roles = ["all"]
[callers.counter]
sha256 = "{counter}"
roles = ["counter"]
"""


@pytest.fixture(scope="module", params=["memory", "disk"])
def shop(request, kafka, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    name = f"sql{time.time_ns()}"
    graph = declared(kafka, name)
    tokens = home / "tokens.toml"
    digests = {who: hashlib.sha256(who.encode()).hexdigest() for who in ("all", "counter")}
    tokens.write_text(TOKENS.format(**digests))
    options = {"tokens_file": str(tokens), "query_rows": 500, "query_bytes": 300_000}
    with (
        working(graph, kafka, home, state=request.param),
        working(graph, kafka, home, "keep"),
        working(graph, kafka, home, f"{name}_sums.windows"),
        open_door(graph, kafka, home, **options) as door,
    ):
        door.token, door.app, door.home = "all", name, home
        words = [f"w{number % 100:03}" for number in range(300)]
        body = [{"word": word, "length": number % 3} for number, word in enumerate(words)]
        stands = door.post(f"{name}.words", body).json["records"]
        ends = {each["partition"]: each["offset"] for each in stands}
        door.own = ",".join(f"{name}.words:{number}:{end}" for number, end in ends.items())
        origins = [{"word": f"w{number:03}", "language": "en"} for number in range(0, 100, 10)]
        assert door.post(f"{name}.origins-in", origins).status == 201
        until(lambda: door.get("/v1/states/count/total/values").status == 200, "workers own it")
        until(lambda: rows(door, f"select count(*) as n from {name}.origins") == [{"n": 10}], "in")
        until(
            lambda: rows(door, f"select sum(count) as n from {name}.counts") == [{"n": 300}],
            "every word is counted",
        )
        (home / "app.py").write_text(APPLICATION.format(name=name))
        yield door


APPLICATION = """
from tests.broker.test_serving_sql import application
app = application("{name}")
"""


def asked(door, text, query="", **headers):
    return door.request("POST", f"/v1/sql{query}", {"query": text}, **headers)


def rows(door, text, query=""):
    answer = asked(door, text, query)
    return answer.json["rows"] if answer.status == 200 else None


def test_a_query_joins_groups_and_orders_tables_and_states(shop):
    text = (
        f"select o.language, count(*) as words, sum(t.value) as n"
        f" from count.total t join {shop.app}.origins o on t.word = o.word group by o.language"
    )
    answer = asked(shop, text, f"?at_least={shop.own}").json
    assert answer["rows"] == [{"language": "en", "words": 10, "n": 30}]
    assert [each["name"] for each in answer["columns"]] == ["language", "words", "n"]
    assert answer["more"] is False
    state = answer["relations"]["count.total"]
    assert sum(state["positions"][f"{shop.app}.words"].values()) >= 300
    table = answer["relations"][f"{shop.app}.origins"]
    assert list(table["positions"]) == [f"{shop.app}.origins"]
    text = f"select word, count from {shop.app}.counts where word >= 'w098' order by word desc"
    found = shop.get(f"/v1/sql?query={quote(text)}").json
    assert found["rows"] == [{"word": "w099", "count": 3}, {"word": "w098", "count": 3}]


def test_states_of_every_kind_are_relations(shop):
    def one(text):
        return rows(shop, text, f"?at_least={shop.own}")

    picked = "from count.total where word in ('w001', 'w002') order by word"
    assert one(f"select word, value {picked}") == [
        {"word": "w001", "value": 3},
        {"word": "w002", "value": 3},
    ]
    assert one("select entry, value from count.lengths where word = 'w003' order by entry") == [
        {"entry": 0, "value": 1},
        {"entry": 1, "value": 1},
        {"entry": 2, "value": 1},
    ]
    assert one("select value, value[1] as last from count.recent where word = 'w004'") == [
        {"value": [2, 3], "last": 3}
    ]
    text = "select value.word as w, count(*) as n from count.last where word < 'w002' group by 1"
    assert sorted(row["w"] for row in one(text)) == ["w000", "w001"]
    assert one("select value from count.odd where word = 'w005'") == [{"value": '[3,"w005"]'}]


def test_a_scan_over_many_pages_shows_what_one_commit_left(shop, monkeypatch):
    from penstock.serving.relations import reading

    monkeypatch.setattr(reading, "_PAGE_ROWS", 7)
    text = "select count(*) as n, sum(value) as s from count.total where word like 'w%'"
    stop = threading.Event()

    def write():
        while not stop.is_set():
            shop.post(f"{shop.app}.words", [{"word": f"x{n}"} for n in range(50)])

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for _ in range(5):
            assert rows(shop, text) == [{"n": 100, "s": 300}]
            every = asked(shop, "select sum(value) as n from count.total").json
            positions = every["relations"]["count.total"]["positions"][f"{shop.app}.words"]
            assert every["rows"] == [{"n": sum(positions.values())}]
    finally:
        stop.set()
        writing.join()


def test_an_answer_has_at_most_so_many_rows_and_says_that_there_are_more(shop):
    table = f"{shop.app}.counts"
    answer = asked(
        shop, f"select a.word, b.word as other from {table} a join {table} b on a.kind = b.kind"
    ).json
    assert (len(answer["rows"]), answer["more"]) == (500, True)


def test_lines_and_arrow_have_the_same_rows(shop):
    text = f"select word, count, kind, at from {shop.app}.counts where word < 'w003' order by word"
    plain = asked(shop, text).json
    lines = asked(shop, text, Accept="application/x-ndjson").body.splitlines()
    told, *listed = [json.loads(line) for line in lines]
    assert listed == plain["rows"]
    assert told["columns"] == plain["columns"]
    pyarrow = pytest.importorskip("pyarrow")
    answer = asked(shop, text, Accept="application/vnd.apache.arrow.stream")
    table = pyarrow.ipc.open_stream(io.BytesIO(answer.body)).read_all()
    assert table.to_pylist() == plain["rows"]
    assert json.loads(table.schema.metadata[b"penstock"])["more"] is False
    whole = asked(
        shop,
        "select word, value from count.lengths where word = 'w003'",
        Accept="application/vnd.apache.arrow.stream",
    )
    assert pyarrow.ipc.open_stream(io.BytesIO(whole.body)).read_all().num_rows == 3


BIG = "select a.word from {t} a join {t} b on a.kind = b.kind group by a.word, b.word"


@pytest.mark.parametrize(
    ("text", "status", "code", "place"),
    [
        ("select word frm {t}", 400, "query.syntax", 17),
        ("select nothing from {t}", 400, "query.unknown-column", 8),
        ("select word from nowhere", 400, "query.unknown-relation", 18),
        ("delete from {t}", 400, "query.syntax", 1),
        ("select word from {t}; drop table x", 400, None, None),
        ("select sum(word) as s from {t}", 400, "expression.type", 8),
        ("", 400, None, None),
        (BIG, 422, "query.memory", None),
    ],
)
def test_a_bad_query_is_refused_with_the_place_of_the_mistake(shop, text, status, code, place):
    answer = asked(shop, text.format(t=f"{shop.app}.counts"))
    assert answer.status == status, answer.body
    if code is not None:
        assert answer.json["code"] == code
    if place is not None:
        assert answer.json["errors"][0]["column"] == place


def test_what_surrounds_a_query_is_checked_too(shop):
    text = f"select word from {shop.app}.counts limit 1"
    assert asked(shop, text, "?at_least=elsewhere:0:1").json["code"] == "query.value"
    for path in ("sql", f"tables/{shop.app}.counts/rows", "states/count/total/values"):
        twice = shop.get(f"/v1/{path}?query={quote(text)}&wait=1s&wait=2s")
        assert (twice.status, twice.json["path"]) == (400, "wait")
    far = f"?at_least={shop.app}.counts:0:99999999&wait=20ms"
    behind = asked(shop, text, far)
    assert (behind.status, behind.json["code"]) == (503, "position.behind")
    assert asked(shop, text, Accept="text/html").status == 406
    assert shop.request("POST", "/v1/sql", b"[]").json["code"] == "query.body"
    assert shop.request("POST", "/v1/sql", {"query": text, "x": 1}).json["code"] == "query.body"
    assert shop.get("/v1/sql").status == 400


def test_roles_apply_to_each_table_and_state_before_anything_is_told_of_them(shop):
    def told(text):
        return asked(shop, text, Authorization="Bearer counter")

    assert told(f"select word from {shop.app}.counts limit 1").status == 200
    for text in (
        f"select nothing from {shop.app}.origins",
        "select value from count.total",
        f"select a.word from {shop.app}.counts a join count.total b on a.word = b.word",
    ):
        answer = told(text)
        assert (answer.status, answer.json["code"]) == (403, "caller.not-allowed"), text


def test_open_windows_are_asked_for_by_key_and_window(shop):
    def tick(word, minute, second, weight):
        at = f"2026-05-01T12:{minute:02}:{second:02}Z"
        return {"word": word, "at": at, "weight": weight}

    ticks = [tick("a", 0, 1, "1.50"), tick("a", 0, 2, "2.25"), tick("b", 0, 3, "12345678901.5")]
    shop.post(f"{shop.app}.ticks", ticks)
    windows = f"from {shop.app}_sums.windows"
    text = f"select word, window_start, window_end, n, most, window_closed {windows} order by word"
    found = until(
        lambda: (listed := rows(shop, text)) and sum(row["n"] for row in listed) == 3 and listed,
        "the windows have all",
    )
    assert found[0] == {
        "word": "a",
        "window_start": "2026-05-01T12:00:00Z",
        "window_end": "2026-05-01T12:01:00Z",
        "n": 2,
        "most": found[0]["most"],
        "window_closed": False,
    }
    assert Decimal(found[0]["most"]) == Decimal("2.25")
    assert Decimal(found[1]["most"]) == Decimal("12345678901.5")
    one = asked(shop, f"select n {windows} where word = 'b'").json
    assert one["rows"] == [{"n": 1}]
    assert len(one["relations"][f"{shop.app}_sums.windows"]["positions"][f"{shop.app}.ticks"]) == 1
    later = f"{windows} where window_start > timestamp '2026-05-01 12:00:00'"
    assert rows(shop, f"select word {later}") == []
    assert asked(shop, text, Authorization="Bearer counter").status == 403


def test_what_changes_in_an_answer_is_told_once_also_over_a_break(shop):
    headers = {"Authorization": "Bearer all"}

    def told(word, value):
        return {"word": word, "value": value}

    def say(*words):
        shop.post(f"{shop.app}.words", [{"word": word} for word in words])

    text = "select word, value from count.total where word like 'push%'"
    path = f"/v1/sql/changes?query={quote(text)}"
    with listening(shop, path, **headers) as events:
        kind, ready = events.next()
        assert (kind, list(ready["relations"])) == ("ready", ["count.total"])
        say("push-a")
        assert events.next() == ("change", {"before": None, "value": told("push-a", 1)})
        assert events.next()[0] == "at"
        say("push-a")
        change = {"before": told("push-a", 1), "value": told("push-a", 2)}
        assert events.next() == ("change", change)
        reached = events.last
    say("push-a", "push-b")
    with listening(shop, path, **headers, **{"Last-Event-ID": reached}) as events:
        kind, ready = events.next()
        assert (kind, ready["resumed"]) == ("ready", True)
        found = {}
        while len(found) < 2:
            kind, change = events.next()
            if kind == "change":
                found[change["value"]["word"]] = (change["before"], change["value"])
        assert found["push-a"] == (told("push-a", 2), told("push-a", 3))
        assert found["push-b"] == (None, told("push-b", 1))
    with listening(shop, path, **headers, **{"Last-Event-ID": "elsewhere-7"}) as events:
        assert {events.next()[0], events.next()[0], events.next()[0]} == {"row", "ready"}


def test_what_changes_in_a_state_is_told_by_key_and_prefix(shop):
    headers = {"Authorization": "Bearer all"}
    base = "/v1/states/count/lengths/changes"
    shop.post(f"{shop.app}.words", {"word": "tell", "length": 4})
    until(lambda: shop.get("/v1/states/count/lengths/values/tell").status == 200, "it is there")
    with (
        listening(shop, f"{base}?key=tell", **headers) as one,
        listening(shop, f"{base}?prefix=tel", **headers) as some,
    ):
        for events in (one, some):
            kind, row = events.next()
            assert (kind, row["key"]) == ("row", "tell")
            assert events.next()[0] == "ready"
        before = row["value"]
        shop.post(f"{shop.app}.words", {"word": "tell", "length": 9})
        change = {"key": "tell", "before": before, "value": before | {"9": 1}}
        for events in (one, some):
            assert events.next() == ("change", change)
    assert shop.get(f"{base.replace('lengths', 'none')}").json["code"] == "state.unknown"
    assert shop.get(base, Authorization="Bearer counter").status == 403
    table = f"{shop.app}.counts"
    text = f"select a.word, b.word as other from {table} a join {table} b on a.kind = b.kind"
    assert shop.get(f"/v1/sql/changes?query={quote(text)}").json["code"] == "changes.too-many"


def test_a_websocket_tells_the_same(shop):
    text = f"select word, count from {shop.app}.counts where word = 'socket'"
    url = f"ws://127.0.0.1:{shop.port}/v1/sql/socket?query={quote(text)}"
    options = {"additional_headers": {"Authorization": "Bearer all"}, "open_timeout": 60}
    with connect(url, **options) as socket:
        ready = json.loads(socket.recv(60))
        assert ready["event"] == "ready"
        shop.post(f"{shop.app}.words", {"word": "socket"})
        told = json.loads(socket.recv(60))
        assert (told["event"], told["data"]["value"]["word"]) == ("change", "socket")
    with connect(f"{url}&last={told['id']}", **options) as socket:
        assert json.loads(socket.recv(60))["data"]["resumed"] is True
    with pytest.raises(InvalidStatus) as refused:
        connect(url.replace("word", "wrod", 1), **options)
    assert refused.value.response.status_code == 400


@dataclass
class Total:
    word: str
    value: int


def test_the_client_gives_typed_rows_with_and_without_async(shop):
    url, text = f"http://127.0.0.1:{shop.port}", "select word, value from count.total"
    own = [Sent(*_place(each)) for each in shop.own.split(",")]

    async def ask():
        async with Client(url, token="all") as client:  # noqa: S106
            return await client.sql(f"{text} where word = 'w007'", into=Total, at_least=own)

    found = asyncio.run(ask())
    assert list(found) == [Total("w007", 3)]
    assert list(found.positions["count.total"]) == [f"{shop.app}.words"]
    with SyncClient(url, token="all") as client:  # noqa: S106
        plain = client.sql(f"{text} where word like 'w00%' order by word limit 2")
        assert [row["word"] for row in plain] == ["w000", "w001"]
        assert (len(plain), plain.columns, plain.more) == (2, ("word", "value"), False)
        with pytest.raises(DataError, match="no column") as raised:
            client.sql("select\n  wrod from count.total")
        assert "line 2, column 3" in raised.value.detail


def _place(text):
    topic, number, offset = text.rsplit(":", 2)
    return topic, int(number), int(offset)


def test_the_command_line_asks_states_and_tables_without_spark(shop, kafka, capsys):
    where = ["--set", f"kafka.bootstrap={kafka.bootstrap}", "--set", f"home={shop.home}"]
    file = str(shop.home / "app.py")

    def query(text, *options):
        code = main(["query", file, text, *options, *where])
        return code, *capsys.readouterr()

    text = f"""select o.word, t.value from count.total t join `{shop.app}.origins` o
        on o.word = t.word where o.word < 'w011' order by 1"""
    assert query(text, "--csv") == (0, "word,value\nw000,3\nw010,3\n", "")
    text = f"select word, count from {shop.app}.counts where word like 'w%' order by 1"
    code, out, _ = query(text, "--limit", "1")
    assert (code, out) == (0, "word\tcount\nw000\t3\n")
    code, _, err = query("select wrod from count.total")
    assert code == 1
    assert "did you mean 'word'" in err


def test_who_watches_is_told_to_stop_when_the_token_is_revoked_or_loses_its_role(shop):
    file, table = shop.home / "tokens.toml", f"{shop.app}.counts"
    before = file.read_text()
    digest = hashlib.sha256(b"guest").hexdigest()
    text = f"select word, count from {table} where word = 'nobody'"
    paths = (
        f"/v1/sql/changes?query={quote(text)}",
        f"/v1/tables/{table}/changes?key=nobody",
        "/v1/states/count/total/changes?key=nobody",
    )
    url = f"ws://127.0.0.1:{shop.port}/v1/sql/socket?query={quote(text)}"
    headers = {"Authorization": "Bearer guest"}

    for after, code in (("", "caller.unknown"), ('roles = ["meter"]', "caller.not-allowed")):
        file.write_text(f'{before}[callers.guest]\nsha256 = "{digest}"\nroles = ["all"]\n')
        until(lambda: shop.get(f"/v1/tables/{table}/rows", **headers).status == 200, "it is known")
        with ExitStack() as stack:
            several = [stack.enter_context(listening(shop, path, **headers)) for path in paths]
            socket = stack.enter_context(connect(url, additional_headers=headers))
            kept = f'[callers.guest]\nsha256 = "{digest}"\n{after}\n' if after else ""
            file.write_text(before + kept)
            for events in several:
                while (event := events.next())[0] != "ended":
                    pass
                assert event[1]["code"] == code
            with pytest.raises(ConnectionClosed) as closed:
                deque(socket, maxlen=0)  # all that it is told
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, code)
    file.write_text(before)


def test_the_command_line_watches_what_changes_in_an_answer(shop, kafka):
    words = ["query", str(shop.home / "app.py"), "--watch", "--json"]
    words += ["select word, value from count.total where word = 'watched'"]
    where = ["--set", f"kafka.bootstrap={kafka.bootstrap}", "--set", f"home={shop.home}"]
    shop.post(f"{shop.app}.words", {"word": "watched"})
    command = [sys.executable, "-m", "penstock.cli", *words, *where]
    path = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=path) as watching:
        try:
            assert watching.stdout is not None
            told = json.loads(watching.stdout.readline())
            before = told["value"]["value"]
            assert told == {"before": None, "value": {"word": "watched", "value": before}}
            shop.post(f"{shop.app}.words", {"word": "watched"})
            told = json.loads(watching.stdout.readline())
            assert (told["before"]["value"], told["value"]["value"]) == (before, before + 1)
            watching.send_signal(signal.SIGINT)
            assert watching.wait(60) == 130
        finally:
            watching.kill()
