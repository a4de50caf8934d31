"""What a Python function is made of: the same at every start, and another when it is changed."""

import json
import subprocess
import sys
from pathlib import Path

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


SCRIPT = """
import json, sys
from penstock.pipelines.program.code import code_text

def text(directory):
    sys.path.insert(0, directory)
    import program
    sys.path.remove(directory)
    del sys.modules["program"], sys.modules["helper"]
    return code_text(program.passing)

print(json.dumps([text(each) for each in sys.argv[1:]]))
"""


def texts(directories: list[Path], *, seed: int) -> list[str]:
    """Return the texts of programs, each in a directory, as a process of its own finds them."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *directories],
        env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_the_text_is_the_same_in_every_process_and_tells_every_change(tmp_path):
    def program(number: int, *, factor=2, **changed: object) -> Path:
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / "helper.py").write_text(HELPER.format(factor=factor))
        (directory / "program.py").write_text(PROGRAM.format(**VALUES | changed))
        return directory

    changes = [{}, {"factor": 3}, *({name: 7} for name in VALUES)]
    programs = [program(number, **each) for number, each in enumerate(changes)]
    found = texts(programs, seed=0)
    assert texts(programs, seed=1) == found
    assert len(set(found)) == len(VALUES) + 2
