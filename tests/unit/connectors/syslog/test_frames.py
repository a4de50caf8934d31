"""Messages are cut out of a connection's bytes, however these come."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.syslog.frames import FrameCutter, Reader

READER = Reader(largest=20, zone=UTC, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
SENT = [
    (b"5 <1>ab", "ab"),
    (b"<1>line\r\n", "line"),
    (b"6 <1>ab\n", "ab"),
    (b"7 <1>a\nb\n", "a\nb"),
    (b"<1>nul\0\n", "nul"),
    (b"\n", None),
    (b"30 <1>" + b"x" * 27, "too long"),
    (b"<1>" + b"y" * 40 + b"\n", "too long"),
    (b"0 words\n", "no message"),
    (b"1234567890 words\n", "no message"),
    (b"4 <1>x", "x"),
]


def told(message) -> str:
    if fault := message.fault():
        return "too long" if "are allowed" in fault.message else "no message"
    assert message.content["sender"] == "::1"
    return message.content["text"]


@given(st.lists(st.sampled_from(SENT), max_size=12), st.lists(st.integers(0, 30), max_size=12))
def test_messages_are_the_same_however_their_bytes_are_divided(sent, cuts):
    data = b"".join(each for each, _ in sent)
    cutter = FrameCutter(READER, sender="::1")
    found = []
    at = 0
    for size in [*cuts, len(data)]:
        found += cutter.feed(data[at : at + size])
        assert len(cutter._held) <= READER.largest
        at += size
    assert [told(each) for each in found] == [text for _, text in sent if text is not None]
    assert [each.at for each in found] == list(range(len(found)))
    assert (cutter.pending, cutter.finish()) == (0, None)


def test_a_message_that_breaks_off_is_kept_as_such():
    for data in (b"9 <1>ab", b"9 ", b"12", b"<1>ab"):
        cutter = FrameCutter(READER, sender="::1")
        assert cutter.feed(data) == []
        assert cutter.pending
        assert "before its end" in cutter.finish().fault().message
        assert cutter.pending == 0


def test_a_count_that_is_a_lie_takes_no_memory():
    cutter = FrameCutter(READER, sender="::1")
    cutter.feed(b"999999999 ")
    for _ in range(50):
        assert cutter.feed(b"z" * 65_536) == []
    assert len(cutter._held) == READER.largest
