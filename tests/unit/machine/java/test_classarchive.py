"""Who uses an archive of classes, who writes it, and what is left of old ones."""

import os
import time
from pathlib import Path

import pytest

from penstock.machine.java.classarchive import (
    ARCHIVES_KEPT,
    CLAIM_LASTS,
    archive_options,
    archives_dir,
)
from penstock.machine.java.java import Java

WRITES, USES = "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="


@pytest.fixture
def java(tmp_path, monkeypatch) -> Java:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="17.0.15"\n')
    return Java(home, home / "bin" / "java", 17, "PATH")


@pytest.fixture
def jars(tmp_path) -> list[Path]:
    found = [tmp_path / "one.jar", tmp_path / "two.jar"]
    for jar in found:
        jar.write_bytes(b"classes")
    return found


def path_in(options: list[str], word: str) -> Path:
    (found,) = (each for each in options if each.startswith(word))
    return Path(found.removeprefix(word))


def written(java: Java, jars: list[Path]) -> None:
    """Let a JVM write an archive, as far as one can see that from outside."""
    path_in(archive_options("kafka", java, jars), WRITES).write_bytes(b"\xa8\xab\x0b\xf0classes")


def make_older(path: Path, seconds: float) -> None:
    at = time.time() - seconds
    os.utime(path, (at, at))


def test_one_jvm_writes_the_archive_and_later_ones_use_it(java, jars):
    first = archive_options("kafka", java, jars)
    path_in(first, WRITES).write_bytes(b"\x00\x00\x00\x00half of it")
    assert archive_options("kafka", java, jars) == [], "it is being written"
    path_in(first, WRITES).write_bytes(b"\xa8\xab\x0b\xf0all of it")
    archive = path_in(archive_options("kafka", java, jars), USES)
    assert archive.read_bytes().endswith(b"all of it")
    assert path_in(archive_options("kafka", java, jars), USES) == archive


def test_one_that_was_told_to_write_and_was_killed_is_replaced_after_a_while(java, jars):
    path_in(archive_options("kafka", java, jars), WRITES).write_bytes(b"\x00\x00\x00\x00half")
    assert archive_options("kafka", java, jars) == []
    for file in archives_dir().iterdir():
        make_older(file, CLAIM_LASTS.total_seconds() + 1)
    again = path_in(archive_options("kafka", java, jars), WRITES)
    assert [each.suffix for each in archives_dir().iterdir()] == [".claim"]
    assert not again.exists()


def test_another_java_or_another_jar_has_another_archive(java, jars):
    written(java, jars)
    assert path_in(archive_options("kafka", java, jars), USES)
    for change in (jars[0], java.home / "release"):
        change.write_bytes(b"changed")
        assert path_in(archive_options("kafka", java, jars), WRITES)


def test_the_newest_archives_of_a_program_are_kept(java, jars):
    for number in range(ARCHIVES_KEPT + 2):
        jars[0].write_bytes(b"x" * number)
        written(java, jars)
        make_older(path_in(archive_options("kafka", java, jars), USES), 100 - number)
    assert len(list(archives_dir().glob("*.jsa"))) == ARCHIVES_KEPT


def test_nothing_is_written_for_a_program_that_loads_little_or_where_the_cache_is_closed(
    java, jars, monkeypatch
):
    assert archive_options("kafka", java, jars, writes=False) == []
    (closed := archives_dir().parents[1]).parent.mkdir(exist_ok=True)
    closed.write_text("no directory")
    assert archive_options("kafka", java, jars) == []
