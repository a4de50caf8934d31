"""The pane cases on the machine, and what their runner says of a case it cannot run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[3] / "conformance"


def run(file):
    return subprocess.run(
        [sys.executable, CASES / "panes.py", file, "--engine", "driver"],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("file", "count"), [("panes.json", 36), ("more_panes.json", 58)])
def test_every_case_passes_on_the_machine(file, count):
    ran = run(CASES / file)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == f"{count} passed, 0 failed"


def test_a_wrong_expectation_is_a_failure_with_both_sides(tmp_path):
    text = (CASES / "panes.json").read_text(encoding="utf-8")
    wrong = text.replace('"values": [1, 2, 3], "index": 0', '"values": [1, 2, 4], "index": 0', 1)
    assert wrong != text
    (tmp_path / "wrong.json").write_text(wrong, encoding="utf-8")
    ran = run(tmp_path / "wrong.json")
    assert ran.returncode == 1
    assert "FAILED default_two_windows" in ran.stdout
    assert "expected" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "35 passed, 1 failed"


def case(name, **rest):
    return {"id": name, "window": {"kind": "fixed", "size": 10}, "steps": [], **rest}


def test_a_case_with_an_unknown_word_fails_by_its_name_and_the_others_go_on(tmp_path):
    cases = [
        case("window", window={"kind": "hopping", "size": 10}),
        case("trigger", trigger={"sometimes": 3}),
        case("part", trigger={"watermark": {"earlier": {"count": 1}}}),
        case("step", steps=[{"in": [[1, 1]]}, {"silence": 3}]),
        case("field", idle_after=3),
        case("mode", mode="adding"),
        case("time", steps=[{"watermark": "soon"}]),
        case("pane", steps=[{"panes": [{"window": [0, 10], "size": 3}]}]),
        case("known", remark="a text is a remark", steps=[{"panes": [], "remark": "none yet"}]),
    ]
    (tmp_path / "odd.json").write_text(json.dumps({"cases": cases}), encoding="utf-8")
    ran = run(tmp_path / "odd.json")
    lines = [line.strip() for line in ran.stdout.splitlines()]
    assert [line for line in lines if line.startswith("ValueError")] == [
        "ValueError: no such window: {'kind': 'hopping', 'size': 10}",
        "ValueError: no such trigger: {'sometimes': 3}",
        "ValueError: no such part of a watermark trigger: earlier",
        "ValueError: no such word in a step: silence",
        "ValueError: no such word in a case: idle_after",
        "ValueError: no such mode: 'adding'",
        "ValueError: no time: 'soon'",
        "ValueError: no such word in a pane: size",
    ]
    assert lines[-1] == "1 passed, 8 failed"


def test_keys_and_values_may_be_any_json_and_a_key_need_not_be_told(tmp_path):
    elements = [[6, {"a": 1}, [1, 2]], [7, "x", {"k": None}], [8, None, True], [9, 2.5, True]]
    panes = [
        {"window": [5, 15], "values": ["x"]},
        {"window": [5, 15], "values": [2.5, None], "key": True},
        {"window": [5, 15], "values": [{"a": 1}], "key": [1, 2]},
    ]
    made = case(
        "any",
        window={"kind": "fixed", "size": 10, "offset": 5},
        steps=[{"in": elements}, {"watermark": "inf"}, {"panes": panes}],
    )
    (tmp_path / "any.json").write_text(json.dumps({"cases": [made]}), encoding="utf-8")
    ran = run(tmp_path / "any.json")
    assert ran.stdout.splitlines()[-1] == "1 passed, 0 failed", ran.stdout
