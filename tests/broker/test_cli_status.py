"""`penstock status` beside commands that run, and beside what a killed one has left."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from penstock.machine.ports import free_ports
from penstock.machine.process.processes import command_line

from . import test_cli_dev as kit

SECONDS = 60


@pytest.fixture
def name(topic):
    return topic.name("status")


@pytest.fixture
def start(tmp_path, name, kafka):
    (tmp_path / "app.py").write_text(kit.APP.format(name=name).replace("print(", "str("))
    commands = []

    def run(*words):
        environment = {"PENSTOCK_KAFKA_BOOTSTRAP": kafka.bootstrap}
        commands.append(kit.Command(*words, cwd=tmp_path, environment=environment))
        return commands[-1]

    yield run
    for command in commands:
        command.close()


def status(directory):
    """Return the exit code, and the document."""
    command = [sys.executable, "-m", "penstock.cli", "status", "--json"]
    done = subprocess.run(
        command, cwd=directory, stdout=subprocess.PIPE, timeout=SECONDS, check=False
    )
    return done.returncode, json.loads(done.stdout)


def parts(directory):
    """Return the parts of everything that runs, by command and process."""
    _, told = status(directory)
    return {
        (run["command"], part["process"]): part for run in told["runs"] for part in run["parts"]
    }


def test_what_runs_in_a_project_is_found_with_its_numbers(start, name, kafka, tmp_path):
    assert status(tmp_path) == (1, {"healthy": False, "runs": [], "unanswered": []})
    port = free_ports(1)[0]
    app = str(tmp_path / "app.py")
    dev = start("dev", app, "--set", f"http.port={port}")
    dev.says(rf"metrics, health and status on http://127\.0\.0\.1:{port}")
    dev.says("count: running")
    kit.send(kafka, f"{name}.words", ["a", "b"] * 50)

    def counted():
        part = parts(tmp_path).get(("dev", "count"), {})
        return part.get("counts", {}).get("passed") == 100 and part

    kit.until(counted, "all counted")
    part = counted()
    assert (part["state"], part["healthy"], part["restarts"]) == ("running", True, 0)
    assert (part["counts"]["received"], part["counts"]["written"]) == (100, 100)
    assert part["metrics"]["state_keys"] == 2
    assert part["metrics"]["commit_seconds_count"] >= 1
    assert status(tmp_path)[0] == 0
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    labels = f'{{app="{name}",part="count",process="count"}}'
    assert f"penstock_received_records_total{labels} 100\n" in text

    (worker,) = [pid for pid in kit.processes_of(tmp_path) if "--part count" in command_line(pid)]
    os.kill(worker, signal.SIGKILL)
    kit.until(lambda: parts(tmp_path)["dev", "count"]["restarts"] == 1, "one restart")

    run = start("run", app, "--part", "count", "--workers", "2")
    kit.until(
        lambda: {("run", "count-1"), ("run", "count-2")} <= set(parts(tmp_path)), "the workers"
    )
    assert run.end(signal.SIGTERM) == 0
    assert {command for command, _ in parts(tmp_path)} == {"dev"}

    dev.process.kill()
    dev.process.wait()
    assert len(list((tmp_path / ".penstock" / "runs").iterdir())) == 1
    assert status(tmp_path) == (1, {"healthy": False, "runs": [], "unanswered": []})
    assert list((tmp_path / ".penstock" / "runs").iterdir()) == []
