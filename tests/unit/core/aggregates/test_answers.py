import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.aggregates.approximatedistinct import ApproximateDistinct
from penstock.core.aggregates.collect import Collect
from penstock.core.aggregates.count import Count
from penstock.core.aggregates.distinct import Distinct
from penstock.core.aggregates.ends import First, Last
from penstock.core.aggregates.extremes import Max, Min
from penstock.core.aggregates.quantile import Quantile
from penstock.core.aggregates.sums import Mean, Sum
from penstock.core.aggregates.top import Top
from penstock.core.aggregates.variance import Variance

numbers = st.lists(st.none() | st.integers(-1000, 1000), max_size=20)
timed = st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(-9, 9)), max_size=20)


def folded(combiner, values):
    held = combiner.zero()
    for value in values:
        held = combiner.add(held, value)
    return held


def present(values):
    return [value for value in values if value is not None]


EXACT = [
    (Count(), len),
    (Sum(), lambda values: sum(values) if values else None),
    (Min(), lambda values: min(values, default=None)),
    (Max(), lambda values: max(values, default=None)),
    (Top(3), lambda values: sorted(values, reverse=True)[:3]),
    (Collect(), sorted),
    (Distinct(), lambda values: len(set(values))),
]


@pytest.mark.parametrize(("combiner", "plain"), EXACT, ids=lambda each: type(each).__name__)
@given(values=numbers)
def test_an_aggregate_is_what_plain_python_says(combiner, plain, values):
    assert combiner.result(folded(combiner, values)) == plain(present(values))


@given(numbers)
def test_mean_and_variance_are_those_of_statistics(values):
    kept = present(values)
    mean = Mean().result(folded(Mean(), values))
    variance = Variance().result(folded(Variance(), values))
    assert mean == (None if not kept else pytest.approx(statistics.fmean(kept)))
    expected = None if len(kept) < 2 else pytest.approx(statistics.variance(kept), abs=1e-6)
    assert variance == expected


@given(timed)
def test_first_and_last_go_by_event_time(values):
    kept = sorted((time, value) for time, value in values if value is not None)
    assert First().result(folded(First(), values)) == (kept[0][1] if kept else None)
    assert Last().result(folded(Last(), values)) == (kept[-1][1] if kept else None)


@given(st.lists(st.sampled_from([1e200, 1e154, 2e153, 1.3e154, -1e154, 1.0]), max_size=5))
def test_a_variance_is_too_large_alike_whether_it_is_merged_or_added_up(values):
    merged = Variance().zero()
    for value in values:
        merged = Variance().merge(merged, folded(Variance(), [value]))
    got, expected = Variance().result(merged), Variance().result(folded(Variance(), values))
    if expected is None or not math.isfinite(expected):
        assert got is None or not math.isfinite(got)
    else:
        assert got == pytest.approx(expected)


@pytest.mark.parametrize("count", [10, 1000, 50_000])
def test_approximate_distinct_is_within_its_error(count):
    sketch = ApproximateDistinct()
    estimate = sketch.result(folded(sketch, (f"user-{n}" for n in range(count))))
    assert abs(estimate - count) <= max(1, 4 * 0.02 * count)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_quantile_is_within_its_relative_error(share, sign):
    values = [sign * 1.7**n / 1000 for n in range(40)] + [0.0, math.nan, sign * 1.7e308]
    exact = sorted(value for value in values if not math.isnan(value))
    expected = exact[math.floor(share * (len(exact) - 1))]
    sketch = Quantile(share)
    assert sketch.result(folded(sketch, values)) == pytest.approx(expected, rel=0.011)
