"""What a rebuild says of the records that were late for its windows."""

from penstock.pipelines.rollups.latetally import LateCount


def test_batches_add_up_and_a_start_that_finds_no_others_changes_nothing():
    count = LateCount().with_batch(0, 2).with_batch(1, 0).with_batch(2, 1_200)
    assert (count.records, count.complete) == (1_202, True)
    assert count.resumed([0, 1, 2]) == count
    assert LateCount().resumed([]) == LateCount()


def test_a_batch_that_was_done_when_nobody_looked_makes_it_a_least_number():
    count = LateCount().with_batch(0, 2).resumed([0, 1]).with_batch(2, 3)
    assert (count.records, count.complete, count.through) == (5, False, 2)
    assert str(count).startswith("records late for its windows: at least 5;")


def test_batches_between_that_were_not_looked_at_make_it_a_least_number():
    assert LateCount().with_batch(0, 1).with_batch(3, 2, batches=3).complete
    assert not LateCount().with_batch(0, 1).with_batch(3, 2).complete


def test_it_is_said_in_words():
    assert str(LateCount()) == "no record was late for its windows"
    said = "records late for its windows: 1,202; a rebuild writes none to the ledger"
    assert str(LateCount(1_202)) == said
    assert "at least 0" in str(LateCount(complete=False))
