"""What changed between two answers of a query."""

from penstock.core.sql.differences import Changed, Differences


def test_rows_come_change_and_go_by_what_tells_them_apart() -> None:
    differences = Differences([0])
    assert differences.next([("a", 1), ("b", 2)]) == [
        Changed(None, ("a", 1)),
        Changed(None, ("b", 2)),
    ]
    assert differences.next([("c", 3), ("b", 4)]) == [
        Changed(("a", 1), None),
        Changed(None, ("c", 3)),
        Changed(("b", 2), ("b", 4)),
    ]
    assert differences.next([("b", 4), ("c", 3)]) == []
    assert sorted(differences.rows) == [("b", 4), ("c", 3)]


def test_equal_rows_that_nothing_tells_apart_are_counted() -> None:
    differences = Differences([])
    assert len(differences.next([(1,), (1,), (2,)])) == 3
    assert differences.next([(1,), (2,)]) == [Changed((1,), None)]
    assert differences.next([(2,), (3,)]) == [Changed((1,), None), Changed(None, (3,))]
