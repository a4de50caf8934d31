"""What was deleted before it was read is named with partition, wanted offset and first offset."""

from penstock.pipelines.checkpoint.trimmed import Gap, stopped_at


def test_every_gap_is_named_and_the_hint_is_the_way_on():
    gaps = [Gap("orders", 0, wanted=5, there=9), Gap("orders", 3, wanted=0, there=2_000)]
    error = stopped_at(gaps, "count")
    assert error.code == "offset.trimmed"
    assert "2,004 offsets" in error.message
    assert "orders[0] wants offset 5, the log begins at 9" in error.detail
    assert "orders[3] wants offset 0, the log begins at 2000" in error.detail
    assert "spark.on_trimmed=skip" in error.hint
