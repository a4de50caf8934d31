"""Documents over HTTP against a real server that refuses some, is cut off, away or answers wrongly."""

import json

import pytest
from tests.scriptedhttp import serving
from tests.scriptedsearch import Search

from penstock import App, record
from penstock.connectors import Row, opensearch_documents
from penstock.connectors.connector import RowsRefusedError
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError, TransientError
from penstock.testing import try_sink


@record(key="word")
class Word:
    word: str
    n: int


@record()
class Keyless:
    n: int


def searching(search):
    return serving(lambda method, headers, body: search(method, headers[":path"], body), "/")


def rows(*words: tuple[str, int | None]) -> list[Row]:
    """Make rows of words and numbers, or of deletions."""
    found = []
    for offset, (word, n) in enumerate(words):
        value = b"" if n is None else json.dumps({"word": word, "n": n}).encode()
        change = "delete" if n is None else "add"
        found.append(Row(Word(word, n or 0), value, offset, change, key=word.encode()))
    return found


def opened(connector, kind=Word):
    app = App("shop")
    return connector.open(app.sink("s", connector, reads=app.stream("words", kind)))


@pytest.mark.parametrize("by", ["key", "record"])
def test_each_record_is_there_once_whatever_dies_and_whichever_answer_is_lost(by):
    search = Search()
    search.cut_each = 5
    some = [Word(f"w{n}", n) for n in range(60)]

    def outside():
        return [Word(**each) for each in search.of("words").values()]

    with searching(search) as url:
        made = opensearch_documents("words", url=url, id=by)
        try_sink(made, some, outside=outside, clear=search.clear, runs=2)
    assert set(search.of("penstock-positions")) == {"trial:trials:words:0", "trial:trials:words:1"}


def test_an_older_or_repeated_write_never_replaces_a_newer_one():
    search = Search()
    batch = rows(("a", 1), ("b", 1), ("a", 2), ("b", None), ("c", None), ("a", 3))
    with searching(search) as url:
        writer = opened(opensearch_documents("words", url=url))
        writer.write(0, batch, 6)
        writer.close()
        assert search.of("words") == {"a": {"word": "a", "n": 3}}
        search.documents.pop(("penstock-positions", "s:words:words:0"))
        search.versions.pop(("penstock-positions", "s:words:words:0"))
        again = opened(opensearch_documents("words", url=url))
        assert again.positions() == {}  # as after a crash before the position was written
        for n in range(1, 7):
            again.write(0, batch[n - 1 : n], n)
            assert search.of("words") == {"a": {"word": "a", "n": 3}}
        assert again.positions() == {0: 6}
        again.close()


def test_rows_that_the_server_refuses_are_told_in_its_words_and_the_others_are_there():
    def refusal(document):
        return (400, "mapper_parsing_exception") if document.get("n", 1) < 0 else None

    search = Search(refusal)
    batch = rows(("a", 1), ("b", -1), ("c", 2))
    with searching(search) as url:
        writer = opened(opensearch_documents("words", url=url))
        with pytest.raises(RowsRefusedError) as refused:
            writer.write(0, batch, 3)
        assert refused.value.refusals == {1: "HTTP 400: mapper_parsing_exception: as it is"}
        assert writer.positions() == {}
        writer.write(0, [batch[0], batch[2]], 3)
        assert writer.positions() == {0: 3}
        writer.close()
    assert sorted(search.of("words")) == ["a", "c"]


@pytest.mark.parametrize("key", [b"", b"x" * 513, b"\xff", None])
def test_a_key_that_is_no_id_is_told_before_anything_is_sent(key):
    search = Search()
    with searching(search) as url:
        writer = opened(opensearch_documents("words", url=url))
        asked = search.requests
        with pytest.raises(RowsRefusedError) as refused:
            writer.write(0, [Row(Word("a", 1), b"{}", 0, key=key)], 1)
        writer.close()
    assert search.requests == asked
    assert "key" in refused.value.refusals[0]


def test_whatever_is_in_keys_and_records_is_one_document_each():
    search = Search()
    hostile = [
        '"}}\n{"delete":{"_index":"words","_id":"a"}}\n',
        "../_all?refresh",
        "ключ \u2028 🚰",
        "x" * 512,
    ]
    batch = rows(*((word, n) for n, word in enumerate(hostile)))
    spread = b'{"word":\n"spread",\r\n"n": 7}\n'  # JSON of another producer, over several lines
    batch.append(Row(Word("spread", 7), spread, 4, key=b"spread"))
    with searching(search) as url:
        writer = opened(opensearch_documents("words", url=url))
        writer.write(0, batch, 5)
        writer.close()
    assert {each["word"] for each in search.of("words").values()} == {*hostile, "spread"}
    assert set(search.of("words")) == {*hostile, "spread"}


def test_a_second_run_is_noticed_and_the_first_goes_on_from_what_it_wrote():
    search = Search()
    batch = rows(("a", 1), ("b", 2))
    with searching(search) as url:
        made = opensearch_documents("words", url=url)
        first, second = opened(made), opened(made)
        second.write(0, batch, 2)
        with pytest.raises(TransientError) as taken:
            first.write(0, batch[:1], 1)
        assert taken.value.code == "sink.taken"
        again = opened(made)
        assert again.positions() == {0: 2}
        for each in (first, second, again):
            each.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "rejected_execution_exception"),
        (503, "unavailable_shards_exception"),
        (403, "cluster_block_exception"),
        (429, "cluster_block_exception"),
    ],
)
def test_a_row_that_is_to_come_later_holds_the_sink_back_and_is_no_dead_letter(status, kind):
    search = Search(lambda document: (status, kind) if document.get("n") == 2 else None)
    with searching(search) as url:
        writer = opened(opensearch_documents("words", url=url))
        with pytest.raises(TransientError, match=kind) as later:
            writer.write(0, rows(("a", 1), ("b", 2)), 2)
        assert later.value.code == "connector.away"
        search.refusal = lambda _document: None
        writer.write(0, rows(("a", 1), ("b", 2)), 2)
        writer.close()
    assert sorted(search.of("words")) == ["a", "b"]


@pytest.mark.parametrize(
    ("status", "kind"), [(404, "index_not_found_exception"), (403, "security_exception")]
)
def test_what_a_person_must_act_on_ends_the_sink(status, kind):
    search = Search(lambda _document: (status, kind))
    with searching(search) as url:
        writer = opened(opensearch_documents("words", url=url))
        with pytest.raises(ConfigurationError, match=kind):
            writer.write(0, rows(("a", 1)), 1)
        writer.close()


@pytest.mark.parametrize("status", [429, 502, 503, None])
def test_a_server_that_is_away_or_says_later_is_waited_for(status):
    with serving(lambda *_: (status, {}, b"later")) as url, pytest.raises(TransientError) as later:
        opened(opensearch_documents("words", url=url))
    assert later.value.code == "connector.away"


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>welcome</html>",
        b"[]",
        b"{}",
        b'{"items":[]}',
        b'{"items":[7]}',
        b'{"items":[{}]}',
        b'{"items":[{"index":{}}]}',
        b'{"items":[{"index":{"status":"ok"}}]}',
        b'{"items":[{"index":{"status":200}},{"index":{"status":200}}]}',
    ],
)
def test_an_answer_that_does_not_speak_of_each_row_is_none(answer):
    def wrongly(_method, headers, _body):
        return 200, {}, (answer if "_bulk" in headers[":path"] else empty)

    partitions = App("a").stream("words", Word).topic.partitions
    empty = json.dumps({"docs": [{"found": False}] * partitions}).encode()
    with serving(wrongly, "/") as url:
        writer = opened(opensearch_documents("words", url=url))
        with pytest.raises(TransientError, match="answers what it should not"):
            writer.write(0, rows(("a", 1)), 1)
        writer.close()
    with (
        serving(lambda *_: (200, {}, answer)) as url,
        pytest.raises(TransientError, match="answers what it should not"),
    ):
        opened(opensearch_documents("words", url=url))


def test_a_request_that_is_refused_as_a_whole_is_halved_until_the_row_is_found():
    search = Search()

    def small(method, headers, body):
        if len(body) > 400:
            return 413, {}, b"too large"
        return search(method, headers[":path"], body)

    batch = rows(("a", 1), ("b", 2), ("c" * 300, 3), ("d", 4))
    with serving(small, "/") as url:
        writer = opened(opensearch_documents("words", url=url))
        with pytest.raises(RowsRefusedError) as refused:
            writer.write(0, batch, 4)
        assert refused.value.refusals == {2: "HTTP 413: too large"}
        writer.write(0, [row for n, row in enumerate(batch) if n != 2], 4)
        writer.close()
    assert sorted(search.of("words")) == ["a", "b", "d"]


def test_what_does_not_fit_is_told_when_the_sink_opens_and_a_trial_writes_nothing():
    search = Search()
    with searching(search) as url:
        made = opensearch_documents("words", url=url)
        with pytest.raises(ConfigurationError) as keyless:
            opened(made, Keyless)
        app = App("a")
        by_record = opensearch_documents("words", url=url, id="record")
        with pytest.raises(ConfigurationError) as table:
            by_record.open(app.sink("s", by_record, reads=app.table("words", Word)))
        assert keyless.value.code == table.value.code == "sink.no-key"
        taken_back = Row(Word("a", 1), b"{}", 0, "withdraw", key=b"a")
        writer = opened(by_record)
        with pytest.raises(RowsRefusedError, match="1 rows"):
            writer.write(0, [taken_back], 1)
        writer.close()
        sink = app.sink("t", made, reads=app.stream("others", Word))
        assert made.attempt(sink) == "it answers; 0 records were written so far"
    assert search.documents == {}


@pytest.mark.parametrize(
    "options",
    [
        {"index": "Words"},
        {"index": "a/b"},
        {"index": "a,b"},
        {"index": "*"},
        {"index": "_all"},
        {"index": ""},
        {"index": "x" * 256},
        {"index": 3},
        {"positions": "A"},
        {"id": "offset"},
        {"url": "http://x/?a=b"},
        {"url": "http://u:sesame@x/"},
        {"headers": {"Authorization": "Basic sesame"}},
        {"rows": 0},
    ],
)
def test_each_wrong_option_is_a_problem_and_no_secret_is_shown(options):
    app = App("shop")
    made = opensearch_documents(**{"index": "words", "url": "http://x:9200", **options})
    app.sink("s", made, reads=app.stream("words", Word))
    found = check(app.graph)
    assert [problem.code for problem in found] == ["source.option"]
    assert "sesame" not in str(found)
