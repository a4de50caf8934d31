"""Two streams joined within a time, on the machine: against a recount, cut and restarted."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.joinmachines import Run, arrival, shown, span, streams

from penstock.core.expression.values.times import from_micros

ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.integers(0, 30)), max_size=30
)
CUTS = st.lists(st.integers(-6, 6).filter(bool), max_size=8)
SPANS = st.tuples(st.integers(-4, 12), st.integers(-4, 12)).filter(lambda each: sum(each) >= 0)


def joined(*, how="left", before=0, after=10, lateness=0, early=False):
    _, left, right = streams()
    join = left.join(
        right,
        on="key",
        how=how,
        before=span(before),
        after=span(after),
        lateness=span(lateness),
    )
    return join.results("early") if early else join


def arrivals(rows):
    return [
        arrival(side, key, at, number, offset=number) for number, (side, key, at) in enumerate(rows)
    ]


def recount(rows, how, before, after):
    """Join all rows at once; what is late is not among them."""
    found = Counter()
    left, right = ([each for each in rows if each.input == side] for side in (0, 1))
    matched = set()
    for one in left:
        for other in right:
            distance = (other.time - one.time) // 1000
            if one.key == other.key and -before <= distance <= after:
                matched |= {one.offset, other.offset}
                found[pair(one, other)] += 1
    if how != "inner":
        found.update(pair(one, None) for one in left if one.offset not in matched)
    if how == "outer":
        found.update(pair(None, other) for other in right if other.offset not in matched)
    return found


def pair(one, other):
    rows = [None if each is None else (each.record.at, each.record.value) for each in (one, other)]
    return (*rows, from_micros(max(each.time for each in (one, other) if each is not None)))


@given(
    ROWS, CUTS, SPANS, st.integers(0, 5), st.sampled_from(["inner", "left", "outer"]), st.booleans()
)
def test_what_stands_is_the_join_of_all_rows_that_are_not_late(  # noqa: PLR0917
    rows, cuts, spans, lateness, how, early
):
    before, after = spans
    came = arrivals(rows)
    join = joined(how=how, before=before, after=after, lateness=lateness, early=early)
    run, cut = Run(join), Run(join)
    run.take(came)
    cut.take_cut(came, cuts)
    late = {each.arrival.offset for each in run.finish().late}
    cut.finish()
    kept = [each for each in came if each.offset not in late]
    assert run.standing() == recount(kept, how, before, after)
    assert cut.standing() == run.standing()
    assert {each.arrival.offset for each in cut.given.late} == late
    # The order of each key is the same too.
    for key in "ab":
        of_key = [
            [shown(each.record) for each in one.given.results if each.record.key == key]
            for one in (run, cut)
        ]
        assert of_key[0] == of_key[1]


@given(ROWS, SPANS, st.sampled_from(["inner", "left", "outer"]))
def test_nothing_is_left_in_the_store_when_event_time_is_past_everything(rows, spans, how):
    run = Run(joined(how=how, before=spans[0], after=spans[1]))
    run.take_cut(arrivals(rows), [3, -3, 3])
    run.finish()
    run.machine.flush()
    assert set(run.store) <= {b"h"}


@given(ROWS, SPANS, st.sampled_from(["inner", "left", "outer"]))
def test_a_finished_range_gives_what_all_its_rows_make_in_whatever_order(rows, spans, how):
    before, after = spans
    came = arrivals(rows)
    run = Run(joined(how=how, before=before, after=after, early=True))
    run.plan = run.plan.finished()
    run.restart()
    run.take(sorted(came, key=lambda each: (each.input, each.offset)))
    given = run.finish()
    assert not given.late
    assert {each.change for each in given.results} <= {"add"}
    assert run.standing() == recount(came, how, before, after)


def test_a_result_without_a_partner_is_withdrawn_when_one_comes_out_of_order_after_all():
    run = Run(joined(before=100, after=0))
    run.take([arrival(0, "a", 1000, 1), arrival(0, "b", 1003, 2)])
    assert [shown(each.record)[:2] for each in run.given.results] == [((1000, 1), None)]
    run.take([arrival(1, "a", 999, 3)])
    changes = [
        (each.change, each.record.withdrawn, each.record.right) for each in run.given.results
    ]
    assert changes[1][:2] == ("withdraw", True)
    assert changes[2][:2] == ("add", False)
    assert not run.given.late


def test_a_row_whose_window_is_closed_is_in_the_late_ledger():
    run = Run(joined(how="inner", after=10, lateness=5))
    run.take([arrival(0, "a", 100, 1), arrival(0, "a", 85, 2), arrival(0, "a", 84, 3, offset=7)])
    (late,) = run.given.late
    assert (late.arrival.offset, late.reason, late.late_by) == (7, "expired", 16_000)


def test_a_stream_joined_with_itself_meets_itself_too():
    _, left, _ = streams()
    run = Run(left.join(left, on="key", within=span(5), names=("left", "right")))
    run.take([arrival(0, "a", 1, 1), arrival(0, "a", 3, 2)])
    values = [(each.record.left.value, each.record.right.value) for each in run.given.results]
    assert values == [(1, 1), (2, 1), (1, 2), (2, 2)]


def test_a_key_with_many_rows_writes_what_came_and_not_all_of_it_again():
    run = Run(joined(how="inner", before=0, after=10_000_000))
    for start in range(0, 5000, 100):
        run.take([arrival(0, "a", start + each, each) for each in range(100)])
        run.machine.flush()
    sizes = [len(value) for value in run.store.values()]
    assert len(sizes) > 40
    assert max(sizes) < 20_000
    run.restart()
    run.take([arrival(1, "a", 5000, 1)])
    assert len(run.given.results) == 5000


def test_a_stream_of_results_allows_for_how_far_their_times_go_back():
    app, left, right = streams(disorder="1s")

    def disorder(how, emits="final", **spans):
        join = left.join(right, on="key", how=how, lateness="5s", **spans).results(emits)
        name = f"{how}-{emits}-{'-'.join(spans)}"
        return app.stream(name, join, on="services").event_time.disorder.total_seconds()

    assert disorder("inner", before="20s", after="10s") == 1 + 20 + 5
    assert disorder("inner", before="20s") == 1 + 20 + 5
    assert disorder("left", before="20s", after="10s") == 1 + 20 + 10 + 5
    assert disorder("left", "early", after="10s") == 1 + 10 + 10 + 5
    assert disorder("left", before="20s") == 1 + 20 + 5
    assert disorder("outer", before="20s", after="10s") == 1 + 20 + 20 + 5


def test_a_table_loses_the_row_of_a_withdrawn_result_unless_a_result_takes_its_place():
    rows = [arrival(0, "a", 1000, 1), arrival(1, "a", 1005, 2)]
    unpaid = Run(joined(early=True).where("right is null").select(key="key"), "table")
    unpaid.take(rows)
    changes = [(each.change, each.record.key, each.headers) for each in unpaid.given.results]
    assert changes == [("add", "a", ()), ("withdraw", "a", (("penstock.event-time", b"1000000"),))]
    everything = Run(joined(early=True), "table")
    everything.take(rows)
    assert [each.change for each in everything.given.results] == ["add", "add"]
