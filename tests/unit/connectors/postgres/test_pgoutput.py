"""Messages of logical replication, as a server sends them and as a broken one might."""

from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Changed,
    Column,
    Commit,
    Relation,
    Truncated,
    read_message,
)
from penstock.errors import TransientError


def row(*values: bytes | object | None) -> bytes:
    found = pack("!H", len(values))
    for value in values:
        if isinstance(value, bytes):
            found += b"t" + pack("!I", len(value)) + value
        else:
            found += b"n" if value is None else b"u"
    return found


NUMBER = pack("!I", 7)
MESSAGES = {
    b"B" + pack("!QqI", 99, 5, 3): Begin(99, 5, 3),
    b"C" + pack("!BQQq", 0, 99, 120, 5): Commit(99, 120),
    b"R" + NUMBER + b"public\0t\0d" + pack("!H", 2) + b"\1id\0" + pack("!Ii", 23, -1)
    + b"\0b\0" + pack("!Ii", 25, -1): Relation(
        7, "public", "t", (Column("id", 23, is_key=True), Column("b", 25, is_key=False))
    ),
    b"I" + NUMBER + b"N" + row(b"1", None): Changed(7, [b"1", None], None),
    b"U" + NUMBER + b"N" + row(b"1", UNCHANGED): Changed(
        7, [b"1", UNCHANGED], None, updated=True
    ),
    b"U" + NUMBER + b"K" + row(b"0", None) + b"N" + row(b"1", b""): Changed(
        7, [b"1", b""], [b"0", None], updated=True
    ),
    b"U" + NUMBER + b"O" + row(b"0", b"x") + b"N" + row(b"1", b"y"): Changed(
        7, [b"1", b"y"], [b"0", b"x"], whole=True, updated=True
    ),
    b"D" + NUMBER + b"K" + row(b"1", None): Changed(7, None, [b"1", None]),
    b"D" + NUMBER + b"O" + row(b"1", b"y"): Changed(7, None, [b"1", b"y"], whole=True),
    b"T" + pack("!IBII", 2, 0, 7, 8): Truncated((7, 8)),
    b"Y" + NUMBER: None,
}  # fmt: skip


@pytest.mark.parametrize("data", MESSAGES, ids=lambda data: data[:1].decode())
def test_each_message_says_what_it_means(data):
    assert read_message(data) == MESSAGES[data]


@given(st.sampled_from(sorted(MESSAGES)), st.data())
def test_a_message_that_is_cut_off_or_spoilt_is_refused_and_never_anything_else(message, data):
    at = data.draw(st.integers(0, len(message) - 1))
    spoilt = data.draw(st.sampled_from([message[:at], message[:at] + b"\xff" + message[at + 1 :]]))
    with suppress(TransientError):
        read_message(spoilt)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(data):
    with suppress(TransientError):
        read_message(data)
