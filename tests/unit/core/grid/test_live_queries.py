"""Live queries in the driver: all parts of them, on grids of several sizes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, record
from penstock.core.grid.documents import decode_document
from penstock.core.grid.livequeries import cell_keys
from penstock.core.grid.messages import Asked
from penstock.core.live.copy import ResultCopy
from penstock.core.live.query import read_query
from penstock.core.live.values import order_of
from penstock.core.partitioner import partition_of
from penstock.testing import Driver


@record(key="id")
class Todo:
    id: str
    list: str
    rank: int
    done: bool = False


OPEN_AT_HOME = {"filter": {"list": "home", "done": False}, "sort": [["rank", -1]], "limit": 2}


def _declared(size=1, **options):
    app = App("todo")
    todos = app.table("todos", Todo, partitions=size)
    live = app.live_queries("live", todos, rows=size, **options)
    assert not app.graph.problems
    return Driver(app, partitions=size), todos, live


def _told(driver, live):
    return [
        (each.what, each.operation, decode_document(each.document)["_id"], each.index)
        for each in driver.read(live.news)
        if each.document
    ]


def test_a_limited_query_is_told_what_leaves_before_what_comes_in():
    driver, todos, live = _declared(3)
    for number in range(3):
        driver.pipe(todos, Todo(f"t{number}", "home", number))
    driver.pipe(live.asked, Asked("mine", json.dumps(OPEN_AT_HOME)))
    assert _told(driver, live) == [("first", "none", "t2", 0), ("first", "none", "t1", 1)]
    driver.pipe(todos, Todo("t9", "home", 9))
    assert _told(driver, live) == [("remove", "none", "t1", None), ("add", "insert", "t9", 0)]
    driver.pipe(todos, Todo("t9", "home", 9, done=True))
    assert _told(driver, live) == [("remove", "update", "t9", None), ("add", "none", "t1", 1)]
    driver.pipe(todos, Todo("t7", "office", 7))
    assert _told(driver, live) == []
    driver.delete(todos, "t2")
    assert _told(driver, live) == [("remove", "delete", "t2", None), ("add", "none", "t0", 1)]


def test_whoever_asks_again_gets_the_whole_result_again():
    driver, todos, live = _declared(2)
    driver.pipe(todos, Todo("a", "home", 1))
    query = json.dumps({"filter": {"list": "home"}})
    driver.pipe(live.asked, Asked("mine", query))
    driver.read(live.news)
    driver.pipe(todos, Todo("b", "home", 2))
    driver.read(live.news)
    driver.pipe(live.asked, Asked("mine", query))
    news = driver.read(live.news)
    assert [each.what for each in news] == ["begin", "first", "first", "ready"]
    assert [each.number for each in news] == [5, 6, 7, 8]
    driver.pipe(live.asked, Asked("mine", query, again=False))
    assert driver.read(live.news) == []


def test_the_end_of_the_first_result_says_what_it_holds_of_each_partition():
    driver, todos, live = _declared(3)
    offsets = dict.fromkeys("012", -1)
    for number in range(9):
        todo = Todo(f"t{number}", "home", number)
        driver.pipe(todos, todo)
        offsets[str(partition_of(todo.id.encode(), 3))] += 1
    driver.pipe(live.asked, Asked("mine", "{}"))
    (*_, ready) = driver.read(live.news)
    assert (ready.what, ready.positions) == ("ready", offsets)


def test_a_query_that_nobody_renews_is_closed_and_leaves_nothing_behind():
    driver, todos, live = _declared(2, lease="1m")
    driver.pipe(todos, Todo("a", "home", 1))
    driver.pipe(live.asked, Asked("mine", "{}"))
    driver.advance_clock("50s")
    driver.pipe(live.asked, Asked("mine", "{}", again=False))
    driver.advance_clock("50s")
    driver.pipe(todos, Todo("a", "home", 2))
    assert [each.what for each in driver.read(live.news)] == ["begin", "first", "ready", "change"]
    driver.advance_clock("11s")
    assert [each.what for each in driver.read(live.news)] == ["end"]
    driver.pipe(todos, Todo("a", "home", 3))
    assert driver.read(live.news) == []
    driver.pipe(live.asked, Asked("mine", "{}"))
    assert [(each.what, each.number) for each in driver.read(live.news)] == [
        ("begin", 1),
        ("first", 2),
        ("ready", 3),
    ]


def test_a_query_that_cannot_be_read_is_a_dead_letter_and_stops_nothing():
    driver, todos, live = _declared()
    driver.pipe(live.asked, Asked("bad", '{"filter": {"a": {"$where": 1}}}'))
    (letter,) = driver.dead_letters()
    assert letter.code == "query.refused"
    driver.pipe(live.asked, Asked("good", "{}"))
    driver.pipe(todos, Todo("a", "home", 1))
    assert [each.what for each in driver.read(live.news)] == ["begin", "ready", "add"]


def test_a_document_that_cannot_be_read_is_a_dead_letter():
    @record(key="id")
    class Anything:
        id: str
        body: str

    app = App("documents")
    documents = app.table("documents", Anything, partitions=1)
    app.live_queries("live", documents, document="body")
    driver = Driver(app, partitions=1)
    driver.pipe(documents, Anything("a", "no JSON"))
    (letter,) = driver.dead_letters()
    assert letter.code == "live.document"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"table": "todos"}, "live.table"),
        ({"document": "body"}, "live.document"),
        ({"document": "rank"}, "live.document"),
        ({"rows": 1_000}, "data.option"),
        ({"lease": "soon"}, "data.option"),
    ],
)
def test_what_is_declared_wrongly_is_a_problem_with_a_way_out(options, code):
    app = App("todo")
    given = {"table": app.table("todos", Todo), **options}
    app.live_queries("live", **given)
    problem = app.graph.problems[0]
    assert problem.code == code
    assert problem.place


@pytest.mark.parametrize("columns", [1, 2, 7, 50])
def test_each_column_has_a_key_that_belongs_to_it(columns):
    keys = cell_keys(columns)
    assert [partition_of(key.encode(), columns) for key in keys] == list(range(columns))


QUERIES = st.fixed_dictionaries(
    {
        "filter": st.sampled_from(
            [{}, {"list": "home"}, {"rank": {"$gt": 1}}, {"$or": [{"done": True}, {"rank": 0}]}]
        )
    },
    optional={
        "sort": st.sampled_from([[["rank", 1]], [["done", -1], ["rank", 1]]]),
        "limit": st.integers(0, 4),
        "offset": st.integers(0, 2),
    },
)
TODOS = st.builds(
    Todo,
    id=st.sampled_from("abcdefgh"),
    list=st.sampled_from(["home", "office"]),
    rank=st.integers(0, 3),
    done=st.booleans(),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), TODOS),
        st.tuples(st.just("put"), TODOS),
        st.tuples(st.just("delete"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("ask"), QUERIES),
        st.tuples(st.just("crash"), st.none()),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=40)
@given(STEPS, st.sampled_from([1, 3]))
def test_news_over_the_first_result_is_the_result_over_the_table_at_every_step(steps, size):
    driver, todos, live = _declared(size)
    copies: dict[str, ResultCopy] = {}
    table = {}
    for what, value in steps:
        if what == "put":
            driver.pipe(todos, value)
            table[value.id] = {"_id": value.id, **_fields(value)}
        elif what == "delete":
            driver.delete(todos, value)
            table.pop(value, None)
        elif what == "ask":
            driver.pipe(live.asked, Asked(json.dumps(value), json.dumps(value)))
        else:
            driver.crash()
            driver.restart()
        for news in driver.read(live.news):
            copy = copies.setdefault(news.id, ResultCopy())
            if news.what == "begin":
                copy.begin()
            elif news.document:
                copy.play(news.what, decode_document(news.document), news.index)
        for name, copy in copies.items():
            query = read_query(json.loads(name))
            expected, found = query.result(list(table.values())), copy.documents
            if not query.ordered:
                expected, found = (sorted(each, key=order_of) for each in (expected, found))
            assert found == expected


def _fields(todo):
    return {"id": todo.id, "list": todo.list, "rank": todo.rank, "done": todo.done}
