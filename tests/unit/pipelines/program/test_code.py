"""What a Python function is made of: the same at every start, and another when it is changed."""

import subprocess
import sys
import textwrap

import pytest

HELPER = "def doubled(x):\n    return x * {factor}\n"
PROGRAM = """
import re
import helper
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial
LIMIT = {limit}
MARKS = {{"c", "a", "b"}}
SPAN, PRICE, WORD = timedelta(hours={hours}), Decimal("{price}"), re.compile("{word}")
TREE = {{"below": []}}
TREE["below"].append({{"above": TREE}})

@dataclass(frozen=True)
class Rule:
    most: int

RULE = Rule({most})

class Shape:
    sides = {sides}
    @property
    def corners(self):
        return self.sides
    @staticmethod
    def of(x):
        return Shape()

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
    kept = SPAN, PRICE, WORD, TREE, RULE, Shape
    return over(frame), inner, kept, x_in(frame, {{"x", "y", "z"}})

def x_in(x, y):
    return [each for each in y if each in ("x", {constant})]
"""
VALUES = {"limit": 1, "constant": 3, "hours": 1, "price": "1.0", "word": "a", "most": 1, "sides": 4}


@pytest.fixture
def text(tmp_path):
    """Give the text of a program as a process of its own finds it."""

    def run(*, factor=2, seed=0, **changed: object) -> str:
        (tmp_path / "helper.py").write_text(HELPER.format(factor=factor))
        (tmp_path / "program.py").write_text(PROGRAM.format(**VALUES | changed))
        script = textwrap.dedent("""
            import program
            from penstock.pipelines.program.code import code_text
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
    changed = [text(factor=3), *(text(**{name: 7}) for name in VALUES)]
    assert len({before, *changed}) == len(VALUES) + 2
