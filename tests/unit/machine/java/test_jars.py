import hashlib
import os
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from penstock.machine.java.jars import Jar, JarSet, jar_paths, locked_jars, missing_jars, parse_lock
from penstock.machine.java.verified import Verified


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))


def test_the_committed_list_is_complete_and_without_doubles() -> None:
    jars = locked_jars()
    assert len({(jar.jar_set, jar.group, jar.artifact) for jar in jars}) == len(jars)
    assert {len(jar.sha512) for jar in jars} == {128}
    assert min(jar.size for jar in jars) > 0
    assert locked_jars(JarSet.KAFKA) + locked_jars(JarSet.SPARK) == jars
    names = {jar.artifact for jar in jars}
    assert {"kafka_2.13", "log4j-slf4j-impl", "spark-sql-kafka-0-10_2.13"} <= names


def test_the_same_coordinates_never_have_two_hashes() -> None:
    assert len({jar.repository_path for jar in locked_jars()}) == len(
        {(jar.repository_path, jar.sha512) for jar in locked_jars()}
    )


def test_a_line_of_the_list_is_read() -> None:
    (jar,) = parse_lock("# a comment\n\nspark io.delta:delta-storage:4.4.0 12 abc\n")
    assert jar == Jar(JarSet.SPARK, "io.delta", "delta-storage", "4.4.0", 12, "abc")
    assert jar.repository_path == "io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar"


def test_missing_jars_are_named_with_the_command_that_fetches_them() -> None:
    with pytest.raises(ConfigurationError) as caught:
        jar_paths(JarSet.SPARK)
    assert caught.value.code == "jars.missing"
    assert "kafka-clients-3.9.2.jar" in caught.value.detail
    assert "and 1 more" in caught.value.detail
    assert caught.value.hint == "run: penstock jars fetch"


def test_only_verifying_sees_that_bytes_of_the_right_number_are_wrong(tmp_path: Path) -> None:
    jar = min(locked_jars(JarSet.SPARK), key=lambda jar: jar.size)
    jar.cached.parent.mkdir(parents=True)
    jar.cached.write_bytes(b"x" * jar.size)
    assert jar not in missing_jars(JarSet.SPARK)
    assert jar in missing_jars(JarSet.SPARK, verify=True)
    jar.cached.write_bytes(b"x")
    assert jar in missing_jars(JarSet.SPARK)


def test_a_file_matches_by_its_bytes(tmp_path: Path) -> None:
    jar = Jar(JarSet.KAFKA, "g", "a", "1", 3, hashlib.sha512(b"abc").hexdigest())
    (tmp_path / "file").write_bytes(b"abc")
    assert jar.matches(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"abd")
    assert not jar.matches(tmp_path / "file")
    assert not jar.matches(tmp_path / "nowhere")


def test_jars_with_other_bytes_are_refused_when_they_are_used(tmp_path: Path) -> None:
    for jar in locked_jars(JarSet.SPARK):
        jar.cached.parent.mkdir(parents=True, exist_ok=True)
        # As large as it must be, without taking the room.
        with jar.cached.open("wb") as file:
            file.truncate(jar.size)
    with pytest.raises(ConfigurationError) as caught:
        jar_paths(JarSet.SPARK)
    assert caught.value.code == "jars.wrong"
    assert ".jar" in caught.value.detail
    assert caught.value.hint == "run: penstock jars fetch"


def test_a_file_is_read_in_full_once_and_again_after_any_change(tmp_path: Path) -> None:
    file, known = tmp_path / "a.jar", tmp_path / "cache" / "verified.json"
    file.write_bytes(b"abc")
    read: list[str] = []

    def matches(path: Path) -> bool:
        read.append(path.name)
        return path.read_bytes() == b"abc"

    def ask() -> bool:
        verified = Verified(known)
        answer = verified.holds(file, "hash", matches=matches)
        verified.save()
        return answer

    assert [ask(), ask()] == [True, True]
    assert read == ["a.jar"]
    times = file.stat()
    file.write_bytes(b"abd")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # as if it were not changed
    assert [ask(), ask()] == [False, False]
    assert len(read) == 3
    file.unlink()
    assert not ask()
    known.write_text("no JSON")
    file.write_bytes(b"abc")
    assert ask()
