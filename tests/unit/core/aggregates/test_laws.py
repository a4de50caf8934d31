"""What holds for every aggregate: it finds them by itself, a new one needs no line here."""

import inspect
import runpy
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock.aggregates
from penstock.core.expression.values.plainvalues import from_plain
from penstock.core.instants import LAST_MICROS
from penstock.core.panes.packing import decode, encode
from penstock.core.records.schema import ListOf

every = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[3] / "everyaggregate.py")))
folded, near = every.folded, every.near
of_every_aggregate = pytest.mark.parametrize(("combiner", "form"), every.cases())
examples = settings(max_examples=settings().max_examples // 3)


def test_every_module_is_found_and_what_it_offers_is_public():
    modules = {type(combiner).__module__.rpartition(".")[2] for _, combiner, _ in every.found()}
    assert modules | {"aggregate", "own"} == set(every.MODULES)
    offered = {
        name
        for module in map(inspect.getmodule, {type(each) for _, each, _ in every.found()})
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    assert offered | {"combine"} == set(penstock.aggregates.__all__)


@of_every_aggregate
@examples
@given(data=st.data())
def test_values_split_anyhow_come_to_the_same(combiner, form, data):
    kind = data.draw(st.sampled_from(every.kinds(form)))
    whole = data.draw(every.values(form, kind, max_size=12))
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=3).map(sorted))
    bounds = [0, *cuts, len(whole)]
    pieces = [whole[start:stop] for start, stop in pairwise(bounds)]
    held = combiner.zero()
    for piece in data.draw(st.permutations(pieces)):
        held = combiner.merge(held, folded(combiner, piece))
    assert combiner.result(held) == near(combiner.result(folded(combiner, whole)))


@of_every_aggregate
@examples
@given(data=st.data())
def test_merging_is_associative_and_commutative(combiner, form, data):
    kind = data.draw(st.sampled_from(every.kinds(form)))
    one, two, three = (data.draw(every.values(form, kind)) for _ in range(3))

    def merged(left, right):
        return combiner.merge(left(), right())

    def of(values):
        return lambda: folded(combiner, values)

    expected = near(combiner.result(merged(lambda: merged(of(one), of(two)), of(three))))
    assert combiner.result(merged(of(one), lambda: merged(of(two), of(three)))) == expected
    assert combiner.result(merged(of(three), lambda: merged(of(two), of(one)))) == expected


@of_every_aggregate
@examples
@given(data=st.data())
def test_nothing_and_nulls_change_nothing(combiner, form, data):
    kind = data.draw(st.sampled_from(every.kinds(form)))
    given = data.draw(every.values(form, kind))
    expected = near(combiner.result(folded(combiner, given)))
    assert combiner.result(combiner.merge(combiner.zero(), folded(combiner, given))) == expected
    assert combiner.result(combiner.merge(folded(combiner, given), combiner.zero())) == expected
    known = [value for value in given if not every.is_null(form, value)]
    assert combiner.result(folded(combiner, known)) == expected


@of_every_aggregate
@examples
@given(data=st.data())
def test_what_is_held_goes_on_after_a_journey_as_bytes(combiner, form, data):
    kind = data.draw(st.sampled_from(every.kinds(form)))
    before, after = (data.draw(every.values(form, kind)) for _ in range(2))
    arrived = decode(encode(folded(combiner, before)))
    expected = combiner.result(folded(combiner, [*before, *after]))
    assert combiner.result(folded(combiner, after, arrived)) == near(expected)
    again = decode(encode(folded(combiner, before)))
    merged = combiner.merge(again, decode(encode(folded(combiner, after))))
    assert combiner.result(merged) == near(expected)


PYTHON = {"int": int, "float": float | int, "text": str, "bool": bool}
WHOLE = {"instant": int, "date": int, "decimal": int}


@of_every_aggregate
@examples
@given(data=st.data())
def test_a_result_is_of_the_type_that_was_promised(combiner, form, data):
    kind = data.draw(st.sampled_from(every.kinds(form)))
    found = combiner.result(folded(combiner, data.draw(every.values(form, kind))))
    gives = form.gives(kind)
    if found is None:
        assert form.nullable
        return
    items = found if isinstance(gives, ListOf) else [found]
    name = gives.item.name if isinstance(gives, ListOf) else gives.name
    assert all(isinstance(each, (PYTHON | WHOLE)[name]) for each in items)
    from_plain(gives)(found)


extremes = st.sampled_from(
    [1e200, -1e200, 1.7e308, -1.7e308, 1e154, 5e-324, 0.0, -0.0, 1.5]
) | st.sampled_from([2**63 - 1, -(2**63), 10**38 - 1, 2**53 + 1])


@of_every_aggregate
@examples
@given(data=st.data())
def test_no_number_makes_an_aggregate_raise_however_it_is_put_together(combiner, form, data):
    given = st.none() | extremes
    if form.stamped:
        given = st.tuples(st.sampled_from([-LAST_MICROS, 0, LAST_MICROS]), given)
    one, other = (data.draw(st.lists(given, max_size=6)) for _ in range(2))
    combiner.result(combiner.merge(folded(combiner, one), folded(combiner, other)))
    combiner.result(combiner.merge(combiner.zero(), folded(combiner, one + other)))
