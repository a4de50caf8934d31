import os
from pathlib import Path

import pytest

from penstock import App, record
from penstock.connectors import Row, json_files
from penstock.connectors.files.layouts import JSON_LINES
from penstock.connectors.files.written import DirectoryWriter
from penstock.core.records.record import record_type
from penstock.errors import ConfigurationError, TransientError


@record()
class Number:
    value: int


def opened_writer(directory: Path, topic: str) -> DirectoryWriter:
    return DirectoryWriter(directory, topic, layout=JSON_LINES, schema=record_type(Number).schema)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def writer(directory):
    opened = opened_writer(directory, "numbers")
    yield opened
    opened.close()


def rows(*offsets: int) -> list[Row]:
    return [Row(None, b'{"value":%d}' % offset, offset) for offset in offsets]


def seen(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("[!.]*"))}


def test_a_file_has_the_lines_and_its_name_the_position(writer, directory):
    writer.write(1, rows(3, 5), 9)
    name = f"numbers-1-{3:020d}-{9:020d}.jsonl"
    assert seen(directory) == {name: b'{"value":3}\n{"value":5}\n'}
    assert writer.positions() == {1: 9}


def test_the_position_of_a_partition_is_behind_its_last_file_whatever_else_is_there(
    writer, directory
):
    for partition, first in ((0, 0), (0, 10), (1, 5)):
        writer.write(partition, rows(first), first + 1)
    other = opened_writer(directory, "numbers-1")
    other.write(0, rows(90), 99)
    other.close()
    (directory / "numbers-0-notes.jsonl").write_text("")
    assert writer.positions() == {0: 11, 1: 6}


def test_a_record_that_was_written_over_several_lines_is_one_line(writer, directory):
    writer.write(0, [Row(None, b'{\r\n "value": 1\n}', 0)], 1)
    assert list(seen(directory).values()) == [b'{   "value": 1 }\n']


def test_a_second_run_waits_until_the_first_has_ended(writer, directory):
    with pytest.raises(TransientError, match="another run writes numbers") as caught:
        opened_writer(directory, "numbers")
    assert caught.value.code == "sink.taken"
    writer.close()
    opened_writer(directory, "numbers").close()


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_where_the_disk_fails_no_part_of_a_file_is_seen_and_it_can_be_tried_again(
    writer, directory, monkeypatch, step
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(*((os, "fsync") if step == "fsync" else (Path, "rename")), full)
        with pytest.raises(TransientError, match="No space left on device") as caught:
            writer.write(0, rows(0), 1)
    assert caught.value.code == "sink.unwritable"
    assert seen(directory) == {}
    assert writer.positions() == {}
    writer.write(0, rows(0), 1)
    assert len(seen(directory)) == 1


def test_a_directory_that_cannot_be_made_is_an_error_that_names_it(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="file/out cannot be written"):
        opened_writer(tmp_path / "file" / "out", "numbers")


def test_all_wrong_options_are_told_at_once():
    problems = json_files(5, every="0s", size="1").problems
    assert [problem.message for problem in problems] == [
        "json_files: directory: 5 is no path",
        "json_files: size: '1' is not a size; write 512B, 64KiB, 16MiB or 1GB",
        "json_files: every: '0s' is not longer than 0s",
    ]
    assert {problem.place.file for problem in problems} == {__file__}


def test_it_is_described_for_people(directory):
    app = App("shop")
    sink = app.sink("out", json_files(directory), reads=app.stream("numbers", Number))
    assert sink.connector.describe() == "JSON lines in out"
    assert sink.delivery == "exactly_once"
