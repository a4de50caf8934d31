from penstock.core.status.report import Counts
from penstock.services.step.tally import Tally, total


def test_uncommitted_records_are_in_flight():
    tally = Tally()
    tally.passed, tally.written, tally.filtered = 3, 5, 1
    assert tally.counts() == Counts(received=4, in_flight=4)
    tally.commit()
    assert tally.counts() == Counts(received=4, passed=3, filtered=1, written=5)


def test_what_is_discarded_was_never_received():
    tally = Tally()
    tally.passed = 2
    tally.commit()
    tally.dead_lettered = 7
    tally.discard()
    assert tally.counts() == Counts(received=2, passed=2)


def test_a_sum_of_balanced_counts_is_balanced():
    one = Counts(received=5, passed=2, dead_lettered=1, in_flight=2)
    other = Counts(received=1, filtered=1)
    assert total(one, other) == Counts(
        received=6, passed=2, filtered=1, dead_lettered=1, in_flight=2
    )
    assert total(one, other).balanced
