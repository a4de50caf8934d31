import os
import sys

import pytest

from penstock.machine.java.jars import JarSet, locked_jars

PIPELINE = """
from penstock import App, record

app = App("one")

@record(key="word")
class Word:
    word: str

words = app.stream("words", Word)
again = app.stream("again", Word)

@app.pipeline(reads=words, writes=again)
def same(words):
    return words
"""


@pytest.fixture(autouse=True)
def empty_cache(project, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(project / "cache"))


def test_the_list_says_what_is_there(penstock):
    answer = penstock("jars", "list", "--only", "spark")
    lines = answer.out.splitlines()
    assert lines[0] == "set\tjar\tbytes\tpresent"
    assert len(lines) == 1 + len(locked_jars(JarSet.SPARK))
    assert all(line.endswith("\tno") for line in lines[1:])
    assert len(penstock("jars", "list", "--json").json["jars"]) == len(locked_jars())


def test_the_archive_of_classes_needs_the_jars(penstock):
    answer = penstock("jars", "archive")
    assert answer.code == 1
    assert "spark jars are not in the cache" in answer.err
    assert "hint: run: penstock jars fetch" in answer.err


def test_verify_names_what_is_wrong_and_how_to_mend_it(penstock):
    answer = penstock("jars", "verify", "--only", "spark", "--json")
    assert answer.code == 1
    assert answer.json["ok"] is False
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13" in answer.err
    assert "hint: penstock jars fetch" in answer.err


def test_fetch_brings_jars_from_a_mirror_and_refuses_other_bytes(penstock, project):
    mirror = project / "mirror"
    for jar in locked_jars(JarSet.SPARK):
        path = mirror / jar.repository_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.truncate(path, jar.size)
    answer = penstock("jars", "fetch", "--only", "spark", "--mirror", mirror.as_uri())
    assert answer.code == 1
    assert "could not be fetched" in answer.err
    assert "its bytes do not match the checksum" in answer.err
    assert not list((project / "cache").rglob("*.jar"))


def test_a_verb_that_needs_the_broker_fetches_what_it_runs_on(penstock, project, monkeypatch):
    (project / "mirror").mkdir()
    monkeypatch.setenv("PENSTOCK_MAVEN_MIRROR", (project / "mirror").as_uri())
    for words in (["topics", "list"], ["broker"]):
        answer = penstock(*words)
        assert answer.code == 1
        assert answer.err.startswith("fetching: 0 of 42 MiB, 0 of 46 jars\n")
        assert "46 jars could not be fetched from file:" in answer.err
        assert "org.apache.kafka:kafka-clients:4.3.1: the repository does not have it" in answer.err
        assert "hint: set PENSTOCK_MAVEN_MIRROR" in answer.err


def test_a_cluster_needs_no_jars_of_ours(penstock):
    flags = ("--set", "kafka.bootstrap=127.0.0.1:1", "--set", "kafka.request_timeout=500ms")
    answer = penstock("topics", "list", *flags)
    assert "does not answer" in answer.err
    assert "fetching" not in answer.err


def test_a_verb_that_needs_spark_fetches_what_it_runs_on(penstock, project, monkeypatch):
    (project / "mirror").mkdir()
    monkeypatch.setenv("PENSTOCK_MAVEN_MIRROR", (project / "mirror").as_uri())
    (project / "app.py").write_text(PIPELINE)
    for words in (
        ["query", "select 1"],
        ["rebuild", "same"],
        ["replay", "--part", "same", "--as", "b"],
    ):
        answer = penstock(*words)
        assert answer.code == 1
        assert f"{len(locked_jars(JarSet.SPARK))} jars could not be fetched" in answer.err


def test_without_spark_its_verbs_say_how_to_install_it(penstock, project, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    (project / "app.py").write_text(PIPELINE)
    for words in (["query", "select 1"], ["dev"], ["run", "--part", "same"]):
        answer = penstock(*words)
        assert answer.code == 1
        assert "error: Spark is not installed [spark.missing]" in answer.err
        assert "hint: run: pip install 'penstock[spark]'" in answer.err
        assert "fetching" not in answer.err
