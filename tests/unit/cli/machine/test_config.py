def test_explain_tells_value_origin_and_what_was_overridden(penstock, project, monkeypatch):
    (project / "penstock.toml").write_text('[kafka]\nbootstrap = "file:9092"\n')
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP", "variable:9092")
    answer = penstock("config", "explain", "kafka.bootstrap")
    assert answer.code == 0
    assert answer.out.splitlines() == [
        "kafka.bootstrap = 'variable:9092'",
        "  from      environment, PENSTOCK_KAFKA_BOOTSTRAP",
        "  overrides 'file:9092' from file, penstock.toml:2",
        "  overrides 'embedded' from the default",
        "  is        'embedded', or host:port,... of a cluster",
        "  set it    --set kafka.bootstrap=... or PENSTOCK_KAFKA_BOOTSTRAP=...",
    ]
    found = penstock("config", "explain", "kafka.bootstrap", "--json").json
    assert found["value"] == "variable:9092"
    assert [past["layer"] for past in found["overrode"]] == ["file", "default"]


def test_flags_stand_before_the_verb_or_behind_it(penstock):
    answer = penstock(
        "--set",
        "kafka.brokers=3",
        "config",
        "explain",
        "kafka.brokers",
        "--set",
        "kafka.heap_mb=256",
    )
    assert answer.out.startswith("kafka.brokers = 3\n  from      flag, --set kafka.brokers\n")


def test_show_lists_every_setting_and_hides_secrets(penstock, monkeypatch):
    monkeypatch.setenv("PENSTOCK_KAFKA_SASL_PASSWORD", "hunter2")
    answer = penstock("config", "show")
    assert "kafka.sasl_password\t***\tPENSTOCK_KAFKA_SASL_PASSWORD\n" in answer.out
    assert "services.commit_interval\t100ms\tdefault\n" in answer.out
    assert "hunter2" not in answer.out + answer.err
    assert penstock("config", "show", "--json").json["settings"]["dev.restart_backoff"] == {
        "value": "1s",
        "layer": "default",
        "where": "default",
        "overrode": [],
        "help": "the first wait before a part is restarted",
    }


def test_a_wrong_configuration_is_an_error_with_every_problem(penstock, project):
    (project / "penstock.toml").write_text("[kafka]\nbootstarp = 1\nbrokers = 2\n")
    answer = penstock("config", "show")
    assert answer.code == 1
    assert answer.out == ""
    assert answer.err.splitlines() == [
        "error: the configuration has 2 problems [config.invalid]",
        "  penstock.toml:2: 'kafka.bootstarp' is not a setting; did you mean 'kafka.bootstrap'?",
        "  penstock.toml:3: kafka.brokers: 2 is not one of 1, 3",
        "  hint: penstock config show: every setting there is",
    ]


def test_secrets_among_the_options_of_spark_are_hidden_and_refused_as_flags(penstock, monkeypatch):
    name = "spark.hadoop.fs.s3a.secret.key"
    monkeypatch.setenv("PENSTOCK_SPARK_OPTIONS", f'{{"{name}": "hush", "spark.a": "b"}}')
    for words in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["config", "explain", f"spark.options.{name}"],
        ["config", "explain", f"spark.options.{name}", "--json"],
    ):
        answer = penstock(*words)
        assert answer.code == 0
        assert "hush" not in answer.out + answer.err
        assert "***" in answer.out
    for flag in (f"spark.options.{name}=hush", f'spark.options={{"{name}":"hush"}}'):
        answer = penstock("config", "show", "--set", flag)
        assert answer.code == 1
        assert "is a secret" in answer.err
        assert "PENSTOCK_SPARK_OPTIONS" in answer.err
