import os

import pytest

from penstock.machine.java.jars import JarSet, locked_jars


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
    assert "its bytes are not those of the list" in answer.err
    assert not list((project / "cache").rglob("*.jar"))
