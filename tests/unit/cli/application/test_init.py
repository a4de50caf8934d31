import subprocess
import sys

import pytest


def test_a_new_project_passes_its_own_tests_and_the_check(penstock, project):
    answer = penstock("init", "thermo")
    assert answer.code == 0
    assert "thermo/app.py" in answer.out.splitlines()
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project / "thermo",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "4 passed" in ran.stdout
    answer = penstock("check", "thermo")
    assert answer.out == "ok: thermo has 1 source, 2 streams, 1 table, 1 service\n"


def test_its_configuration_is_valid_in_every_profile(penstock, project, monkeypatch):
    penstock("init", "thermo")
    monkeypatch.chdir(project / "thermo")
    assert penstock("config", "show").code == 0
    answer = penstock("--profile", "production", "config", "explain", "kafka.replication")
    assert answer.out.startswith("kafka.replication = 3\n")


def test_its_code_is_formatted_and_clean(penstock, project):
    penstock("init", "thermo")
    for command in (["check", "--select", "E,F,I,UP,B"], ["format", "--check"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--line-length", "100", "."],
            cwd=project / "thermo",
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout


def test_a_directory_with_anything_in_it_is_left_alone(penstock, project):
    (project / "full").mkdir()
    (project / "full" / "mine.txt").touch()
    answer = penstock("init", "full")
    assert answer.code == 1
    assert "full is not empty [init.not-empty]\n  it holds mine.txt\n" in answer.err
    assert [path.name for path in (project / "full").iterdir()] == ["mine.txt"]
    (project / "empty").mkdir()
    assert penstock("init", "empty").code == 0


@pytest.mark.parametrize("name", ["my project", "über"])
def test_a_name_that_no_topic_can_have_is_refused(penstock, project, name):
    answer = penstock("init", name)
    assert answer.code == 1
    assert "[init.name]" in answer.err
    assert not (project / name).exists()
