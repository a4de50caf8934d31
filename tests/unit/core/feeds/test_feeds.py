"""What subscribers are told, against the result computed anew."""

import json
import random

import pytest

from penstock.core.feeds.feed import KEPT_CHANGES, Feed
from penstock.core.feeds.replica import Replica
from penstock.core.feeds.subscription import LONGEST_RESULT, Subscription
from penstock.core.grid.documents import encode_document
from penstock.core.grid.messages import News
from penstock.core.live.query import read_query
from penstock.core.live.result import live_result


class Source:
    """Makes news of random writes, as the services do."""

    def __init__(self, query, *, seed=0):
        self.query = read_query(query)
        self.random = random.Random(seed)
        self.table = {}
        self.number, self.life, self.offset = 0, 1, 0
        self.feed = Feed("q-" + "0" * 12, ordered=self.query.ordered)
        self.live = self._live()

    def _live(self):
        found = live_result(self.query, refill=self._refill)
        found.begin(self.table.values())
        return found

    def _refill(self, count):
        matching = [each for each in self.table.values() if self.query.matches(each)]
        return sorted(matching, key=self.query.place)[:count]

    def tell(self, what, **more):
        self.number += 1
        return self.feed.take(News(id="q", life=self.life, number=self.number, what=what, **more))

    def whole(self):
        self.tell("begin")
        for index, each in enumerate(self.live.documents):
            self.tell("first", index=index, document=encode_document(each))
        self.tell("ready", positions={"0": self.offset})

    def write(self, identity, document):
        before = self.table.pop(identity, None)
        if document is None and before is None:
            return
        operation = "delete" if document is None else "insert" if before is None else "update"
        if document is not None:
            self.table[identity] = document
        self.offset += 1
        events = self.live.write(operation, identity, document)
        for left, event in zip(range(len(events) - 1, -1, -1), events, strict=True):
            self.tell(
                event.match,
                operation=event.operation,
                index=event.index,
                document=encode_document(event.document),
                positions={"0": self.offset},
                more=left > 0,
            )

    def random_write(self):
        identity = self.random.randrange(25)
        if self.random.random() < 0.25:
            self.write(identity, None)
        else:
            rank, owner = self.random.randrange(10), self.random.choice("abc")
            self.write(identity, {"_id": identity, "rank": rank, "owner": owner})

    def anew(self):
        self.life, self.number = self.life + 1, 0
        self.live = self._live()
        self.whole()

    def expected(self):
        return self.query.result(list(self.table.values()))


class Client:
    def __init__(self, source, **options):
        self.source, self.replica, self.seen = source, Replica(), []
        self.subscription = Subscription("s", source.feed, **options)

    def read(self, most=1000, now=0.0):
        for _ in range(most):
            if (frame := self.subscription.pull(now)) is None:
                return
            message = json.loads(frame)
            self.seen.append(message)
            self.replica.take(message)

    def types(self):
        return [message["type"] for message in self.seen]


def as_result(documents, *, ordered):
    return documents if ordered else sorted(documents, key=lambda each: each["_id"])


QUERIES = [
    {},
    {"filter": {"owner": "a"}},
    {"filter": {"owner": {"$in": ["a", "b"]}}, "sort": [["rank", -1]], "limit": 4},
    {"sort": [["rank", 1]], "offset": 2, "limit": 3},
    {"sort": [["owner", 1], ["rank", -1]]},
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_whoever_follows_resumes_is_slow_or_squashes_has_the_result(query, seed):
    source = Source(query, seed=seed)
    for _ in range(15):
        source.random_write()
    source.whole()
    steady = Client(source)
    squashing = Client(source, squash=1.0)
    slow, whole = Client(source), Client(source, face="results")
    coming_back = Client(source)
    now = 0.0
    for _ in range(150):
        for _ in range(source.random.randrange(4)):
            source.random_write()
        steady.read(now=now)
        slow.read(most=source.random.randrange(3), now=now)
        whole.read(most=source.random.randrange(2), now=now)
        now += 0.3
        squashing.read(now=now)
        chance = source.random.random()
        if chance < 0.05:
            source.anew()
        elif chance < 0.1:
            source.whole()
        elif chance < 0.2:
            coming_back.read(now=now)
            token = coming_back.replica.token
            coming_back.subscription = Subscription("s", source.feed, resume=token)
        expected = as_result(source.expected(), ordered=source.query.ordered)
        found = as_result(steady.replica.documents, ordered=source.query.ordered)
        assert found == expected
    for client in (steady, squashing, slow, whole, coming_back):
        client.read(now=now + 10)
        found = as_result(client.replica.documents, ordered=source.query.ordered)
        assert found == expected
        assert client.subscription.token is not None
    assert "resumed" in coming_back.types()
    batches = [message for message in squashing.seen if message["type"] == "changes"]
    for batch in batches:
        named = [json.dumps(event["document"]["_id"]) for event in batch["events"]]
        assert batch["squashed"]
        assert len(set(named)) == len(named)


def test_who_removes_is_told_no_document():
    source = Source({"filter": {"owner": "a"}})
    source.write(1, {"_id": 1, "owner": "a", "rank": 1})
    source.whole()
    client = Client(source)
    client.read()
    source.write(1, {"_id": 1, "owner": "b", "rank": 1, "secret": "of b"})
    client.read()
    assert client.seen[-1]["events"] == [
        {"what": "remove", "document": {"_id": 1}, "operation": "update"}
    ]


def test_who_falls_behind_what_is_remembered_is_told_so_and_no_memory_grows():
    source = Source({})
    source.whole()
    slow, other = Client(source), Client(source)
    slow.read()
    for number in range(3 * KEPT_CHANGES):
        source.write(number % 7, {"_id": number % 7, "rank": number})
        other.read()
    assert len(source.feed._changes) == KEPT_CHANGES
    slow.read()
    assert slow.seen[-1]["problem"]["code"] == "live.behind"
    assert slow.subscription.ended
    assert as_result(other.replica.documents, ordered=False) == as_result(
        source.expected(), ordered=False
    )


def test_a_result_that_is_read_slowly_is_that_of_one_moment():
    source = Source({"sort": [["rank", 1]]})
    for number in range(1200):
        source.write(number, {"_id": number, "rank": number})
    source.whole()
    client = Client(source)
    client.read(most=2)
    for number in range(300):
        source.write(number, {"_id": number, "rank": -number})
    client.read()
    assert client.types()[:6] == ["begin", "first", "first", "first", "ready", "changes"]
    assert client.replica.documents == source.expected()


def test_a_token_of_another_gateway_holds_if_nothing_has_changed():
    source = Source({"sort": [["rank", 1]]})
    source.write(1, {"_id": 1, "rank": 1})
    source.whole()
    client = Client(source)
    client.read()
    source.feed = Feed(source.feed.name, ordered=True)
    source.whole()
    client.subscription = Subscription("s", source.feed, resume=client.replica.token)
    client.read()
    assert client.types()[-1] == "resumed"
    source.write(2, {"_id": 2, "rank": 0})
    client.read()
    assert client.replica.documents == source.expected()


def test_news_that_are_missing_or_an_end_mean_another_result():
    for lose in (lambda source: setattr(source, "number", source.number + 1), None):
        source = Source({})
        source.whole()
        client = Client(source)
        client.read()
        if lose:
            lose(source)
            source.write(1, {"_id": 1, "rank": 1})
        else:
            source.tell("end")
        client.read()
        assert client.types()[-1] == "must-refetch"
        assert client.subscription.token is None
        source.anew()
        client.read()
        assert client.replica.documents == source.expected()


@pytest.mark.parametrize("token", ["", "q1", "q1.1.2", "q1.x.2.000000000000", "q1.1.9999.0", "é"])
def test_a_token_that_is_none_leads_to_the_whole_result(token):
    source = Source({})
    source.whole()
    client = Client(source, resume=token or "q9.1.1.1")
    client.read()
    assert client.types() == ["must-refetch", "begin", "ready"]


def test_a_result_is_sent_as_a_whole_up_to_a_thousand_documents():
    source = Source({"sort": [["rank", 1]]})
    for number in range(LONGEST_RESULT):
        source.write(number, {"_id": number, "rank": number})
    source.whole()
    client = Client(source, face="results")
    client.read()
    assert client.replica.documents == source.expected()
    events = Client(source)
    events.read()
    source.write(-1, {"_id": -1, "rank": -1})
    for each in (client, events):
        each.read()
    assert client.seen[-1]["problem"]["code"] == "live.too-large"
    assert client.subscription.ended
    assert events.replica.documents == source.expected(), "events have no such limit"


def test_a_result_that_is_too_large_ends_the_subscription(monkeypatch):
    monkeypatch.setattr("penstock.core.feeds.feed.MOST_DOCUMENTS", 3)
    source = Source({})
    source.whole()
    client = Client(source)
    client.read()
    for number in range(5):
        source.write(number, {"_id": number, "rank": 1})
    client.read()
    assert client.seen[-1]["problem"]["code"] == "live.too-large"
    assert not source.feed.ready
    assert source.feed.size == 0
