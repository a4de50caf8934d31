import os
import threading

import pytest

from penstock.connectors import keyboard
from penstock.connectors.keyboard import read_lines


@pytest.fixture
def pipe():
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reader, os.fdopen(write_end, "wb", buffering=0) as writer:
        yield reader, writer


def test_lines_are_read_until_the_input_ends(pipe, feed):
    reader, writer = pipe
    writer.write(b"to be\nor not")
    writer.close()
    read_lines(reader.fileno(), feed)
    assert feed.contents == [b"to be", b"or not"]
    assert all(line.complete for line in feed.lines)


def test_a_regular_file_as_input_is_read_to_its_end(tmp_path, feed):
    path = tmp_path / "typed.txt"
    path.write_bytes(b"a\nb\n")
    with path.open("rb") as file:
        read_lines(file.fileno(), feed)
    assert feed.contents == [b"a", b"b"]


def test_lines_are_settled_while_the_person_thinks_and_stop_ends_the_reading(pipe, feed):
    reader, writer = pipe
    writer.write(b"hello\n")
    thread = threading.Thread(target=read_lines, args=(reader.fileno(), feed))
    settled = threading.Event()
    feed.settle = settled.set
    thread.start()
    assert settled.wait(60)
    feed.stop.set()
    thread.join(5)
    assert not thread.is_alive()
    assert feed.contents == [b"hello"]


def test_the_keyboard_needs_a_person():
    assert keyboard().interactive
    assert keyboard().describe() == "lines typed at the keyboard"
