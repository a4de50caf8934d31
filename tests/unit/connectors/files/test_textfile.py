import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors import text_file
from penstock.connectors.connector import WHOLE, Position
from penstock.connectors.files.textfile import FileReading, TextFile
from penstock.errors import ConfigurationError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines.txt"


def drained(reading: FileReading, *, reads: int = 100) -> list[bytes]:
    return [line.content for _ in range(reads) for line in reading.read()]


def read_all(spec: TextFile, position: Position | None = None) -> tuple[list[bytes], Position]:
    reading = spec.open(WHOLE, position)
    try:
        return drained(reading), reading.position
    finally:
        reading.close()


def refusal(spec: TextFile, position: Position) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        read_all(spec, position)
    return caught.value


def test_a_file_gives_its_lines_and_ends(path):
    path.write_bytes(b"one\ntwo\n")
    reading = text_file(path).open(WHOLE, None)
    assert drained(reading) == [b"one", b"two"]
    assert reading.ended
    reading.close()


def test_a_last_line_without_a_line_end_is_a_line(path):
    path.write_bytes(b"one\ntwo")
    assert read_all(text_file(path))[0] == [b"one", b"two"]


def test_an_empty_file_ends_at_once_even_if_it_is_to_be_repeated(path):
    path.touch()
    for repeat in (False, True):
        reading = text_file(path, repeat=repeat).open(WHOLE, None)
        assert reading.read() == []
        assert reading.ended
        reading.close()


def test_reading_goes_on_where_it_was_left(path):
    path.write_bytes(b"one\ntwo\n")
    _, position = read_all(text_file(path))
    with path.open("ab") as file:
        file.write(b"three\n")
    assert read_all(text_file(path), position)[0] == [b"three"]


@given(st.binary(max_size=200), st.data())
def test_stopping_after_any_line_and_going_on_gives_every_line_once(
    tmp_path_factory, content, data
):
    path = tmp_path_factory.mktemp("file") / "lines.txt"
    path.write_bytes(content)
    spec = TextFile(path=path, max_line=10)
    lines, end = read_all(spec)
    reading = spec.open(WHOLE, None)
    every = [line for _ in range(100) for line in reading.read()]
    stops = [0, *(line.end for line in every)]
    stop = data.draw(st.integers(0, len(stops) - 1))
    reading._at = stops[stop]
    left = reading.position if stop else None
    reading.close()
    rest, end_again = read_all(spec, left)
    assert lines[:stop] + rest == lines
    assert end_again == end


def test_a_followed_file_waits_for_the_line_end(path):
    path.write_bytes(b"one\ntw")
    reading = text_file(path, follow=True).open(WHOLE, None)
    assert drained(reading) == [b"one"]
    assert not reading.ended
    with path.open("ab") as file:
        file.write(b"o\n")
    assert drained(reading) == [b"two"]
    reading.close()


def test_a_repeated_file_begins_again_and_remembers_the_round(path):
    path.write_bytes(b"one\ntwo")
    spec = text_file(path, repeat=True)
    reading = spec.open(WHOLE, None)
    assert drained(reading, reads=4) == [b"one", b"two"] * 2
    position = reading.position
    reading.close()
    assert position["at"] == 14
    again = spec.open(WHOLE, position)
    assert [line.at for _ in range(3) for line in again.read()] == [14, 18]
    again.close()


def test_a_line_that_is_too_long_is_cut_and_the_next_one_is_whole(path):
    path.write_bytes(b"x" * 5_000_000 + b"\nnext\n")
    reading = text_file(path, max_line="1KiB").open(WHOLE, None)
    long, following = [line for _ in range(10) for line in reading.read()]
    assert (len(long.content), long.length) == (1024, 5_000_000)
    assert following.content == b"next"
    reading.close()


def test_the_rate_bounds_how_many_lines_are_given(path):
    path.write_bytes(b"line\n" * 100)
    now = [0.0]
    reading = text_file(path, rate=10).open(WHOLE, None, clock=lambda: now[0])
    assert len(reading.read()) == 1
    assert reading.read() == []
    assert not reading.ended
    now[0] += 0.5
    assert len(reading.read()) == 5
    reading.close()


def test_one_read_gives_a_bounded_number_of_lines(path):
    path.write_bytes(b"\n" * 20_000)
    reading = text_file(path).open(WHOLE, None)
    assert len(reading.read()) == 5_000
    reading.close()


def test_a_file_that_was_cut_is_refused(path):
    path.write_bytes(b"one\ntwo\n")
    _, position = read_all(text_file(path))
    path.write_bytes(b"one\n")
    error = refusal(text_file(path), position)
    assert error.code == "source.file-changed"
    assert "it has 4 bytes, 8 were read" in error.message


def test_a_file_that_was_replaced_is_refused(path):
    path.write_bytes(b"one\ntwo\n")
    _, position = read_all(text_file(path))
    path.write_bytes(b"uno\ndos\ntres\n")
    assert "first 8 bytes changed" in refusal(text_file(path), position).message


def test_a_copy_of_the_file_is_the_same_file(path):
    path.write_bytes(b"one\ntwo\n")
    _, position = read_all(text_file(path))
    copied = path.rename(path.with_name("old.txt")).read_bytes()
    path.write_bytes(copied + b"three\n")
    assert read_all(text_file(path), position)[0] == [b"three"]


def test_a_repeated_file_that_has_grown_is_refused(path):
    path.write_bytes(b"one\n")
    spec = text_file(path, repeat=True)
    reading = spec.open(WHOLE, None)
    reading.read()
    position = reading.position
    path.write_bytes(b"one\ntwo\n")
    with pytest.raises(ConfigurationError, match="it has 8 bytes, it had 4"):
        drained(reading)
    reading.close()
    assert refusal(spec, position).code == "source.file-changed"


def test_a_followed_file_that_is_replaced_is_read_to_its_end_and_then_refused(path):
    path.write_bytes(b"one\n")
    reading = text_file(path, follow=True).open(WHOLE, None)
    path.rename(path.with_name("old.txt"))
    path.write_bytes(b"two\n")
    assert [line.content for line in reading.read()] == [b"one"]
    with pytest.raises(ConfigurationError, match="another file has its name"):
        reading.read()
    reading.close()


def test_a_followed_file_that_is_cut_is_refused(path):
    path.write_bytes(b"one\ntwo\n")
    reading = text_file(path, follow=True).open(WHOLE, None)
    assert drained(reading, reads=1) == [b"one", b"two"]
    os.truncate(path, 2)
    with pytest.raises(ConfigurationError, match="it has 2 bytes, 8 were read"):
        reading.read()
    reading.close()


@pytest.mark.parametrize("follow", [True, False])
def test_a_file_that_is_rewritten_in_place_and_longer_is_refused(path, follow):
    path.write_bytes(b"old one\nold two\n")
    reading = text_file(path, follow=follow).open(WHOLE, None)
    assert drained(reading, reads=1) == [b"old one", b"old two"]
    path.write_bytes(b"a new line that is longer\n" * 9)
    with pytest.raises(ConfigurationError, match="rewritten while it was being read"):
        reading.read()
    reading.close()


def test_lines_that_were_read_before_a_file_was_rewritten_get_no_position(path):
    path.write_bytes(b"old one\nold two\n")
    reading = text_file(path, follow=True).open(WHOLE, None)
    lines = reading.read()
    assert reading.position_after(lines[0])["at"] == 8
    path.write_bytes(b"a new line that is longer\n" * 9)
    with pytest.raises(ConfigurationError, match="rewritten while it was being read"):
        reading.position_after(lines[0])
    reading.close()


@pytest.mark.parametrize("size", [100, 5_000, 3_000_000])
def test_a_file_that_grows_is_read_on_whatever_its_size(path, size):
    path.write_bytes(b"x" * size + b"\n")
    reading = text_file(path, follow=True, max_line="4MB").open(WHOLE, None)
    assert [len(line) for line in drained(reading, reads=3)] == [size]
    with path.open("ab") as file:
        file.write(b"more\n")
    assert drained(reading, reads=3) == [b"more"]
    reading.close()


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe"])
def test_what_is_not_a_file_is_an_error_that_names_it(path, kind):
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(ConfigurationError, match=r"lines\.txt") as caught:
        text_file(path).open(WHOLE, None)
    assert caught.value.hint


@pytest.mark.parametrize(
    "options",
    [
        {"follow": True, "repeat": True},
        {"rate": 0},
        {"rate": float("nan")},
        {"max_line": "many"},
        {"max_line": 0},
        {"follow": "yes"},
        {"path": 5},
    ],
)
def test_a_wrong_option_is_a_problem_with_its_place(options):
    (problem,) = text_file(**{"path": "lines.txt", **options}).problems
    assert problem.code == "source.option"
    assert problem.place is not None
    assert problem.place.file == __file__


def test_equal_declarations_are_equal_and_described_for_people():
    spec = text_file("lines.txt", repeat=True, rate=50)
    assert spec == text_file(Path("lines.txt"), repeat=True, rate=50)
    assert spec.describe() == "lines of lines.txt, again and again, 50 a second"
    assert not spec.interactive


def test_all_wrong_options_are_told_at_once():
    problems = text_file("lines.txt", follow=True, repeat=True, rate=-1, max_line="1").problems
    assert [problem.message for problem in problems] == [
        "text_file: follow: a file is either followed or repeated",
        "text_file: rate: -1 is not a number above 0",
        "text_file: max_line: '1' is not a size; write 512B, 64KiB, 16MiB or 1GB",
    ]


@pytest.mark.parametrize("position", [7, {"at": 7}, {"at": "7", "fingerprint": ""}, []])
def test_a_position_that_another_connector_wrote_is_refused(path, position):
    path.write_bytes(b"one\n")
    assert refusal(text_file(path), position).code == "source.position"
