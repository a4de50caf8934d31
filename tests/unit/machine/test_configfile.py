from datetime import timedelta
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from penstock.machine.configfile import Loaded, line_numbers, load_configuration


def load(directory: Path, text: str | None = None, **given) -> Loaded:
    if text is not None:
        (directory / "penstock.toml").write_text(text, encoding="utf-8")
    given.setdefault("environment", {})
    return load_configuration(directory=directory, **given)


def test_without_a_file_the_home_is_below_the_current_directory(tmp_path):
    loaded = load(tmp_path)
    assert loaded.file is None
    assert loaded.places.home == tmp_path / ".penstock"


def test_the_file_is_found_above_the_current_directory_and_anchors_paths(tmp_path):
    (tmp_path / "penstock.toml").write_text(
        'home = "data"\n[kafka]\ntls_ca_file = "ca.pem"\n[lake]\npath = "s3a://lake/tables"\n'
    )
    below = tmp_path / "one" / "two"
    below.mkdir(parents=True)
    loaded = load(below)
    assert loaded.file == tmp_path / "penstock.toml"
    assert loaded.places.home == tmp_path / "data"
    assert loaded.settings.kafka.tls_ca_file == str(tmp_path / "ca.pem")
    assert loaded.settings.lake.path == "s3a://lake/tables"


def test_a_value_knows_its_file_and_line(tmp_path):
    loaded = load(
        tmp_path, '# the log\n\n[kafka]\nheap_mb = 300\n\n[spark.options]\n"spark.x" = "1"\n'
    )
    assert loaded.configuration.explain("kafka.heap_mb").where == "penstock.toml:4"
    assert loaded.configuration.explain("spark.options.spark.x").where == "penstock.toml:7"


def test_a_profile_overrides_the_file_and_the_environment_the_profile(tmp_path):
    text = """
[kafka]
bootstrap = "file:9092"
replication = 2
[profiles.production.kafka]
bootstrap = "production:9092"
[profiles.production.services]
commit_interval = "1s"
"""
    loaded = load(tmp_path, text, profile="production")
    assert loaded.settings.kafka.bootstrap == "production:9092"
    assert loaded.settings.kafka.replication == 2
    assert loaded.settings.services.commit_interval == timedelta(seconds=1)
    assert loaded.configuration.explain("kafka.bootstrap").where == "penstock.toml:6"
    variables = {"PENSTOCK_PROFILE": "production", "PENSTOCK_KAFKA_BOOTSTRAP": "variable:9092"}
    loaded = load(tmp_path, environment=variables)
    assert loaded.profile == "production"
    assert loaded.settings.kafka.bootstrap == "variable:9092"
    flags = {"kafka.bootstrap": "flag:9092"}
    loaded = load(tmp_path, environment=variables, flags=flags)
    assert loaded.settings.kafka.bootstrap == "flag:9092"


def test_all_problems_of_file_profiles_environment_and_flags_come_at_once(tmp_path):
    with pytest.raises(ConfigurationError) as caught:
        load(
            tmp_path,
            '[kafka]\nbootstarp = "x:1"\n[profiles.other.spark]\nmastr = "yarn"\n',
            environment={"PENSTOCK_KAFKA_BROKERS": "two", "PENSTOCK_KAFAK_HEAP_MB": "1"},
            flags={"dev.restart_backoff": "soon"},
        )
    assert caught.value.detail.split("\n  ") == [
        "penstock.toml:2: 'kafka.bootstarp' is not a setting; did you mean 'kafka.bootstrap'?",
        "PENSTOCK_KAFAK_HEAP_MB: 'kafak.heap_mb' is not a setting; did you mean 'kafka.heap_mb'?",
        "PENSTOCK_KAFKA_BROKERS: kafka.brokers: 'two' is not a number",
        (
            "--set dev.restart_backoff: dev.restart_backoff: 'soon' is not a duration; "
            "write 500ms, 30s, 10m, 1h30m or 7d"
        ),
        "penstock.toml:4: 'spark.mastr' is not a setting; did you mean 'spark.master'?",
    ]


def test_variables_that_are_not_settings_are_left_alone(tmp_path):
    variables = {
        "PENSTOCK_CACHE": "/x",
        "PENSTOCK_FAILPOINT": "y",
        "HOME": "/",
        "PENSTOCK_HOME": "",
    }
    assert load(tmp_path, environment=variables).places.home == tmp_path / ".penstock"


def test_an_unknown_profile_is_refused_with_the_nearest_name(tmp_path):
    with pytest.raises(ConfigurationError, match="did you mean 'production'") as caught:
        load(tmp_path, '[profiles.production]\nhome = "x"\n', profile="prodution")
    assert caught.value.code == "config.unknown-profile"
    with pytest.raises(ConfigurationError, match="no profile 'x'"):
        load(tmp_path, "", profile="x")


def test_a_file_that_is_not_toml_says_where(tmp_path):
    with pytest.raises(ConfigurationError, match=r"penstock\.toml is not TOML.*line 2") as caught:
        load(tmp_path, "[kafka]\nbootstrap = x:1\n")
    assert caught.value.code == "config.syntax"


def test_a_named_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"other\.toml cannot be read: No such file"):
        load(tmp_path, file=Path("other.toml"))
    with pytest.raises(ConfigurationError, match=r"other\.toml cannot be read"):
        load(tmp_path, environment={"PENSTOCK_CONFIG": "other.toml"})


def test_profiles_must_be_tables(tmp_path):
    with pytest.raises(ConfigurationError, match=r"penstock\.toml:1: 'profiles' contains"):
        load(tmp_path, 'profiles = "production"\n')


def test_lines_are_found_below_tables_dotted_keys_and_long_values():
    text = 'a.b = 1\n[t."x.y"]\nlong = [\n  1,\n]\nshort = "v" # why\n'
    assert line_numbers(text) == {
        ("a", "b"): 1,
        ("t", "x.y"): 2,
        ("t", "x.y", "long"): 3,
        ("t", "x.y", "short"): 6,
    }


@pytest.mark.parametrize(
    "text",
    [
        '[kafka]\nsasl_password = "hush"\n',
        '[profiles.other.kafka]\ntls_key_password = "hush"\n',
        '[spark.options]\n"spark.hadoop.fs.s3a.secret.key" = "hush"\n',
        '[spark.options]\n"spark.driver.extraJavaOptions" = "-Dhttp.proxyPassword=hush"\n',
    ],
)
def test_a_file_with_secrets_that_others_may_read_is_refused(tmp_path, text):
    file = tmp_path / "penstock.toml"
    file.write_text(text)
    file.chmod(0o640)
    with pytest.raises(ConfigurationError) as caught:
        load_configuration(directory=tmp_path, environment={})
    assert caught.value.code == "config.readable"
    assert "penstock.toml:2" in caught.value.detail
    assert caught.value.hint.startswith(f"chmod 600 {file}")
    assert "hush" not in str(caught.value)
    file.chmod(0o600)
    assert "hush" not in repr(load_configuration(directory=tmp_path, environment={}))


def test_a_file_without_secrets_may_be_read_by_all(tmp_path):
    (tmp_path / "penstock.toml").write_text('[kafka]\nsasl_password = ""\nheap_mb = 600\n')
    (tmp_path / "penstock.toml").chmod(0o644)
    assert load_configuration(directory=tmp_path, environment={}).settings.kafka.heap_mb == 600
