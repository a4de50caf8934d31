"""A log across rotations: each line once, however it is rotated and whenever the reader dies."""

import gzip
import json
import os
import random
import shutil
from pathlib import Path

import pytest

from penstock import App, record
from penstock.connectors import rotated_log
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError


class Writer:
    """A program that writes a log, and what rotates it; the clock of the files moves on."""

    def __init__(self, path: Path) -> None:
        self.path, self.count, self.now = path, 0, 1_700_000_000
        path.touch()

    def write(self, lines: int, *, half: bool = False) -> None:
        with self.path.open("ab") as file:
            for _ in range(lines):
                file.write(b"line %d of the log\n" % self.count)
                self.count += 1
            if half:
                file.write(b"half")
        self._tick(self.path)

    def rotate(self) -> None:
        """Rename the log, and begin a new one."""
        self._shift()
        self.path.rename(self.path.with_name("app.log.1"))
        self.path.touch()
        self._tick(self.path)

    def copy(self) -> None:
        """Copy the log, and empty it."""
        self._shift()
        shutil.copyfile(self.path, self.path.with_name("app.log.1"))
        self._tick(self.path.with_name("app.log.1"))
        os.truncate(self.path, 0)
        self._tick(self.path)

    def compress(self, number: int) -> None:
        plain = self.path.with_name(f"app.log.{number}")
        if plain.exists():
            status = plain.stat()
            packed = plain.with_name(plain.name + ".gz")
            packed.write_bytes(gzip.compress(plain.read_bytes()))
            os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
            plain.unlink()

    def _shift(self) -> None:
        for number in range(20, 0, -1):
            for ending in ("", ".gz"):
                old = self.path.with_name(f"app.log.{number}{ending}")
                if old.exists():
                    old.rename(self.path.with_name(f"app.log.{number + 1}{ending}"))

    def _tick(self, path: Path) -> None:
        self.now += 1
        os.utime(path, (self.now, self.now))


class Reader:
    """A runner without a log, which may die anywhere."""

    def __init__(self, path: Path) -> None:
        self.connector = rotated_log(path, grace="0s")
        self.lines: list[bytes] = []
        self.position = None
        self.reading = self.connector.open("", None)

    def read(self, chance: random.Random | None = None) -> None:
        quiet = 0
        while quiet < 3:
            items = self.reading.read()
            quiet = 0 if items else quiet + 1
            if chance and items and chance.random() < 0.3:
                items = items[: chance.randrange(len(items) + 1)]
                self._commit(items)
                self.die()
                continue
            self._commit(items)

    def _commit(self, items) -> None:
        if items:
            self.lines += [item.content for item in items]
            self.position = json.loads(json.dumps(self.reading.position_after(items[-1])))

    def die(self) -> None:
        self.reading.close()
        self.reading = self.connector.open("", self.position)


def expected(count: int) -> list[bytes]:
    return [b"line %d of the log" % n for n in range(count)]


@pytest.fixture
def writer(tmp_path):
    return Writer(tmp_path / "app.log")


@pytest.mark.parametrize("seed", range(8))
def test_each_line_comes_once_however_the_log_is_rotated_and_the_reader_dies(writer, seed):
    chance = random.Random(seed)
    writer.write(50)
    reader = Reader(writer.path)
    reader.read(chance)
    for _ in range(25):
        for _ in range(chance.choice([1, 1, 3])):
            writer.write(chance.choice([0, 1, 30]))
            writer.rotate()
            writer.compress(chance.choice([2, 2, 3]))
        writer.write(chance.choice([0, 5]))
        if chance.random() < 0.7:
            reader.read(chance)
    writer.write(1)
    reader.read(chance)
    assert reader.lines == expected(writer.count)
    reader.reading.close()


def test_a_log_that_is_copied_and_emptied_goes_on_in_the_copy_and_then_anew(writer):
    writer.write(10)
    reader = Reader(writer.path)
    reader.read()
    for _ in range(3):
        writer.write(7)
        writer.copy()
        writer.write(2)
        reader.read()
    assert reader.lines == expected(writer.count)
    reader.reading.close()


def test_a_line_without_an_end_counts_when_its_file_was_left(writer):
    writer.write(2, half=True)
    reader = Reader(writer.path)
    reader.read()
    assert len(reader.lines) == 2
    writer.rotate()
    reader.read()
    assert reader.lines == [*expected(2), b"half"]
    reader.reading.close()


def test_a_file_that_was_renamed_is_read_on_while_it_grows(writer):
    now = [0.0]
    connector = rotated_log(writer.path, grace="2s")
    reading = connector.open("", None, clock=lambda: now[0])
    writer.write(1)
    assert len(reading.read()) == 1
    old = writer.path.open("ab")
    writer.rotate()
    writer.write(1)
    assert reading.read() == []
    now[0] = 1.5
    old.write(b"late\n")
    old.close()
    assert [item.content for item in reading.read()] == [b"late"]
    now[0] = 3.0
    assert reading.read() == []
    now[0] = 5.1
    reading.read()
    assert [item.content for item in reading.read()] == [b"line 1 of the log"]
    reading.close()


def test_what_was_deleted_before_it_was_read_is_a_gap_and_not_passed_over(writer):
    writer.write(5)
    reader = Reader(writer.path)
    reader.read()
    writer.write(5)
    writer.rotate()
    writer.path.with_name("app.log.1").unlink()
    reader.reading.close()
    with pytest.raises(ConfigurationError, match="begins as the one") as raised:
        reader.connector.open("", reader.position)
    assert raised.value.code == "source.gap"
    writer.write(3)
    other = Reader(writer.path)
    other.read()
    os.truncate(writer.path, 0)
    with pytest.raises(ConfigurationError, match="was emptied"):
        other.read()
    other.reading.close()
    with pytest.raises(ConfigurationError, match="is not a position of a log"):
        other.connector.open("", {"x": 1})


@record()
class Text:
    text: str


def test_options_and_connection_are_checked(tmp_path):
    app = App("shop")
    app.source("a", rotated_log(3), into=app.stream("lines", Text))
    app.source("b", rotated_log("x", grace="soon"), into=app.stream("others", Text))
    assert [problem.code for problem in check(app.graph)] == ["source.option"] * 2
    fine = rotated_log(tmp_path / "app.log")
    source = app.source("c", fine, into=app.stream("more", Text))
    assert fine.attempt(source) == "0 files of app.log for c"
    with pytest.raises(ConfigurationError):
        rotated_log(tmp_path / "no" / "app.log").attempt(source)
