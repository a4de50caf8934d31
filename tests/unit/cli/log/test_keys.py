"""A key that is no text is typed as the bytes that it has."""

from types import SimpleNamespace

import pytest

from penstock.cli.log.produce import _lines
from penstock.cli.log.tail import _wanted


@pytest.mark.parametrize(
    ("typed", "key"), [("a", b"a"), ("\u00e9", b"\xc3\xa9"), ("\udcff", b"\xff")]
)
def test_tail_finds_the_key_that_was_typed(typed, key):
    arguments = SimpleNamespace(key=typed, grep=None)
    record = SimpleNamespace(key=key)
    assert _wanted(arguments, [], SimpleNamespace(record=record, value=None))
    record.key = b"other"
    assert not _wanted(arguments, [], SimpleNamespace(record=record, value=None))


def test_produce_sends_the_bytes_that_were_typed():
    assert list(_lines(['"\udcff"'])) == [(1, b'"\xff"')]
