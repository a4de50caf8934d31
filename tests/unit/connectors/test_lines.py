from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.lines import Line, LineCutter

PIECES = st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\r", b"\n")), max_size=12)


def cut(pieces: list[bytes], *, max_line: int = 100) -> list[Line]:
    cutter = LineCutter(max_line=max_line)
    lines = [line for piece in pieces for line in cutter.feed(piece)]
    return lines + ([last] if (last := cutter.finish()) else [])


@given(PIECES)
def test_lines_do_not_depend_on_how_the_bytes_were_split(pieces):
    assert cut(pieces, max_line=7) == cut([b"".join(pieces)], max_line=7)


@given(PIECES)
def test_the_contents_of_all_lines_are_the_bytes_without_line_ends(pieces):
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert [line.content for line in cut(pieces, max_line=1000)] == expected


@given(PIECES)
def test_each_line_begins_where_the_one_before_ended(pieces):
    lines = cut(pieces, max_line=5)
    assert [line.at for line in lines] == [0, *(line.end for line in lines)][: len(lines)]
    assert not lines or lines[-1].end == len(b"".join(pieces))


def test_a_carriage_return_before_the_line_end_is_part_of_the_line_end():
    (line,) = cut([b"to be\r", b"\n"])
    assert (line.content, line.length, line.end) == (b"to be", 5, 7)


def test_a_line_of_exactly_the_allowed_length_is_whole_with_either_line_end():
    assert [line.too_long for line in cut([b"12345\n", b"12345\r\n"], max_line=5)] == [False, False]


def test_of_a_line_that_is_too_long_the_first_bytes_are_kept_and_the_rest_counted():
    long, next_line = cut([b"123", b"4567", b"89\nok\n"], max_line=5)
    assert (long.content, long.length, long.too_long) == (b"12345", 9, True)
    assert (next_line.content, next_line.at) == (b"ok", 10)


def test_an_endless_line_holds_no_more_memory_than_one_line_may_have():
    cutter = LineCutter(max_line=10)
    for _ in range(1000):
        assert cutter.feed(b"x" * 1000) == []
    assert cutter.pending == 1_000_000
    assert len(cutter._held) == 11


def test_what_has_no_line_end_is_given_at_the_end_and_says_so():
    cutter = LineCutter(max_line=100, at=40)
    assert cutter.feed(b"half") == []
    assert cutter.finish() == Line(b"half", 40, 44, 4, complete=False)
    assert cutter.finish() is None
