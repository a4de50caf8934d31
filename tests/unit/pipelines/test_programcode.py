"""What a Python function is made of: the same at every start, and another when it is changed."""

import subprocess
import sys
import textwrap

import pytest

HELPER = "def doubled(x):\n    return x * {factor}\n"
PROGRAM = """
import helper
from functools import partial
LIMIT = {limit}
MARKS = {{"c", "a", "b"}}

class Wrapped:
    def __init__(self, func):
        self.func = func
    def __call__(self, x):
        return self.func(x)

@Wrapped
def over(x):
    return x > LIMIT and x not in MARKS and x != {constant}

def passing(frame):
    inner = lambda x: helper.doubled(x)
    return over(frame), inner, x_in(frame, {{"x", "y", "z"}})

def x_in(x, y):
    return [each for each in y if each in ("x", {constant})]
"""


@pytest.fixture
def text(tmp_path):
    """Give the text of a program as a process of its own finds it."""

    def run(*, limit=1, factor=2, constant=3, seed=0) -> str:
        (tmp_path / "helper.py").write_text(HELPER.format(factor=factor))
        (tmp_path / "program.py").write_text(PROGRAM.format(limit=limit, constant=constant))
        script = textwrap.dedent("""
            import program
            from penstock.pipelines.programcode import code_text
            print(code_text(program.passing))
        """)
        (tmp_path / "main.py").write_text(script)
        done = subprocess.run(
            [sys.executable, "-B", "main.py"],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    return run


def test_the_text_is_the_same_in_every_process_and_tells_every_change(text):
    before = text()
    assert text(seed=1) == before
    changed = [text(limit=2), text(factor=3), text(constant=4)]
    assert len({before, *changed}) == 4
