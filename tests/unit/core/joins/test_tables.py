"""Two tables: by their key, and by a field of the left one that points at the right one."""

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joinmachines import Chain, Row, Run, arrival, tables

from penstock import App

CHANGES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from("abc"),
        st.sampled_from([None, *range(4)]),
        st.sampled_from([None, "a", "b", "c"]),
    ),
    max_size=40,
)
CUTS = st.lists(st.integers(-6, 6).filter(bool), max_size=8)


def arrivals(changes):
    found = []
    for number, (side, key, value, points) in enumerate(changes):
        row = None if value is None else Row(key=key, at=number, value=value, points=points)
        found.append(arrival(side, key, number, 0, offset=number)._replace(record=row))
    return found


def latest(came):
    tables = ({}, {})
    for each in came:
        tables[each.input].pop(each.key, None)
        if each.record is not None:
            tables[each.input][each.key] = each.record
    return tables


def values(rows):
    return {
        key: (row.left and row.left.value, row.right and row.right.value)
        for key, row in rows.items()
    }


@given(CHANGES, CUTS, st.sampled_from(["inner", "left", "outer"]))
def test_by_key_the_result_is_the_join_of_both_tables(changes, cuts, how):
    _, left, right = tables()
    run = Run(left.join(right, on="key", how=how), "table")
    came = arrivals(changes)
    run.take_cut(came, cuts)
    lefts, rights = latest(came)
    keys = {"inner": lefts.keys() & rights, "left": lefts.keys(), "outer": lefts.keys() | rights}
    expected = {}
    for key in keys[how]:
        one, other = lefts.get(key), rights.get(key)
        expected[key] = (one and one.value, other and other.value)
    assert values(run.table()) == expected


@settings(max_examples=50)
@given(CHANGES, st.sampled_from(["inner", "left"]), st.randoms(use_true_random=False))
def test_by_a_foreign_key_the_result_is_the_join_whatever_overtakes_what(changes, how, random):
    app = App("app")
    left, right = app.table("left", Row), app.table("right", Row)
    joined = left.join(right, on={"points": "key"}, how=how)
    results = app.table("results", joined, on="services")
    came = arrivals(changes)
    chain = Chain(app, random)
    for each in came:
        chain.feed("right" if each.input else "left", each)
    chain.settle()
    lefts, rights = latest(came)
    expected = {}
    for key, row in lefts.items():
        other = rights.get((row.points or "").encode())
        if other is not None or how == "left":
            expected[key] = (row.value, other and other.value)
    assert values(chain.table(results)) == expected


def test_no_state_is_left_of_rows_that_are_gone():
    _, left, right = tables()
    run = Run(left.join(right, on="key", how="outer"), "table")
    numbers = count()
    for side in (0, 1):
        run.take([arrival(side, "a", next(numbers), 1), arrival(side, "a", next(numbers), None)])
    run.machine.flush()
    assert set(run.store) == {b"h"}


def test_nothing_is_left_of_a_row_that_goes_before_its_answer_comes():
    app = App("app")
    left, right = app.table("left", Row), app.table("right", Row)
    results = app.table("results", left.join(right, on={"points": "key"}), on="services")
    chain = Chain(app)
    chain.feed("right", arrival(1, "b", 0, 1))
    for number in range(10):
        row = Row(key=str(number), at=1, value=1, points="b")
        chain.feed("left", arrival(0, row.key, 1, 0, 2 * number)._replace(record=row))
        chain.feed("left", arrival(0, row.key, 2, None, 2 * number + 1))
    chain.settle()  # the part that fills the table has read both before there is an answer
    assert chain.table(results) == {}
    assert set(chain.store(results)) == {b"h"}
