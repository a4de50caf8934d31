"""Which batch a record came in, and the watermark that it was late for, though nobody looked."""

from penstock.pipelines.checkpoint.batches import PlannedBatch
from penstock.pipelines.rollups.batchtrail import BatchTrail

AT = ("readings", 0)


def planned(batch):
    """Ten records in each batch, and a watermark that goes on by a minute."""
    return PlannedBatch({AT: 10 * batch + 10}, 60_000 * batch)


class Log:
    """An offset log that keeps its last batches."""

    def __init__(self, *, kept=100):
        self.batches = {}
        self.kept = kept

    def plan(self, batch):
        self.batches[batch] = planned(batch)
        for old in [each for each in self.batches if each <= batch - self.kept]:
            del self.batches[old]

    def trail(self):
        return BatchTrail(lambda: list(self.batches), self.batches.get)


def ranges(taken):
    return [(each.start.get(AT, 0), each.end[AT], each.watermark, each.dropped) for each in taken]


def test_batches_that_nobody_saw_are_looked_at_with_their_own_watermarks():
    log = Log()
    trail = log.trail()
    for batch in range(5):
        log.plan(batch)
    assert ranges(trail.follow(0, dropped=False)) == [(0, 10, 0, False)]
    assert ranges(trail.follow(1, dropped=False)) == [(10, 20, 0, False)]
    assert ranges(trail.follow(4, dropped=False)) == [
        (20, 30, 60_000, True),
        (30, 40, 120_000, True),
        (40, 50, 180_000, False),
    ]
    assert ranges(trail.follow(4, dropped=True)) == []


def test_no_record_is_judged_by_the_watermark_of_another_batch_where_the_log_has_forgotten_its_own():
    log = Log()
    trail = log.trail()
    log.plan(0)
    assert ranges(trail.follow(0, dropped=False)) == [(0, 10, 0, False)]
    for batch in range(1, 300):
        log.plan(batch)
    found = ranges(trail.follow(299, dropped=False))
    assert found[0] == (2010, 2020, 60_000 * 200, True)
    assert [watermark for *_, watermark, _ in found] == [60_000 * each for each in range(200, 299)]


def test_what_the_progress_of_a_batch_says_is_enough():
    log = Log()
    trail = log.trail()
    for batch in range(300):
        log.plan(batch)
    told = [
        ranges(trail.follow(each, dropped=True, from_progress=planned(each))) for each in range(300)
    ]
    assert [each[0][:2] for each in told] == [(10 * each, 10 * each + 10) for each in range(300)]


def test_it_begins_behind_a_batch_that_was_followed_before_or_at_the_next_that_has_a_beginning():
    log = Log(kept=10)
    for batch in range(20):
        log.plan(batch)
    trail = log.trail()
    trail.begin(17)
    assert ranges(trail.follow(19, dropped=False)) == [
        (180, 190, 60_000 * 17, True),
        (190, 200, 60_000 * 18, False),
    ]
    trail = log.trail()
    trail.begin(3)
    assert ranges(trail.follow(11, dropped=False)) == [(110, 120, 60_000 * 10, False)]
