from argparse import Namespace
from pathlib import Path

import pytest

from penstock.cli.screen.terminal import Terminal
from penstock.cli.session import Session
from penstock.cli.supervision.partprocess import exit_text, run_command


@pytest.mark.parametrize(
    ("code", "log", "text"),
    [
        (-9, ["error: something"], "killed by SIGKILL"),
        (-200, [], "killed by signal 200"),
        (1, ["noise", "error: no topic [x.y]", "  hint: z"], "exit code 1: no topic [x.y]"),
        (
            1,
            ["error: 1 problem [x]", "  app.py:3: no", "  hint: z"],
            "exit code 1: 1 problem [x]: app.py:3: no",
        ),
        (1, ["error: early [x]", "error: late [y]"], "exit code 1: late [y]"),
        (1, ["only noise"], "exit code 1: only noise"),
        (3, [], "exit code 3: nothing in its log"),
        (1, ["error: " + "x" * 500], "exit code 1: " + "x" * 300 + "… (+200 characters)"),
    ],
)
def test_the_end_of_a_process_is_explained(code, log, text):
    assert exit_text(code, log) == text


def test_a_part_runs_with_the_configuration_of_its_supervisor():
    arguments = Namespace(
        app="app.py",
        config=Path("other.toml"),
        profile="production",
        settings=[("kafka.heap_mb", "256"), ("home", "x=y")],
    )
    command = run_command(Session(arguments, Terminal()), ["one", "two"])
    assert command[1:] == [
        *("-P", "-m", "penstock.cli", "--debug"),
        *("--config", "other.toml"),
        *("--profile", "production"),
        *("--set", "kafka.heap_mb=256"),
        *("--set", "home=x=y"),
        *("--set", "http.port=0"),  # the supervisor tells of all its parts
        *("run", "app.py", "--report-json"),
        *("--part", "one", "--part", "two"),
    ]
