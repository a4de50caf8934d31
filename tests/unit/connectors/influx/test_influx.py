"""Points over HTTP against a real server that keeps them, refuses some, is cut off or away."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.lineprotocol import read
from tests.scriptedhttp import serving

from penstock import App, record
from penstock.connectors import Row, influx_lines
from penstock.connectors.connector import RowsRefusedError
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError, TransientError
from penstock.testing import try_sink

AT = datetime(2026, 11, 20, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float


@record(key="device")
class Timeless:
    device: str


@record(key="device", time="at")
class Bare:
    device: str
    at: datetime


class Store:
    """Keeps each point once, as InfluxDB does, and takes a request as a whole or not at all."""

    def __init__(self) -> None:
        self.points: dict[tuple[str, int], dict[str, object]] = {}
        self.requests = 0
        self.cut_each = 0

    def __call__(self, _method, _headers, body):
        self.requests += 1
        found = [read(line.decode()) for line in body.splitlines(keepends=True)]
        if any(fields["celsius"] < 0 for _, _, fields, _ in found):
            return 400, {}, b"field type conflict"
        for name, tags, fields, at in found:
            self.points.setdefault((f"{name} {sorted(tags.items())}", at), {}).update(fields)
        cut = self.cut_each and self.requests % self.cut_each == 0
        return (None if cut else 204), {}, b""

    def readings(self) -> list[Reading]:
        first = AT.timestamp()
        return [
            Reading(
                f"d{round(at / 1e9 - first)}", AT + timedelta(seconds=round(at / 1e9 - first)), f
            )
            for (_, at), fields in self.points.items()
            if isinstance(f := fields["celsius"], float)
        ]


def reading(n: int, celsius: float | None = None) -> Reading:
    return Reading(f"d{n}", AT + timedelta(seconds=n), float(n) if celsius is None else celsius)


def rows(*records: Reading) -> list[Row]:
    return [Row(each, b"{}", n) for n, each in enumerate(records)]


def opened(connector, kind=Reading):
    app = App("shop")
    return connector.open(app.sink("s", connector, reads=app.stream("readings", kind)))


def test_points_that_are_written_again_change_nothing_however_answers_are_lost():
    store = Store()
    store.cut_each = 3
    some = [reading(n) for n in range(100)]
    with serving(store, "/api/v2/write?org=o&bucket=b") as url:
        made = influx_lines(url, measurement="readings")
        try_sink(made, some, outside=store.readings, clear=store.points.clear, runs=2)
        assert len(store.points) == len(some)
        assert store.requests > 0


def test_rows_that_are_refused_are_found_and_the_others_are_written():
    store = Store()
    given = [reading(0), reading(1, -1.0), reading(2), reading(3), reading(4, -4.0)]
    with serving(store) as url:
        writer = opened(influx_lines(url, measurement="readings"))
        with pytest.raises(RowsRefusedError) as refused:
            writer.write(0, rows(*given), 5)
        words = "HTTP 400: field type conflict"
        assert refused.value.refusals == {1: words, 4: words}
        asked = store.requests
        left = [row for n, row in enumerate(rows(*given)) if n not in (1, 4)]
        writer.write(0, left, 5)
        writer.close()
    assert store.requests == asked  # they were written while the others were found
    assert sorted(each.celsius for each in store.readings()) == [0.0, 2.0, 3.0]


def test_what_the_protocol_cannot_say_is_told_before_anything_is_sent():
    store = Store()
    hostile = Reading("a\nreadings celsius=9 9", AT, 1.0)
    given = rows(reading(0), reading(1, float("nan")), hostile)
    given.append(Row(reading(3), b"{}", 3, "withdraw"))
    with serving(store) as url:
        writer = opened(influx_lines(url, measurement="readings"))
        with pytest.raises(RowsRefusedError) as refused:
            writer.write(0, given, 4)
        assert store.requests == 0
        assert sorted(refused.value.refusals) == [1, 2, 3]
        assert "celsius is nan" in refused.value.refusals[1]
        assert "taken back" in refused.value.refusals[3]
        writer.write(0, given[:1], 4)
        writer.close()
    assert store.readings() == [reading(0)]


@pytest.mark.parametrize("status", [408, 429, 500, 503, None])
def test_a_store_that_is_away_or_says_later_is_waited_for(status):
    with serving(lambda *_: (status, {}, b"later")) as url:
        writer = opened(influx_lines(url, measurement="readings"))
        with pytest.raises(TransientError) as later:
            writer.write(0, rows(reading(1)), 2)
        writer.close()
    assert later.value.code == "connector.away"


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"database is full"), (201, b""), (302, b""), (401, b""), (404, b"")]
)
def test_an_answer_that_does_not_say_written_ends_the_sink_with_it(status, body):
    with serving(lambda *_: (status, {}, body)) as url:
        made = influx_lines(url, measurement="readings")
        writer = opened(made)
        with pytest.raises(ConfigurationError, match=f"HTTP {status}"):
            writer.write(0, rows(reading(1)), 2)
        writer.close()


def test_a_trial_of_the_connection_writes_nothing():
    store = Store()
    app = App("a")
    with serving(store) as url:
        made = influx_lines(url, measurement="readings")
        sink = app.sink("s", made, reads=app.stream("x", Reading))
        assert made.attempt(sink) == "it takes points"
    assert store.points == {}
    with (
        serving(lambda *_: (401, {}, b"who are you")) as url,
        pytest.raises(ConfigurationError, match="HTTP 401: who are you"),
    ):
        influx_lines(url, measurement="readings").attempt(sink)


@pytest.mark.parametrize(
    ("kind", "tags", "code"),
    [
        (Timeless, None, "sink.no-time"),
        (Bare, None, "sink.no-field"),
        (Reading, ("room",), "sink.no-tag"),
        (Reading, ("device", "celsius"), "sink.no-field"),
    ],
)
def test_a_record_that_makes_no_point_is_told_when_the_sink_opens(kind, tags, code):
    made = influx_lines("http://127.0.0.1:1/write", measurement="m", tags=tags)
    with pytest.raises(ConfigurationError) as raised:
        opened(made, kind)
    assert raised.value.code == code


def test_a_url_by_reference_is_read_when_the_sink_opens(monkeypatch):
    monkeypatch.setenv("TEST_METRICS", "http://127.0.0.1:1/write?precision=s")
    made = influx_lines("env:TEST_METRICS", measurement="m")
    with pytest.raises(ConfigurationError, match="precision"):
        opened(made)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "http://x/write?precision=ms"},
        {"url": "ftp://x"},
        {"url": "http://u:sesame@x/"},
        {"url": "http://[x"},
        {"measurement": "#readings"},
        {"measurement": "a\nb"},
        {"measurement": 3},
        {"tags": "device"},
        {"tags": ("device", "device")},
        {"headers": {"Authorization": "Token sesame"}},
        {"rows": 0},
    ],
)
def test_each_wrong_option_is_a_problem_and_no_secret_is_shown(options):
    app = App("shop")
    made = influx_lines(**{"url": "http://x/write", "measurement": "m", **options})
    app.sink("s", made, reads=app.stream("readings", Reading))
    found = check(app.graph)
    assert [problem.code for problem in found] == ["source.option"]
    assert "sesame" not in str(found)
