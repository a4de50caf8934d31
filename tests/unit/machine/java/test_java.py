import importlib.util
import subprocess
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from penstock.machine.java.java import find_java, spark_java_home


def make_java(
    home: Path, *, version: str = "", modules: str = "java.base", script: str = ""
) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{script or 'exit 1'}\n")
    executable.chmod(0o755)
    if version:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java anywhere: not in the environment, on the path, or as a wheel."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "jdk-21", version="21.0.2")
    other = make_java(tmp_path / "jdk-17", version="17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"))
    java = find_java()
    assert (java.home, java.version, java.origin) == (home, 21, "JAVA_HOME")


def test_a_link_on_the_path_is_followed_to_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "jdk-17", version="17.0.9")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")
    java = find_java()
    assert (java.home, java.executable, java.origin) == (home, home / "bin" / "java", "PATH")


def test_a_launcher_is_asked_where_its_java_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "real", version="25")
    settings = f"    java.home = {home}\n    java.version = 25.0.1\n"
    make_java(tmp_path / "switcher", script=f'printf "{settings}" >&2')
    monkeypatch.setenv("PATH", str(tmp_path / "switcher" / "bin"))
    java = find_java()
    assert (java.home, java.version) == (home, 25)


def test_an_old_or_broken_java_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", version="1.8.0_402")))
    good = make_java(tmp_path / "good", version="17.0.9")
    monkeypatch.setenv("PATH", str(good / "bin"))
    assert find_java().home == good


def test_without_java_the_error_says_what_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", version="11.0.1")))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "broken") / "bin"))
    with pytest.raises(ConfigurationError) as caught:
        find_java()
    assert caught.value.code == "java.missing"
    assert "is Java 11" in caught.value.detail
    assert "does not run" in caught.value.detail
    assert "pip install 'penstock[java]'" in caught.value.hint


def test_spark_uses_a_java_that_has_the_vector_module_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "jdk", version="17", modules="java.base jdk.incubator.vector")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert spark_java_home(find_java()) == home


def test_spark_gets_a_wrapper_that_drops_the_module_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "a jre", version="25", script="printf '%s|' \"$@\"")
    monkeypatch.setenv("JAVA_HOME", str(home))
    wrapper = spark_java_home(find_java())
    assert wrapper == spark_java_home(find_java())
    arguments = [
        "-Da=b c",
        "--add-modules=jdk.incubator.vector",
        "",
        "--add-modules=java.sql",
        "$x",
    ]
    answer = subprocess.run(
        [wrapper / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "-Da=b c||--add-modules=java.sql|$x|"
