"""The marks of values on which the two gates may differ."""

import pyarrow as pa

from penstock.pipelines.gate.suspects import marked

USUAL = [
    b'{"at":"2024-05-06T07:08:09.123Z","text":"\xc3\xa9 \\n","list":[[1],[2]]}',
    b'{"at":"2024-05-06T07:08:09+02:00"}',
    b'{"at":"2024-05-06T07:08:09-17:59"}',
    None,
    b"",
]


def marks(*values: bytes | None) -> list[bool]:
    return marked(pa.array(values, pa.binary())).to_pylist()


def test_usual_values_have_no_mark():
    assert marks(*USUAL) == [False] * len(USUAL)


def test_long_values_and_deep_ones_are_marked_each_by_itself():
    odd = [
        b'{"n":' + b"1" * 1001 + b"}",
        b'{"x":' + b"[" * 101 + b"]" * 101 + b"}",
    ]
    for each in odd:
        assert marks(USUAL[0], each, USUAL[1]) == [False, True, False]


def test_a_batch_with_bytes_that_are_no_text_is_doubted_as_a_whole():
    assert marks(USUAL[0], b'{"x":"\xff"}') == [True, True]


def test_a_part_of_an_array_is_looked_at_alone():
    whole = pa.array([b"[" * 200, *USUAL[:2], b"[" * 200], pa.binary())
    assert marked(whole.slice(1, 2)).to_pylist() == [False, False]
