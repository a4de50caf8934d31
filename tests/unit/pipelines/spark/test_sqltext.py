from penstock.pipelines.spark.sqltext import all_of, any_of, literal, name


def test_a_text_that_could_mean_something_to_spark_travels_as_digits():
    assert literal("plain7") == "'plain7'"
    assert literal("it's ${x}\\") == "cast(x'6974277320247b787d5c' as string)"


def test_numbers_keep_every_bit():
    assert literal(2**63 - 1) == "bigint('9223372036854775807')"
    assert literal(0.1) == "double('0.1')"
    assert literal(value=True) == "true"


def test_a_name_cannot_end_its_quotes():
    assert name("a`b") == "`a``b`"


def test_conditions_are_bracketed_and_what_always_holds_is_left_out():
    assert all_of("a", "true", "b or c") == "(a) and (b or c)"
    assert all_of("true") == "true"
    assert any_of("a") == "a"
    assert any_of() == "false"
