from penstock.services.worker.measures import MonotonicCounter, Skipped


def test_an_offset_that_is_skipped_twice_is_counted_once():
    skipped = Skipped()
    skipped.see(("words", 0), 10, 30)
    skipped.see(("words", 0), 10, 30)
    skipped.see(("words", 0), 20, 35)
    skipped.see(("words", 1), 0, 5)
    assert skipped.offsets == 20 + 5 + 5


def test_more_that_is_skipped_after_a_new_beginning_is_counted_too():
    skipped = Skipped()
    skipped.see(("words", 0), 137, 2000)
    skipped.see(("words", 0), 110, 2000)
    assert skipped.offsets == 1890


def test_counts_of_tasks_that_come_and_go_never_fall():
    rising = MonotonicCounter()
    counts = (3, 10, 4, 4, 9, 0)
    assert [rising.never_less("panes", count) for count in counts] == [3, 10, 10, 10, 15, 15]
    assert rising.never_less("other", 1) == 1
