from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

import pytest

from penstock.backbone.topics.range import EARLIEST, LATEST, Instant, Last, Offset
from penstock.cli.moments import read_end, read_start

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("42", Offset(42)),
        ("-10", Last(10)),
        ("5m", Instant(NOW - timedelta(minutes=5))),
        ("1h30m", Instant(NOW - timedelta(minutes=90))),
        ("2026-02-28T10:00:00Z", Instant(datetime(2026, 2, 28, 10, tzinfo=UTC))),
        ("2026-02-28T10:00:00+02:00", Instant(datetime(2026, 2, 28, 8, tzinfo=UTC))),
    ],
)
def test_a_start_is_read_as_people_write_it(text, start):
    assert read_start(text, clock=lambda: NOW) == start


def test_an_instant_without_a_zone_is_local_time():
    start = read_start("2026-02-28T10:00:00")
    assert isinstance(start, Instant)
    assert start.at == datetime(2026, 2, 28, 10).astimezone()


@pytest.mark.parametrize("text", ["yesterday", "", "-x", "5 parsecs", "2026-13-01", "0001-01-01"])
def test_anything_else_is_refused_with_the_choices(text):
    with pytest.raises(ArgumentTypeError, match="none of: earliest, latest, an offset"):
        read_start(text)


@pytest.mark.parametrize("text", ["earliest", "-10"])
def test_an_end_is_neither_the_earliest_nor_a_count(text):
    with pytest.raises(ArgumentTypeError, match="none of: latest"):
        read_end(text)
