"""Headers between operators: what is read of them, whoever wrote it."""

import pytest

from penstock.core.operators.marks import deleted_at, mark_headers, read_mark, time_header


@pytest.mark.parametrize("time", [0, 1_700_000_000_000_000, -62_135_596_800_000_000])
def test_what_was_written_is_read(time):
    assert deleted_at(time_header(time)) == time
    assert read_mark(mark_headers("3", time)) == ("3", time)


@pytest.mark.parametrize(
    "text", [None, b"", b"-", b"--5", b"5-", b" 5", b"soon", b"\xb2", b"9" * 5000, b"9" * 19]
)
def test_a_time_that_is_none_is_not_read(text):
    name = time_header(0)[0][0]
    assert deleted_at([(name, text)]) is None
    assert read_mark([("penstock.source", b"3"), (name, text)]) is None


def test_a_deletion_without_the_header_does_not_say_its_time():
    assert deleted_at(None) is None
    assert deleted_at([("who", b"ann")]) is None
