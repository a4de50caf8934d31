from penstock.pipelines.checkpoint.trimmed import Gap, Skipped, stopped_at


def test_an_offset_that_was_skipped_is_counted_once_however_often_the_query_starts():
    skipped = Skipped()
    assert skipped.add(Gap("words", 0, wanted=5, there=9)) == 4
    assert skipped.add(Gap("words", 0, wanted=5, there=9)) == 0, "it died before its first batch"
    assert skipped.add(Gap("words", 0, wanted=5, there=12)) == 3, "more was deleted meanwhile"
    assert skipped.add(Gap("words", 1, wanted=5, there=9)) == 4
    assert skipped.offsets == 11


def test_a_pipeline_that_stops_names_every_gap_and_the_way_out():
    error = stopped_at([Gap("words", 0, 5, 9), Gap("words", 1, 0, 2)], "count")
    assert error.message == "pipeline 'count' stopped: 6 offsets of its input were trimmed unread"
    assert error.detail == (
        "words[0] wants offset 5, the log begins at 9; words[1] wants offset 0, the log begins at 2"
    )
    assert "--set spark.on_trimmed=skip" in error.hint
