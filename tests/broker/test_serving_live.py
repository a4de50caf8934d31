"""Live queries through a gateway, over real sockets.

Long because all tests share one running application.
"""

import json
import re
import time
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from jwt.algorithms import OKPAlgorithm
from websockets.exceptions import ConnectionClosed, InvalidStatus

from penstock.backbone.declare import declare_application
from penstock.cli.console.asking.livequeries import Tries
from penstock.cli.console.log import LogWatcher
from penstock.cli.console.reach import Reach
from penstock.cli.main import main
from penstock.client import LiveChange, SyncClient
from penstock.core.rules.check import verified
from penstock.errors import DataError
from penstock.live import field
from penstock.serving.desk.offers import Asked
from penstock.serving.live.session import MOST_SUBSCRIPTIONS

from .breaking_proxy import BreakingProxy
from .live_site import Client, EventClient, Todo, Writing, declare_todos, serving_live
from .serving_site import open_door, until

RESULT = LiveChange(kind="result")


def todo(number, **more):
    return Todo(**{"id": str(number), "list": "home", "text": "t", "rank": number, **more})


@pytest.fixture(scope="module")
def todos(kafka, tmp_path_factory):
    """An application whose services run for all tests of this module."""
    app = declare_todos(f"live{time.time_ns()}", rows=2)
    graph = verified(app.graph)
    declare_application(graph, kafka)
    with serving_live(graph, kafka, tmp_path_factory.mktemp("services")):
        yield graph


def test_a_client_has_results_changes_and_mistakes_on_one_socket(todos, kafka, tmp_path):
    table = Writing(todos, kafka)
    open_ones = {"filter": {"list": "home", "done": False}, "sort": [["rank", 1]], "limit": 3}
    with open_door(todos, kafka, tmp_path) as door, Client(door.port) as client:
        table.put(*(todo(number) for number in range(1, 5)))
        client.subscribe("open", open_ones)
        client.subscribe("all", {"filter": "rank > 0 and list = 'home'"}, face="results")
        client.until("ready", "open")
        client.until_ids("open", ["1", "2", "3"])
        client.until_ids("all", {"1", "2", "3", "4"})
        assert client.until("up-to-date")["stale_seconds"] is not None
        # What is pushed out leaves before what comes in, in one message.
        table.put(todo(9, rank=0))
        changes = client.until("changes", "open")
        assert [event["what"] for event in changes["events"]] == ["remove", "add"]
        gone = {"what": "remove", "document": {"_id": "3"}, "operation": "none"}
        assert changes["events"][0] == gone
        client.until_ids("open", ["9", "1", "2"])
        table.delete("1")
        client.until_ids("open", ["9", "2", "3"])
        client.until_ids("all", {"2", "3", "4"})
        # Mistakes are told with the name of the subscription; others go on.
        client.subscribe("bad", {"filter": {"note": {"$where": "1"}}})
        problem = client.until("error", "bad")["problem"]
        assert problem["code"] == "query.refused"
        assert "$where at 'note'" in problem["detail"]
        client.subscribe("bad", {}, face="nothing")
        assert client.until("error", "bad")["problem"]["code"] == "live.message"
        client.subscribe("bad", {}, live="elsewhere")
        assert client.until("error", "bad")["problem"]["code"] == "live.unknown"
        client.send("ping")
        client.until("pong")
        client.send("unsubscribe", id="all")
        client.until("end", "all")
        client.send("subscribe", id="open", query={})
        with pytest.raises(ConnectionClosed):
            client.until("never")
        assert client.seen[-1]["problem"]["code"] == "live.message"
        assert client.close_code == 1008


def test_a_client_comes_back_without_a_gap(todos, kafka, tmp_path):
    table = Writing(todos, kafka)
    query = {"filter": {"list": "back", "done": False}, "sort": [["rank", 1]], "limit": 3}

    def back(number, **more):
        return todo(number, id=f"b{number}", list="back", **more)

    with open_door(todos, kafka, tmp_path) as door:
        with Client(door.port) as client:
            table.put(*(back(number) for number in range(1, 5)))
            client.subscribe("open", query)
            client.until_ids("open", ["b1", "b2", "b3"])
            copy = client.copies["open"]
        table.put(back(2, done=True), back(8, rank=-1))
        table.put(back(8, rank=-2), back(7, rank=7, done=True))
        with Client(door.port) as client:
            client.copies["open"] = copy
            client.subscribe("open", query, resume=copy.token)
            client.until("resumed", "open")
            client.until_ids("open", ["b8", "b1", "b3"])
            client.subscribe("squashed", {"filter": {"list": "back"}}, squash="200ms")
            client.until("ready", "squashed")
            for rank in range(20):
                table.put(back(5, rank=rank, done=True))
            while not any(each["rank"] == 19 for each in client.copies["squashed"].documents):
                changes = client.until("changes", "squashed")
                named = [each["document"]["_id"] for each in changes["events"]]
                assert changes["squashed"]
                assert len(set(named)) == len(named)
        leaving = Client(door.port)
        leaving.subscribe("open", query)
        leaving.until_ids("open", ["b8", "b1", "b3"])
        copy = leaving.copies["open"]
    with pytest.raises(ConnectionClosed):
        leaving.until("never")
    assert leaving.seen[-1]["problem"]["code"] == "live.closed"
    assert leaving.close_code == 1012
    # Another process of the gateway: the token holds, or the result comes anew.
    table.put(back(6, rank=-9))
    with open_door(todos, kafka, tmp_path) as door, Client(door.port) as client:
        client.copies["open"] = copy
        client.subscribe("open", query, resume=copy.token)
        client.until_ids("open", ["b6", "b8", "b1"])


def test_streams_of_events_and_polls_carry_the_same_messages(todos, kafka, tmp_path):
    table, query = Writing(todos, kafka), {"filter": {"list": "sse"}, "sort": [["rank", 1]]}
    table.put(todo(1, id="s1", list="sse"))
    asked = {"id": "a", "query": query}
    with open_door(todos, kafka, tmp_path) as door:
        with EventClient(door.port, asked) as client:
            client.until("ready")
            client.until("up-to-date")  # not before its time: the result was complete
            told = [kind for kind in client.kinds if kind != "up-to-date"]
            assert told == ["begin", "first", "ready"]
            assert client.copy.documents[0]["_id"] == "s1"
            table.put(todo(2, id="s2", list="sse"))
            client.until("changes")
            last, before = client.last_id, deepcopy(client.copy)
            assert json.loads(last) == {"a": client.copy.token}
            table.put(todo(0, id="s0", list="sse"))
            client.until("changes")
        with EventClient(door.port, asked, last_id=last, method="GET") as again:
            again.copy = before
            assert again.next()["type"] == "resumed"
            assert again.next()["events"][0]["document"]["_id"] == "s0"
        with EventClient(door.port, {"id": "a", "query": {"limit": -1}}) as client:
            assert client.next()["problem"]["code"] == "query.refused"

        def poll(**more):
            body = {"subscribe": [{**asked, **more}], "wait": "20s"}
            answer = door.request("POST", "/v1/live/poll", body)
            assert answer.status == 200, answer.body
            return answer.json["messages"]

        found = poll()
        kinds = [each["type"] for each in found]
        assert kinds == ["begin", "first", "ready", "up-to-date"]
        assert [each["_id"] for each in found[1]["documents"]] == ["s0", "s1", "s2"]
        table.put(todo(9, id="s9", list="sse"))
        found = poll(resume=found[2]["token"])
        assert [each["type"] for each in found] == ["resumed", "changes", "up-to-date"]
        assert found[1]["events"][0]["document"]["_id"] == "s9"
        body = {"subscribe": [{**asked, "resume": found[1]["token"]}], "wait": "0s"}
        answer = door.request("POST", "/v1/live/poll", body).json["messages"]
        assert [each["type"] for each in answer] == ["resumed", "up-to-date"]
        for body in ({}, {"subscribe": []}, {"subscribe": [asked], "wait": "1h"}, b"{"):
            answer = door.request("POST", "/v1/live/poll", body)
            assert (answer.status, answer.json["code"]) == (422, "live.message")
        assert door.get("/v1/live/events?subscribe={").status == 422
        assert door.get("/v1/live").status == 426
        paths = door.get("/v1/openapi.json").json["paths"]
        assert {"/v1/live/events", "/v1/live/poll"} <= set(paths)


def test_the_client_keeps_a_list_current_over_breaks(todos, kafka, tmp_path, capsys):
    table = Writing(todos, kafka)
    (live,) = todos.part("door").live
    query = {"filter": field("list").equals("kept"), "sort": [["rank", 1]], "limit": 3}

    def ids(documents):
        return [each["_id"] for each in documents]

    table.put(*(todo(number, id=f"k{number}", list="kept") for number in range(5)))
    with open_door(todos, kafka, tmp_path) as door, BreakingProxy(door.port) as proxy:
        with SyncClient(f"http://127.0.0.1:{proxy.port}") as client:
            with client.live_list(live, query) as kept:
                assert ids(kept.documents) == ["k0", "k1", "k2"]
                for number in range(6):
                    proxy.cut()
                    table.put(todo(-number - 1, id=f"n{number}", list="kept"))
                    kept.until(lambda found, n=number: ids(found)[0] == f"n{n}", seconds=60)
                assert ids(kept.documents) == ["n5", "n4", "n3"]
            result = client.live(live, query)
            changes = iter(result)
            assert next(changes).kind == "result"
            table.delete("n5")
            change = next(changes)
            assert [event.what for event in change.events] == ["remove", "add"]
            assert change.events[1].index == 2
            assert ids(result.documents) == ["n4", "n3", "n2"]
            with pytest.raises(DataError, match=r"\$where"):
                next(iter(client.live(live, {"filter": {"$where": "1"}})))
            # Several on one connection: after a break each goes on where it was.
            more = {f"none {number}": "list = 'nothing'" for number in range(30)}
            results = client.live_results(live, {"kept": query, **more})
            told = results.changes()
            assert {next(told) for _ in range(31)} == {(name, RESULT) for name in results}
            tokens = {name: each.token for name, each in results.items()}
            proxy.cut()
            table.put(todo(-9, id="z", list="kept"))
            name, change = next(told)
            assert (name, change.kind, ids(results["kept"].documents)[0]) == (
                "kept",
                "changes",
                "z",
            )
            assert results["none 7"].token == tokens["none 7"]
            with pytest.raises(DataError, match=r"\$where"):
                next(
                    client.live_results(live, {"a": {}, "b": {"filter": {"$where": "1"}}}).changes()
                )
        page = (Path(__file__).parents[2] / "docs" / "live-clients.md").read_text()
        table.put(todo(1, id="g1", list="guide", text="water the plants"))
        module = {"live": live, "write": lambda **row: table.put(Todo(**row))}
        for program in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            here = program.replace("localhost:8800", f"localhost:{door.port}")
            exec(here.replace("home", "guide"), module)  # noqa: S102
    said = capsys.readouterr().out.splitlines()
    assert said[:4] == ["water the plants", "result", "changes add feed the cat", "feed the cat"]
    assert {line.rpartition(" ")[0] for line in said[4:]} == {"guide result", "work result"}


def test_a_result_is_cached_until_its_events_change_it(todos, kafka, tmp_path):
    table = Writing(todos, kafka)
    query = {"filter": {"list": "cached"}, "sort": [["rank", 1]], "limit": 2}
    path = f"/v1/live/result?{urlencode({'query': json.dumps(query)})}"
    table.put(todo(2, id="x2", list="cached"), todo(3, id="x3", list="cached"))

    def ids(answer):
        return [each["_id"] for each in answer.json["documents"]]

    def answered():
        answer = door.get(path)
        return answer if answer.status == 200 and ids(answer) == ["x2", "x3"] else None

    with open_door(todos, kafka, tmp_path) as door:
        first = until(answered, "the result")
        tag = first.headers["etag"]
        for _ in range(20):
            again = door.get(path, If_None_Match=f'"other", {tag}')
            assert (again.status, again.headers["x-cache"], again.body) == (304, "hit", b"")
            assert int(again.headers["age"]) <= 5
        table.put(todo(1, id="x1", list="cached"))
        newer = until(
            lambda: (found := door.get(path, If_None_Match=tag)).status == 200 and found,
            "what the event changed",
        )
        assert ids(newer) == ["x1", "x2"]
        assert newer.headers["etag"] != tag
        assert newer.headers["x-cache"] == "hit"
        # Whoever has the result can follow it from there.
        with Client(door.port) as client:
            client.subscribe("on", query, resume=newer.json["token"])
            client.until("resumed", "on")
        for wrong in ("query={", "query=[]", "max_stale=soon", "more=1"):
            assert door.get(f"/v1/live/result?{wrong}").status == 422
        assert door.get(f"{path}&max_stale=0s").status == 503
        assert door.get("/v1/live/result?live=other").status == 404


def test_a_slow_client_is_told_that_it_is_behind_and_no_other_waits(todos, kafka, tmp_path):
    table, query = Writing(todos, kafka), {"filter": {"list": "slow"}}
    long = "x" * 16_000

    def row(number):
        return todo(number, id=f"s{number % 3}", list="slow", text=long)

    with (
        # It answers no pings either: it must not be taken for dead, however busy the machine is.
        open_door(todos, kafka, tmp_path, silence_timeout=timedelta(minutes=5)) as door,
        Client(door.port) as slow,
        Client(door.port) as other,
    ):
        for client in (slow, other):
            client.subscribe("slow", query)
            client.until("ready", "slow")
        # More than the sockets between them hold, and than the gateway remembers.
        for first in range(0, 700, 14):
            table.put(*(row(number) for number in range(first, first + 14)))
            last = first + 13
            other.until_that(
                lambda at=last: any(each["rank"] == at for each in other.copies["slow"].documents)
            )
        assert slow.until("error", "slow")["problem"]["code"] == "live.behind"
        # That subscription has ended, not the connection; with squash it keeps up.
        slow.copies.clear()
        slow.subscribe("slow", query, squash="100ms")
        slow.until_that(
            lambda: {each["rank"] for each in slow.copies["slow"].documents} == {697, 698, 699}
        )


def test_results_take_a_bounded_amount_of_memory(todos, kafka, tmp_path):
    table = Writing(todos, kafka)
    table.put(*(todo(number, id=f"m{number}", list="memory") for number in range(200)))
    options = {"live_bytes": 10_000, "heartbeat": timedelta(milliseconds=50)}
    with open_door(todos, kafka, tmp_path, **options) as door, Client(door.port) as client:
        client.subscribe("one", {"filter": {"list": "memory"}})
        client.until("ready", "one")
        client.subscribe("two", {"filter": {"list": "memory", "done": False}})
        problem = client.until("error", "two")["problem"]
        assert (problem["code"], problem["status"]) == ("live.too-many", 503)
        # Who asks for what is followed already takes no more.
        client.subscribe("three", {"filter": {"list": "memory"}, "offset": 0})
        client.until("ready", "three")
        # Silence is broken by heartbeats, with the places of what was sent as a whole.
        client.until("up-to-date")
        beats = [client.until("up-to-date") for _ in range(3)]
        assert client.seen[-3:] == beats, "nothing else came between them"
        assert all(set(beat["tokens"]) == {"one", "three"} for beat in beats)
        assert all(beat["stale_seconds"] is not None for beat in beats)


def test_a_connection_and_a_gateway_follow_so_many_queries(todos, kafka, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.serving.live.following.MOST_QUERIES", 2)
    query = {"filter": {"list": "of many"}}
    with open_door(todos, kafka, tmp_path) as door, Client(door.port) as client:
        for number in range(MOST_SUBSCRIPTIONS):
            client.subscribe(str(number), query)
        client.subscribe("too many", query)
        problem = client.until("error", "too many")["problem"]
        assert (problem["code"], problem["status"]) == ("live.too-many", 429)
        client.send("unsubscribe", id="7")
        client.until("end", "7")
        client.subscribe("now", query)
        client.until("ready", "now")
        ready = {each["id"] for each in client.seen if each["type"] == "ready"}
        assert len(ready - {"7"}) == MOST_SUBSCRIPTIONS
        # A second query, but no third one; who asks for a known one takes no place.
        with Client(door.port) as other:
            other.subscribe("second", {"filter": {"list": "another"}})
            other.until("ready", "second")
            other.subscribe("third", {"filter": {"list": "a third one"}})
            problem = other.until("error", "third")["problem"]
            assert (problem["code"], problem["status"]) == ("live.too-many", 503)
            other.subscribe("third", query)
            other.until("ready", "third")


def test_a_live_query_is_shown_in_a_terminal(todos, kafka, tmp_path, monkeypatch, capsys):
    table = Writing(todos, kafka)
    table.put(todo(1, id="c1", list="cli"), todo(2, id="c2", list="cli"))
    source = Path(__file__).with_name("live_site.py").read_text()
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP", kafka.bootstrap)
    monkeypatch.chdir(tmp_path)
    head = source[source.index("@record") : source.index("@contextmanager")]
    imports = "from typing import Any\nfrom penstock import App, record\n\n"
    made = f"{imports}{head}\napp = declare_todos({todos.app!r}, rows=2)\n"
    (tmp_path / "app.py").write_text(made)
    assert main(["live", ".", "list = 'cli'", "--once"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert sorted(json.loads(line.split("\t")[2])["_id"] for line in shown) == ["c1", "c2"]
    asked = json.dumps({"filter": {"list": "cli"}, "sort": [["rank", -1]], "limit": 1})
    assert main(["live", ".", asked, "--once", "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["type"] for each in shown] == ["begin", "first", "ready"]
    assert [each["_id"] for each in shown[1]["documents"]] == ["c2"]
    assert main(["live", ".", "$where = 1", "--once"]) == 1


def test_a_live_query_is_followed_in_the_console(todos, kafka):
    table = Writing(todos, kafka)
    table.put(todo(1, id="p1", list="page"))
    reach = Reach(log=LogWatcher(lambda: kafka), graph=lambda: todos)
    query = {"query": "list = 'page' and rank > 0"}
    asked = Asked(path={"name": f"{todos.app}.live"}, query=query)
    stream = Tries(reach, lambda *_: None).stream(asked)
    messages = (event.document for event in stream if event.kind == "message")
    first = next(each for each in messages if each["type"] == "first" and each["documents"])
    assert [each["_id"] for each in first["documents"]] == ["p1"]
    next(each for each in messages if each["type"] == "ready")
    table.put(todo(2, id="p2", list="page"))
    changes = next(each for each in messages if each["type"] == "changes")
    assert [(each["what"], each["document"]["_id"]) for each in changes["events"]] == [
        ("add", "p2")
    ]
    asked.stop.set()
    assert not list(stream)


def test_whoever_may_not_call_any_more_is_told_nothing_more(todos, kafka, tmp_path):
    table = Writing(todos, kafka)
    tokens = tmp_path / "tokens.toml"

    def write_tokens(**expires):
        lines = []
        for name, instant in expires.items():
            lines += [f"[callers.{name}]", f'sha256 = "{sha256(name.encode()).hexdigest()}"']
            lines += [f"expires = {instant.isoformat()}"] if instant else []
        tokens.write_text("\n".join(lines))

    soon, query = datetime.now(UTC) + timedelta(seconds=8), {"filter": {"list": "work"}}
    write_tokens(ann=soon, bea=None, cleo=None)
    with open_door(todos, kafka, tmp_path, tokens_file=str(tokens)) as door:
        with pytest.raises(InvalidStatus, match="401"):
            Client(door.port, "nobody")
        with Client(door.port, "ann") as ann, Client(door.port, "bea") as bea:
            for client in (ann, bea):
                client.subscribe("work", query)
                client.until("ready", "work")
            table.put(todo(1, list="work"))
            for client in (ann, bea):
                client.until_ids("work", {"1"})
            # The token runs out; nobody has to ask for that.
            with pytest.raises(ConnectionClosed):
                ann.until("never")
            assert datetime.now(UTC) >= soon
            assert (ann.seen[-1]["type"], ann.close_code) == ("error", 1008)
            assert ann.seen[-1]["problem"]["code"] == "caller.unknown"
            # Another token of the same rows: subscriptions go on as if nothing had happened.
            bea.authenticate("cleo")
            assert bea.until("authenticated")["name"] == "cleo"
            table.put(todo(2, list="work"))
            bea.until_ids("work", {"1", "2"})
            assert "must-refetch" not in bea.types
            write_tokens(bea=None)
            with pytest.raises(ConnectionClosed):
                bea.until("never")
            assert bea.seen[-1]["problem"]["code"] == "caller.unknown"
        with Client(door.port, "bea") as bea:
            bea.authenticate("wrong")
            with pytest.raises(ConnectionClosed):
                bea.until("never")
            assert bea.seen[-1]["problem"]["code"] == "caller.unknown"


def issuer(home):
    """Return what signs tokens, and the settings of a gateway that takes them."""
    key, keys = ed25519.Ed25519PrivateKey.generate(), home / "jwks.json"
    keys.write_text(json.dumps({"keys": [json.loads(OKPAlgorithm.to_jwk(key.public_key()))]}))

    def signed(subject, seconds):
        claims = {"sub": subject, "aud": "door", "exp": time.time() + seconds}
        return jwt.encode(claims, key, "EdDSA")

    return signed, {"jwks_file": str(keys), "jwt_audience": "door", "jwt_leeway": timedelta()}


def see_the_same_with_signed_tokens(door, query, signed, write):
    # Another token of the same rows changes nothing, one of other rows does.
    with Client(door.port, signed("ann", 600)) as client:
        client.subscribe("newest", query)
        client.until_ids("newest", ["r3", "r4"])
        client.authenticate(signed("ann", 900))
        assert client.until("authenticated")["name"] == "jwt:ann"
        write()
        client.until_that(lambda: client.copies["newest"].documents[0]["rank"] == -1)
        assert "must-refetch" not in client.types
        client.authenticate(signed("bea", 600))
        client.until("must-refetch", "newest")
        client.until_ids("newest", ["r1", "r2"])
        # It ends with its time, without a word of anybody.
        ends = time.time() + 2
        client.authenticate(signed("bea", 2))
        with pytest.raises(ConnectionClosed):
            client.until("never")
        assert time.time() >= ends - 0.1
        assert client.seen[-1]["problem"]["code"] == "caller.unknown"
        assert client.close_code == 1008


def test_a_caller_sees_the_rows_of_the_rule_and_aggregates_of_them(todos, kafka, tmp_path):
    table = Writing(todos, kafka)
    tokens = tmp_path / "tokens.toml"

    def write_tokens(**subjects):
        lines = []
        for name, subject in subjects.items():
            lines += [f"[callers.{name}]", f'sha256 = "{sha256(name.encode()).hexdigest()}"']
            lines += [f'claims = {{ sub = "{subject}" }}']
        tokens.write_text("\n".join(lines))

    write_tokens(ann="ann", bea="bea")
    newest = {"filter": {"list": "rules"}, "sort": [["rank", 1]], "limit": 2}
    counts = {
        "filter": {"list": "rules"},
        "group": ["done"],
        "aggregate": {"n": {"count": True}, "most": {"max": "rank"}},
    }

    def row(number, owner, **more):
        return todo(number, id=f"r{number}", list="rules", owner=owner, **more)

    def groups(copy):
        return {each["done"]: (each["n"], each["most"]) for each in copy.documents}

    table.put(row(1, "ann"), row(2, "bea"), row(3, "ann"), row(4, ""), row(5, "bea", done=True))
    signed, options = issuer(tmp_path)
    with open_door(todos, kafka, tmp_path, tokens_file=str(tokens), **options) as door:
        with Client(door.port, "ann") as ann, Client(door.port, "bea") as bea:
            for client in (ann, bea):
                client.subscribe("newest", newest)
                client.subscribe("counts", counts)
                client.until("ready", "counts")
            ann.until_ids("newest", ["r1", "r3"])
            bea.until_ids("newest", ["r2", "r4"])
            ann.until_that(lambda: groups(ann.copies["counts"]) == {False: (3, 4)})
            bea.until_that(lambda: groups(bea.copies["counts"]) == {False: (2, 4), True: (1, 5)})
            # A row that goes to another owner leaves one list and enters the other.
            table.put(row(1, "bea"))
            ann.until_ids("newest", ["r3", "r4"])
            bea.until_ids("newest", ["r1", "r2"])
            ann.until_that(lambda: groups(ann.copies["counts"]) == {False: (2, 4)})
            bea.until_that(lambda: groups(bea.copies["counts"]) == {False: (3, 4), True: (1, 5)})
            seen = json.dumps(ann.seen)
            assert '"owner": "bea"' not in seen
            # Other claims: at once another result, without a row that may not be seen.
            write_tokens(ann="bea", bea="bea")
            ann.until("must-refetch", "newest")
            ann.until_ids("newest", ["r1", "r2"])
            ann.until_that(lambda: groups(ann.copies["counts"]) == {False: (3, 4), True: (1, 5)})
        see_the_same_with_signed_tokens(
            door, newest, signed, lambda: table.put(row(3, "ann", rank=-1))
        )
        # The token of a place in other rows is worth nothing.
        with Client(door.port, "bea") as bea:
            stale = "q1.1.9.000000000000"
            bea.subscribe("newest", newest, resume=stale)
            bea.until("must-refetch", "newest")
            bea.until_ids("newest", ["r1", "r2"])
