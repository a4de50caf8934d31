from datetime import timedelta

from penstock.pipelines.execution.batchwatch import BatchWatch


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def watch(clock):
    return BatchWatch(timedelta(minutes=1), clock=clock)


def test_a_batch_that_does_not_end_is_told_and_one_that_does_is_well_again():
    clock = Clock()
    found = watch(clock)
    assert found.trouble(active=True, seen=1) == ""
    clock.now = 59
    assert found.trouble(active=True, seen=1) == ""
    clock.now = 61
    assert found.trouble(active=True, seen=1).startswith("a batch has not ended for 1m01s")
    assert "spark.batch_limit" in found.trouble(active=True, seen=1)
    assert found.trouble(active=True, seen=2) == ""
    clock.now = 130
    assert found.trouble(active=True, seen=2) != ""


def test_a_query_that_waits_for_records_is_well_however_long():
    clock = Clock()
    found = watch(clock)
    for minute in range(100):
        clock.now = 60.0 * minute
        assert found.trouble(active=False, seen=1) == ""
