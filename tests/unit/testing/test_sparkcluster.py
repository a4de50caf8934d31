from penstock.testing.sparkcluster import LOG_CONFIG, spark_home


def test_spark_is_found_where_it_is_installed():
    assert (spark_home() / "bin" / "spark-class").is_file()


def test_the_processes_of_a_cluster_find_how_to_log():
    assert "penstock.log" in LOG_CONFIG.read_text()
