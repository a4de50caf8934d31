"""The tables of functions and operations are complete, and the documentation lists them."""

import ast
import builtins
import re
from pathlib import Path

import pytest

from penstock.core.expression.calls import FUNCTION_RULES
from penstock.core.expression.compile import RUNTIME
from penstock.core.expression.functions import CASTS, FUNCTIONS, OPERATORS
from penstock.core.expression.operations import OPERATIONS

DOCS = Path(__file__).parents[4] / "docs" / "expressions.md"
WORDS = {"p": 10, "s": 2, "s0": 2, "t": "x", "all": "x, x", "sum": "x + x"}


def test_the_documentation_lists_every_function_and_no_other():
    table = DOCS.read_text("utf-8").partition("### Functions")[2].partition("## ")[0]
    rows = [line for line in table.split("\n") if line.startswith("| ")]
    listed = {name for row in rows for name in re.findall(r"`([a-z_0-9]+)`", row)}

    assert listed == {*FUNCTIONS, *OPERATORS, *CASTS, *FUNCTION_RULES} - {"[]"}


@pytest.mark.parametrize("name", [name for name in OPERATIONS if OPERATIONS[name].python])
def test_a_template_uses_only_what_the_compiled_function_sees(name: str):
    source = OPERATIONS[name].python.format("x", "x", "x", **WORDS)
    names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}

    assert names - {"x"} <= {*RUNTIME, *dir(builtins)}


def test_every_function_with_fixed_types_has_its_operation():
    operations = {each.operation for signatures in FUNCTIONS.values() for each in signatures}

    assert operations <= OPERATIONS.keys()
