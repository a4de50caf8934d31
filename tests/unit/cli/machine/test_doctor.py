import pytest


@pytest.fixture(autouse=True)
def empty_cache(project, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(project / "cache"))


def test_what_is_missing_is_named_with_the_command_that_mends_it(penstock):
    answer = penstock("doctor")
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert any(line.startswith("ok      Python") for line in lines)
    at = next(i for i, line in enumerate(lines) if line.startswith("missing jars, kafka"))
    assert lines[at + 1].strip() == "→ penstock jars fetch"
    assert answer.err == "error: 2 things missing\n"


def test_findings_come_as_json(penstock):
    found = penstock("doctor", "--json").json
    assert found["ok"] is False
    states = {each["check"]: each["state"] for each in found["findings"]}
    assert states["Python"] == "ok"
    assert states["jars, spark"] == "missing"
    assert states["broker"] == "ok"


def test_a_wrong_configuration_is_a_finding(penstock, project):
    (project / "penstock.toml").write_text("[kafka]\nbrokers = 2\n")
    answer = penstock("doctor")
    assert answer.code == 1
    assert "penstock.toml:2: kafka.brokers: 2 is none of 1, 3" in answer.out


def test_a_cluster_that_does_not_answer_is_missing(penstock):
    flags = ("--set", "kafka.bootstrap=127.0.0.1:1", "--set", "kafka.request_timeout=500ms")
    answer = penstock("doctor", *flags)
    assert "missing kafka           Kafka at 127.0.0.1:1 does not answer" in answer.out
