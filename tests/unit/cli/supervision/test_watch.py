import pytest

from penstock import App, record
from penstock.backbone.client.logrecord import LogRecord
from penstock.cli.records import Shown
from penstock.cli.supervision.watch import Latest, find_watched
from penstock.errors import ConfigurationError


@record(key="word")
class Count:
    word: str
    count: int


APP = App("example")
STREAM = APP.stream("changes", Count)
TABLE = APP.table("counts", Count)
LAKE = APP.lake("kept", Count)
GRAPH = APP.graph


def shown(word: str, count: int | None, problem: str = "") -> Shown:
    value = None if count is None else {"word": word, "count": count}
    log_record = LogRecord(
        topic="t", partition=0, offset=0, timestamp_at=None, key=word.encode(), value=b""
    )
    return Shown(log_record, value, problem)


def words(latest: Latest) -> list[str]:
    return [row["word"] for row in latest.rows()]


def test_a_stream_shows_its_newest_records_first():
    latest = Latest(find_watched(GRAPH, "changes"))
    for number in range(15):
        latest.add(shown(f"w{number}", number))
    assert words(latest) == [f"w{number}" for number in range(14, 4, -1)]


def test_a_table_shows_the_top_of_a_field():
    latest = Latest(find_watched(GRAPH, "counts:count"))
    for number in range(15):
        latest.add(shown(f"w{number}", number))
    latest.add(shown("w0", 100))
    latest.add(shown("w14", None))
    assert words(latest) == ["w0", *(f"w{number}" for number in range(13, 4, -1))]


def test_a_table_without_a_field_shows_what_changed_last():
    latest = Latest(find_watched(GRAPH, "counts"))
    for word in ("a", "b", "c", "a"):
        latest.add(shown(word, 1))
    assert words(latest) == ["a", "c", "b"]


def test_what_does_not_decode_is_not_shown():
    latest = Latest(find_watched(GRAPH, "changes"))
    latest.add(shown("a", 1, problem="no"))
    assert latest.rows() == []


def test_the_keys_held_of_a_table_are_limited(monkeypatch):
    monkeypatch.setattr("penstock.cli.supervision.watch._KEYS_LIMIT", 2)
    latest = Latest(find_watched(GRAPH, "counts:count"))
    for word in ("a", "b", "c", "a"):
        latest.add(shown(word, 1))
    assert sorted(words(latest)) == ["a", "b"]
    assert latest.full


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("count", "did you mean 'counts'"),
        ("kept", "is in the lake"),
        ("changes:count", "is a stream: its records are shown as they come"),
        ("counts:cnt", "did you mean 'count'"),
    ],
)
def test_what_cannot_be_watched_is_refused(text, why):
    with pytest.raises(ConfigurationError, match=why):
        find_watched(GRAPH, text)
