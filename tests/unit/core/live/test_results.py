"""Live results: events replayed over the first result are the result, whatever is written."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.live.index import QueryIndex
from penstock.core.live.query import read_query
from penstock.core.live.result import live_result
from penstock.core.live.values import order_of

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 2.0, -1.5]),
    st.sampled_from(["", "a", "b"]), st.lists(st.integers(-2, 3), max_size=3),
)  # fmt: skip
DOCUMENTS = st.fixed_dictionaries(
    {}, optional={"a": VALUES, "b": VALUES, "c": st.fixed_dictionaries({"d": VALUES})}
)
PATHS = st.sampled_from(["a", "b", "c.d"])
CONDITIONS = st.one_of(
    VALUES,
    st.builds(lambda name, value: {name: value}, st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]), VALUES),
    st.builds(lambda low, high: {"$gte": low, "$lt": high}, st.integers(-3, 2), st.integers(-1, 4)),
    st.builds(lambda values: {"$in": values}, st.lists(VALUES, max_size=3)),
    st.builds(lambda value: {"$not": {"$gt": value}}, st.integers(-2, 2)),
)  # fmt: skip
FIELDS = st.dictionaries(PATHS, CONDITIONS, max_size=2)
FILTERS = st.one_of(
    FIELDS,
    st.builds(lambda a, b: {"$or": [a, b]}, FIELDS, FIELDS),
    st.builds(lambda a, b: {"$nor": [a], **b}, FIELDS, FIELDS),
    st.builds(lambda a, b: {"$and": [a, b]}, FIELDS, FIELDS),
)
SORTS = st.lists(
    st.tuples(PATHS, st.sampled_from([1, -1])), max_size=2, unique_by=lambda each: each[0]
)


def _query(given, sort, offset, limit):
    query = {"filter": given, "sort": sort, "offset": offset}
    return query if limit is None else query | {"limit": limit}


QUERIES = st.builds(
    _query,
    FILTERS, SORTS, st.integers(0, 2), st.one_of(st.none(), st.integers(0, 4)),
)  # fmt: skip
WRITES = st.lists(st.tuples(st.integers(0, 6), st.one_of(st.none(), DOCUMENTS)), max_size=25)


@given(QUERIES, WRITES, st.integers(0, 8), st.integers(0, 2))
def test_events_over_the_first_result_are_the_result_over_all(given_query, writes, begun, reserve):
    query = read_query(given_query)
    table = {}
    for identity, document in writes[:begun]:
        if document is not None:
            table[identity] = {"_id": identity, **document}

    def refill(count):
        return sorted(filter(query.matches, table.values()), key=query.place)[:count]

    live = live_result(query, refill=refill, reserve=reserve)
    shown = [event.document for event in live.begin(list(table.values()))]
    for identity, document in writes[begun:]:
        known = table.pop(identity, None)
        if document is not None:
            table[identity] = {"_id": identity, **document}
        elif known is None:
            continue
        operation = "delete" if document is None else "insert" if known is None else "update"
        for event in live.write(operation, identity, table.get(identity)):
            replay(shown, event)
        recount = query.result(list(table.values()))
        assert live.documents == recount or not query.ordered
        assert as_known(shown, query) == as_known(recount, query)


def replay(shown, event):
    """Change a client's copy of the result as an event says."""
    place = next((i for i, each in enumerate(shown) if each["_id"] == event.document["_id"]), None)
    assert (place is None) == (event.match == "add")
    if place is not None:
        del shown[place]
    if event.match != "remove":
        shown.insert(len(shown) if event.index is None else event.index, event.document)


def as_known(documents, query):
    return documents if query.ordered else sorted(documents, key=lambda each: each["_id"])


@given(st.lists(FILTERS, max_size=30), st.lists(DOCUMENTS, max_size=10), st.data())
def test_no_query_that_matches_is_missing_among_the_candidates(filters, documents, data):
    queries = {number: read_query({"filter": each}) for number, each in enumerate(filters)}
    index = QueryIndex()
    for number, query in queries.items():
        index.add(number, query.node)
    for number in data.draw(st.sets(st.sampled_from(sorted(queries)) if queries else st.nothing())):
        index.remove(number)
        del queries[number]
    assert len(index) == len(queries)
    for document in documents:
        found = {number for number, query in queries.items() if query.matches(document)}
        assert found <= index.candidates(document)


def test_a_document_meets_few_of_many_queries():
    index = QueryIndex()
    for number in range(5_000):
        index.add(("device", number), read_query({"filter": {"device": f"d{number}"}}).node)
        narrow = {"level": {"$gte": number, "$lt": number + 2}}
        index.add(("level", number), read_query({"filter": narrow}).node)
    assert index.unindexed == 0
    found = index.candidates({"device": "d7", "level": 100.5})
    assert found == {("device", 7), ("level", 99), ("level", 100)}


def test_an_index_without_queries_holds_nothing():
    index = QueryIndex()
    node = read_query({"filter": {"a": {"$in": [1, 2]}, "b": {"$gt": 5}}}).node
    index.add("one", node)
    assert index.candidates({"a": 1}) == {"one"}
    index.remove("one")
    index.remove("one")
    assert index.candidates({"a": 1}) == set()
    assert len(index) == 0


def test_kinds_come_in_their_order():
    values = [[], None, -1, 2.5, "", "a", {}, {"a": 1}, [None], b"", False, True]
    orders = [order_of(each) for each in values if each != []]
    assert orders == sorted(orders)
