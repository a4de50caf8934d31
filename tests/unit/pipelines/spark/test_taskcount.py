from penstock.pipelines.spark.taskcount import TaskCount


def test_a_stage_that_is_gone_from_sight_counts_as_done():
    count = TaskCount()
    assert count.take({}) == (0, 0)
    assert count.take({1: (0, 4)}) == (0, 4)
    assert count.take({1: (3, 4), 2: (0, 10)}) == (3, 14)
    assert count.take({2: (5, 10)}) == (9, 14)
    assert count.take({}) == (14, 14)
