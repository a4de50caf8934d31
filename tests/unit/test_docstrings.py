"""The docstrings of public names are true: each has an example, and the examples run."""

import doctest
import importlib
import inspect
import re
import sys
from types import ModuleType
from typing import Any

import pytest

import penstock
from penstock.core.graph.data import Archive, Lake, Stream, Table
from penstock.core.joins.join import Join
from penstock.core.lifecycles.lifecycle import LifeCycle
from penstock.core.patterns.pattern import Pattern
from penstock.core.patterns.steps import Sequence
from penstock.core.rollup.aggregation import Aggregation, Selection, Windowed
from penstock.core.rules.check import check
from penstock.core.tables.grouping import Grouped, TableAggregation

MODULES = [
    importlib.import_module(name)
    for name in (
        "penstock",
        "penstock.state",
        "penstock.tables",
        "penstock.questions",
        "penstock.windows",
        "penstock.triggers",
        "penstock.aggregates",
        "penstock.connectors",
        "penstock.lifecycles",
        "penstock.models",
        "penstock.patterns",
        "penstock.testing",
    )
]
DECLARED = (
    LifeCycle,
    Pattern,
    Sequence,
    Stream,
    Table,
    Lake,
    Archive,
    Selection,
    Windowed,
    Join,
    Grouped,
    TableAggregation,
)
"""What declarations return: nobody imports these, everybody calls their methods."""
PROTOCOLS = "penstock.connectors.connector."
"""What a connector implements: docs/connectors.md has an example of all of it."""
RUNNERS = {"penstock.connectors.run.run_source", "penstock.connectors.run.run_sink"}
"""They need a broker; `penstock run` calls them."""


def public(module: ModuleType) -> list[Any]:
    found = [getattr(module, name) for name in module.__all__]
    own = [each for each in found if getattr(each, "__module__", "").startswith("penstock")]
    return [each for each in own if inspect.isclass(each) or inspect.isfunction(each)]


def named(each: Any) -> str:
    return f"{each.__module__}.{each.__qualname__}"


PUBLIC = {named(each): each for module in MODULES for each in public(module)}
OBJECTS = PUBLIC | {named(each): each for each in DECLARED}


def members(cls: type) -> list[Any]:
    """Return the public methods and properties that a class or its own base classes define."""
    return [
        value.fget if isinstance(value, property) else value
        for each in cls.__mro__
        if each.__module__.startswith("penstock.")
        for name, value in vars(each).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    ]


def documented() -> dict[str, Any]:
    found = dict(OBJECTS)
    for each in OBJECTS.values():
        if inspect.isclass(each):
            found |= {named(member): member for member in members(each)}
    return found


DOCUMENTED = documented()


def is_declared(each: Any) -> bool:
    return isinstance(each, Aggregation)


def run(name: str, docstring: str, names: dict[str, Any]) -> int:
    """Run the examples of a docstring; return how many there are."""
    test = doctest.DocTestParser().get_doctest(docstring, names, name, __file__, 0)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    complaints: list[str] = []
    runner.run(test, out=complaints.append, clear_globs=False)
    assert not complaints, "".join(complaints)
    names.update(test.globs)
    return runner.tries


@pytest.fixture
def names(request):
    """What the examples go on from: everything public, and the example of App."""
    module = ModuleType(f"docstring_{abs(hash(request.node.name))}")
    names = vars(module)
    for each in MODULES:
        names |= {name: getattr(each, name) for name in each.__all__}
    sys.modules[module.__name__] = module
    run("App", inspect.getdoc(penstock.App) or "", names)
    yield names
    del sys.modules[module.__name__]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_examples_of_a_docstring_run_and_give_what_they_say(name, names):
    docstring = inspect.getdoc(DOCUMENTED[name])
    assert docstring
    run(name, docstring, names)
    for number, result in enumerate(each for each in names.copy().values() if is_declared(each)):
        names["app"].stream(f"result{number}", result, on="services")
    assert check(names["app"].graph) == []


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_has_an_example(name):
    if name in RUNNERS or name.startswith(PROTOCOLS):
        return
    assert ">>> " in (inspect.getdoc(PUBLIC[name]) or "")


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_public_docstring_begins_with_one_sentence_and_has_no_roles_of_sphinx(name):
    docstring = inspect.getdoc(DOCUMENTED[name]) or ""
    first = docstring.partition("\n\n")[0]
    assert "\n" not in first
    assert first.endswith((".", "?"))
    assert re.findall(r":\w+:`", docstring) == []
