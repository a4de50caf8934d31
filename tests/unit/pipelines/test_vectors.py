"""Accumulators of whole columns are those that the combiners make value by value."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.panes.machine import Windowing
from penstock.core.panes.windows import GlobalWindow
from penstock.core.records.schema import Scalar
from penstock.core.rollup.reader import RollupReader
from penstock.pipelines.rollups.frame import TIME, group, value
from penstock.pipelines.rollups.vectors import Vector, vector_of

every = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "everyaggregate.py")))
rows = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("rollup_rows.py"))))
WINDOWING = Windowing(windows=GlobalWindow())
LARGE = 1.5e308


def by_column(measure, table):
    """Return the accumulator of each group, as a task of Spark makes it."""
    vector = vector_of(measure, value(0) if measure.expression else TIME, table)
    reduced = table.group_by([group(0)], use_threads=False).aggregate(vector.reductions)
    return dict(
        zip(reduced.column(group(0)).to_pylist(), vector.accumulators(reduced), strict=True)
    )


def by_value(rollup, readings):
    """Return the accumulator of each group, as a service makes it."""
    reader, combiner = RollupReader(rollup), rollup.measures[0].combiner
    held = {}
    for each in readings:
        _, (found,) = reader.read(each, reader.time(each, 0))
        held[each.device] = combiner.add(held.get(each.device, combiner.zero()), found)
    return held


def table_of(rollup, readings, *, chunks=1):
    reader = RollupReader(rollup)
    given = [(0, offset, reader.time(each, 0), False, each) for offset, each in enumerate(readings)]
    cuts = [given[index::chunks] for index in range(chunks)]
    return pa.concat_tables([rows.table(rollup, cut, clock=0) for cut in cuts])


@pytest.mark.parametrize("name", sorted(rows.AGGREGATES))
@settings(max_examples=settings().max_examples // 3)
@given(readings=st.lists(rows.readings, min_size=1, max_size=12), chunks=st.integers(1, 3))
def test_the_accumulators_of_a_column_are_those_of_its_values(name, readings, chunks):
    rollup = rows.declared(WINDOWING, "device", (name,))
    table = table_of(rollup, readings, chunks=chunks)
    in_order = [each for start in range(chunks) for each in readings[start::chunks]]
    expected = by_value(rollup, in_order)
    found = by_column(rollup.measures[0], table)
    assert found.keys() == expected.keys()
    for key, held in found.items():
        assert rows.plain(held) == rows.near(rows.plain(expected[key]))


@pytest.mark.parametrize("levels", [[2**62, 2**62], [-(2**63), -(2**63), 1], [2**63 - 1] * 3])
def test_sums_of_whole_numbers_never_wrap_around(levels):
    rollup = rows.declared(WINDOWING, "device", ("levels",))
    readings = [rows.Reading("a", rows.EPOCH, level=level) for level in levels]
    found = by_column(rollup.measures[0], table_of(rollup, readings))
    assert found == {"a": [sum(levels), len(levels)]}


@pytest.mark.parametrize("name", ["sum", "mean", "spread"])
@pytest.mark.parametrize(
    "values", [[LARGE, LARGE], [LARGE, -LARGE], [LARGE, LARGE, -LARGE], [1e200, 2e200]]
)
def test_floats_near_their_end_give_what_adding_one_by_one_gives(name, values):
    rollup = rows.declared(WINDOWING, "device", (name,))
    readings = [rows.Reading("a", rows.EPOCH, celsius=each) for each in values]
    found = by_column(rollup.measures[0], table_of(rollup, readings))
    assert rows.near(found["a"]) == by_value(rollup, readings)["a"]


def reductions():
    return [
        pytest.param(combiner, form, Scalar(name), reduction, id=f"{each}-{name}")
        for each, combiner, form in every.found()
        for name, reduction in form.arrow.items()
    ]


@pytest.mark.parametrize(("combiner", "form", "kind", "reduction"), reductions())
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_every_reduction_comes_to_what_the_combiner_would_hold(
    combiner, form, kind, reduction, data
):
    values = data.draw(every.values(form, kind).filter(bool))
    column = pa.bool_() if form.takes == "presence" else rows.TYPES[kind.name]
    table = pa.table({"group": [1] * len(values), "value": pa.array(values, column)})
    vector = Vector([("value", each) for each in reduction.functions], reduction.make)
    (held,) = vector.accumulators(table.group_by("group").aggregate(vector.reductions))
    assert rows.plain(held) == rows.near(rows.plain(every.folded(combiner, values)))
