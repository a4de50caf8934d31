"""Documents in a real OpenSearch: the newest of each key, also when it is killed in the middle."""

import json
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.javaserver import JavaServer, free_port_between, jars, running

from penstock import App, record
from penstock.connectors import Row, opensearch_documents
from penstock.connectors.connector import RowsRefusedError
from penstock.errors import ConfigurationError, TransientError
from penstock.testing import try_sink

PORTS = (9260, 9299)
"""The runner uses no later ones."""


@record(key="word")
class Word:
    word: str
    n: int


class OpenSearch(JavaServer):
    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(  # noqa: S310 - our own
            f"{self.url}{path}", data, headers, method=method
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.loads(answer.read())

    def documents(self, index: str) -> dict[str, Any]:
        self.ask("POST", f"{index}/_refresh")
        hits = self.ask("GET", f"{index}/_search?size=1000")["hits"]["hits"]
        return {each["_id"]: each["_source"] for each in hits}

    def clear(self, *indices: str) -> None:
        for index in indices:
            self.ask("DELETE", f"{index}?ignore_unavailable=true")


@pytest.fixture(scope="module")
def opensearch() -> Iterator[OpenSearch]:
    paths = jars("opensearch")
    port = free_port_between(*PORTS)
    with tempfile.TemporaryDirectory(prefix="penstock-opensearch-") as directory:
        words = ["-Xmx512m", "-XX:+UseSerialGC", "-cp", ":".join(map(str, paths))]
        words += ["org.codelibs.opensearch.runner.OpenSearchRunner", "-basePath", directory]
        words += ["-numOfNode", "1", "-baseHttpPort", str(port - 1)]
        server = OpenSearch(Path(directory), f"http://127.0.0.1:{port}/", words, {})
        with running(server):
            yield server


def rows(*words: tuple[str, int | None], first: int = 0) -> list[Row]:
    found = []
    for offset, (word, n) in enumerate(words, first):
        value = b"" if n is None else json.dumps({"word": word, "n": n}).encode()
        change: Any = "delete" if n is None else "add"
        found.append(Row(Word(word, n or 0), value, offset, change, key=word.encode()))
    return found


def opened(connector: Any) -> Any:
    app = App("shop")
    return connector.open(app.sink("s", connector, reads=app.stream("words", Word)))


def test_the_newest_of_each_key_holds_whatever_is_repeated(opensearch):
    batch = rows(("a", 1), ("b", 1), ("a", 2), ("b", None), ("c", None), ("a", 3))
    made = opensearch_documents("newest", url=opensearch.url)
    writer = opened(made)
    writer.write(0, batch, 6)
    assert opensearch.documents("newest") == {"a": {"word": "a", "n": 3}}
    opensearch.clear("penstock-positions")  # as after a crash before the position was written
    again = opened(made)
    assert again.positions() == {}
    for n in range(1, 7):
        again.write(0, batch[n - 1 : n], n)
        assert opensearch.documents("newest") == {"a": {"word": "a", "n": 3}}
    with pytest.raises(TransientError) as taken:
        writer.write(0, batch, 6)
    assert taken.value.code == "sink.taken"
    last = opened(made)
    assert last.positions() == {0: 6}
    for each in (writer, again, last):
        each.close()


def test_whatever_is_in_keys_and_records_is_one_document_each(opensearch):
    hostile = [
        '"}}\n{"delete":{"_index":"x","_id":"a"}}\n',
        "../_all?q",
        "ключ \u2028 🚰",
        "x" * 512,
    ]
    batch = rows(*((word, n) for n, word in enumerate(hostile)))
    spread = b'{"word":\n"spread",\r\n"n": 7}\n'
    batch.append(Row(Word("spread", 7), spread, 4, key=b"spread"))
    writer = opened(opensearch_documents("hostile", url=opensearch.url))
    writer.write(0, batch, 5)
    writer.close()
    found = opensearch.documents("hostile")
    assert {key: each["word"] for key, each in found.items()} == {
        w: w for w in (*hostile, "spread")
    }


def test_a_row_that_does_not_fit_is_refused_in_the_servers_words(opensearch):
    opensearch.ask("PUT", "strict", {"mappings": {"properties": {"n": {"type": "integer"}}}})
    batch = rows(("a", 1), ("b", 2**40), ("c", 2))
    writer = opened(opensearch_documents("strict", url=opensearch.url))
    with pytest.raises(RowsRefusedError) as refused:
        writer.write(0, batch, 3)
    assert list(refused.value.refusals) == [1]
    assert "failed to parse field [n]" in refused.value.refusals[1]
    assert "out of range" in refused.value.refusals[1]
    writer.write(0, [batch[0], batch[2]], 3)
    writer.close()
    assert sorted(opensearch.documents("strict")) == ["a", "c"]


def test_a_full_disk_holds_the_sink_back_and_a_missing_index_ends_it(opensearch):
    opensearch.ask("PUT", "full", {})
    block = "index.blocks.read_only_allow_delete"
    opensearch.ask("PUT", "full/_settings", {block: True})
    writer = opened(opensearch_documents("full", url=opensearch.url))
    with pytest.raises(TransientError, match="cluster_block") as later:
        writer.write(0, rows(("a", 1)), 1)
    assert later.value.code == "connector.away"
    opensearch.ask("PUT", "full/_settings", {block: None})
    writer.write(0, rows(("a", 1)), 1)
    writer.close()
    assert sorted(opensearch.documents("full")) == ["a"]
    settings = {"persistent": {"action.auto_create_index": "penstock-*"}}
    opensearch.ask("PUT", "_cluster/settings", settings)
    try:
        missing = opened(opensearch_documents("missing", url=opensearch.url))
        with pytest.raises(ConfigurationError, match="index_not_found_exception"):
            missing.write(0, rows(("a", 1)), 1)
        missing.close()
    finally:
        opensearch.ask(
            "PUT", "_cluster/settings", {"persistent": {"action.auto_create_index": None}}
        )


def test_each_record_is_there_once_although_the_server_is_killed(opensearch):
    some = [Word(f"w{n}", n) for n in range(60)]
    deaths = iter(range(1))

    def disturb() -> None:
        for _ in deaths:
            opensearch.kill()
            opensearch.start()

    def outside() -> list[Word]:
        return [Word(**each) for each in opensearch.documents("killed").values()]

    def clear() -> None:
        opensearch.clear("killed", "penstock-positions")

    made = opensearch_documents("killed", url=opensearch.url)
    try_sink(made, some, outside=outside, runs=2, disturb=disturb, clear=clear)
