"""Every aggregate that there is, found by looking: what the tests of all aggregates go through."""

import importlib
import pkgutil

import pytest
from hypothesis import strategies as st

from penstock.core import aggregates
from penstock.core.aggregates.aggregate import forms
from penstock.core.records.schema import Scalar

MODULES = [each.name for each in pkgutil.iter_modules(aggregates.__path__)]
for name in MODULES:
    importlib.import_module(f"{aggregates.__name__}.{name}")

EIGHTHS = st.integers(-800, 800).map(lambda eighths: eighths / 8)
PLAIN = {
    "int": st.integers(-1000, 1000),
    "float": EIGHTHS,
    "text": st.text(max_size=3),
    "bool": st.booleans(),
    "instant": st.integers(-(10**6), 10**6),
    "date": st.integers(-9, 9),
    "decimal": st.integers(-(10**20), 10**20),
}
"""Plain values of each type, of which sums are exact."""
TAKES = {
    "presence": ("int",),
    "numbers": ("int", "float", "decimal"),
    "floats": ("float",),
    "comparable": tuple(PLAIN),
}


def found():
    """Return every aggregate with the options to try it with: a name, its combiner, its form."""
    return [
        (f"{made.__name__}{dict(options) or ''}", made(**options), form)
        for made, form in forms().items()
        if made.__module__.startswith(f"{aggregates.__name__}.")
        for options in form.examples
    ]


def cases():
    """Return every aggregate with the options to try it with, for a parametrized test."""
    return [pytest.param(combiner, form, id=name) for name, combiner, form in found()]


def kinds(form):
    """Return the types of values that an aggregate takes."""
    return [Scalar(name) for name in TAKES[form.takes]]


def values(form, kind, *, max_size=8):
    """Return lists of what goes into an accumulator, nulls among them."""
    one = st.just(True) if form.takes == "presence" else PLAIN[kind.name]  # noqa: FBT003
    given = st.none() | one
    if form.stamped:
        given = st.tuples(st.integers(-3, 3), given)
    return st.lists(given, max_size=max_size)


def is_null(form, value):
    """Return whether what goes into an accumulator is null."""
    return value[1] is None if form.stamped else value is None


def folded(combiner, given, held=None):
    """Return the accumulator after these values."""
    held = combiner.zero() if held is None else held
    for value in given:
        held = combiner.add(held, value)
    return held


def near(found):
    """Return the same with floats that need not agree to the last digits."""
    match found:
        case float():
            return pytest.approx(found, rel=1e-9, abs=1e-9)
        case list() | tuple():
            return [near(each) for each in found]
    return found
