"""Live queries through a gateway, over real sockets."""

import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from penstock.backbone.declare import declare_application
from penstock.core.rules.check import verified

from .live_site import Client, Todo, Writing, declare_todos, serving_live
from .serving_site import open_door


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
