from penstock.testing.sparkcluster import spark_home


def test_spark_is_found_where_it_is_installed():
    assert (spark_home() / "bin" / "spark-class").is_file()
