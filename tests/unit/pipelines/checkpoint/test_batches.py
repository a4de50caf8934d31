import pytest

from penstock.pipelines.checkpoint.batches import offsets_of


def test_offsets_are_read_from_what_spark_says_about_a_kafka_source():
    text = '{"words":{"0":3728,"1":3715},"lines":{"0":1}}'

    assert offsets_of(text) == {("words", 0): 3728, ("words", 1): 3715, ("lines", 0): 1}


@pytest.mark.parametrize(
    "text",
    [None, "null", '{"logOffset":4}', '{"reservoirVersion":4}', '{"conf":{"spark.x":"1"}}', {}],
)
def test_what_other_sources_say_holds_no_offsets(text):
    assert offsets_of(text) == {}
