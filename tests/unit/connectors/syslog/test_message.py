"""What messages of syslog say, in both formats, and what is refused."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.syslog.message import read_message
from penstock.errors import DataError

NOW = datetime(2026, 11, 19, 23, 0, tzinfo=UTC)


def read(data, **given):
    return read_message(data, **{"received_at": NOW, **given})


def test_a_message_of_rfc_5424_gives_all_it_says():
    found = read(
        b'<165>1 2003-10-11T22:14:15.003000+02:00 host.example app 12 ID47 [one@32473 a="1" b="x\\"\\]\\\\"]'
        b'[two c="\xc3\xb6" c="2"] \xef\xbb\xbfAn event\n with \xc3\xb6'
    )
    assert found == {
        "facility": 20,
        "severity": "notice",
        "level": 5,
        "at": datetime(2003, 10, 11, 20, 14, 15, 3000, tzinfo=UTC),
        "host": "host.example",
        "app": "app",
        "process": "12",
        "kind": "ID47",
        "data": {"one@32473": {"a": "1", "b": 'x"]\\'}, "two": {"c": "ö, 2"}},
        "text": "An event\n with ö",
    }
    nothing = read(b"<0>1 - - - - - -")
    assert {nothing[name] for name in ("at", "host", "app", "process", "kind")} == {None}
    assert (nothing["data"], nothing["text"], nothing["severity"]) == ({}, "", "emergency")


@pytest.mark.parametrize(
    ("data", "host", "app", "process", "text"),
    [
        (b"<34>Oct 11 22:14:15 mymachine su: 'su root'", "mymachine", "su", None, "'su root'"),
        (b"<13>Feb  5 17:32:18 10.0.0.99 sshd[7]: x: y", "10.0.0.99", "sshd", "7", "x: y"),
        (b"<13>Feb  5 17:32:18 fe80::1 kernel: up", "fe80::1", "kernel", None, "up"),
        (b"<13>Feb 05 17:32:18 cron[1]: no host", None, "cron", "1", "no host"),
        (b"<13>2026-11-19T22:00:00.5+01:00 h app: new time", "h", "app", None, "new time"),
        (b"<13>Feb  5 17:32:18 h just words", "h", None, None, "just words"),
        (b"<13>Use the BFG: now", None, None, None, "Use the BFG: now"),
        (b"<13>", None, None, None, ""),
    ],
)
def test_a_message_of_rfc_3164_gives_what_it_has(data, host, app, process, text):
    found = read(data)
    assert (found["host"], found["app"], found["process"], found["text"]) == (
        host,
        app,
        process,
        text,
    )


@pytest.mark.parametrize(
    ("time", "received", "expected"),
    [
        (b"Dec 31 23:59:59", datetime(2026, 1, 1, tzinfo=UTC), (2025, 12, 31)),
        (b"Jan  1 00:00:01", datetime(2025, 12, 31, 23, tzinfo=UTC), (2026, 1, 1)),
        (b"Feb 29 12:00:00", datetime(2024, 3, 1, tzinfo=UTC), (2024, 2, 29)),
    ],
)
def test_a_time_without_a_year_is_the_nearest_one(time, received, expected):
    at = read(b"<1>" + time + b" h a: b", received_at=received)["at"]
    assert (at.year, at.month, at.day) == expected
    east = timezone(timedelta(hours=5))
    assert read(b"<1>Nov 19 12:00:00 h a: b", zone=east)["at"] == NOW.replace(hour=7)


def test_a_time_that_no_calendar_has_is_a_part_of_the_text():
    found = read(b"<1>Feb 31 12:00:00 h a: b")
    assert (found["at"], found["text"]) == (None, "Feb 31 12:00:00 h a: b")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"words",
        b"<192>x",
        b"<01>x",
        b"<1x",
        b"<1>1 2003",
        b"<1>1 2003-13-11T22:14:15Z h a p m -",
        b"<1>1 2003-10-11T22:14:15 h a p m -",
        b"<1>1 - h a p m [x",
        b'<1>1 - h a p m [x a="1]',
        b"<1>1 - h a p m words",
        b"<1>1 - h a p m -words",
    ],
)
def test_what_is_no_message_is_refused_and_not_guessed_at(data):
    with pytest.raises(DataError, match="no message of syslog"):
        read(data)


def test_bytes_that_are_no_text_can_be_seen():
    assert read(b"<1>\xff\xfe\0")["text"] == "\\xff\\xfe\0"


@given(st.binary(max_size=200))
def test_whatever_comes_is_read_or_refused(data):
    codes = set()
    for start in (b"<1>", b"<1>1 ", b"<1>1 - - - - - [a ", b"<1>Nov 19 12:00:00 ", b""):
        try:
            read(start + data)
        except DataError as error:
            codes.add(error.code)
    assert codes <= {"data.not-syslog"}
