from datetime import timedelta

import pytest

from penstock.core.settings.configuration import GivenValue, Layer, LayerName, resolve
from penstock.core.settings.keys import find_key, known_keys, read_value, shown, variable_of
from penstock.core.settings.settings import Secret, Settings
from penstock.errors import ConfigurationError

HIDDEN = "hunter2"


def layer(name: LayerName, **given: object) -> Layer:
    return Layer(
        name,
        {key.replace("__", "."): GivenValue(value, f"{name}!") for key, value in given.items()},
    )


def problems(*layers: Layer, unused: tuple[Layer, ...] = ()) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        resolve(layers, unused=unused)
    assert caught.value.code == "config.invalid"
    return caught.value.detail.split("\n  ")


def test_without_layers_every_key_has_its_default():
    assert resolve([]).settings == Settings()


def test_every_key_has_a_help_text_and_a_variable_of_its_own():
    keys = known_keys()
    assert all(key.help for key in keys.values())
    assert len({variable_of(name) for name in keys}) == len(keys)


def test_a_later_layer_wins_and_remembers_what_it_overrode():
    configuration = resolve(
        [
            layer("file", kafka__bootstrap="file:9092"),
            layer("profile", kafka__bootstrap="profile:9092"),
            layer("environment", kafka__bootstrap="variable:9092"),
            layer("flag", kafka__bootstrap="flag:9092"),
        ]
    )
    found = configuration.explain("kafka.bootstrap")
    assert configuration.settings.kafka.bootstrap == "flag:9092"
    assert (found.layer, found.where) == ("flag", "flag!")
    assert [(past.layer, past.value) for past in found.overrode] == [
        ("environment", "variable:9092"),
        ("profile", "profile:9092"),
        ("file", "file:9092"),
        ("default", "embedded"),
    ]


def test_values_are_read_as_the_types_of_their_keys():
    settings = resolve(
        [
            layer(
                "file",
                kafka__request_timeout="5s",
                kafka__max_message_bytes="64MiB",
                kafka__brokers="3",
                kafka__sasl_password=HIDDEN,
                services__queued_bytes=1024,
                home="elsewhere",
            )
        ]
    ).settings
    assert settings.kafka.request_timeout == timedelta(seconds=5)
    assert settings.kafka.max_message_bytes == 64 << 20
    assert settings.kafka.brokers == 3
    assert settings.kafka.sasl_password.reveal() == HIDDEN
    assert settings.services.queued_bytes == 1024
    assert settings.home == "elsewhere"


def test_a_wrong_value_is_a_problem_that_says_where_and_why():
    assert problems(
        layer(
            "file",
            kafka__request_timeout=5,
            kafka__heap_mb="big",
            kafka__brokers=2,
            kafka__bootstrap=9092,
            kafka__max_message_bytes="32 potatoes",
            services__poll_batch=0,
            services__stop_timeout="-1s",
            dev__status_interval="0s",
        )
    ) == [
        "file!: kafka.request_timeout: 5 has no unit; write 500ms, 30s or 10m",
        "file!: kafka.heap_mb: 'big' is not a number",
        "file!: kafka.brokers: 2 is not one of 1, 3",
        "file!: kafka.bootstrap: 9092 is not a text; put it in quotes",
        (
            "file!: kafka.max_message_bytes: '32 potatoes' has the unit 'potatoes'; "
            "known are B, KiB, MiB, GiB, TiB, kB, MB, GB, TB"
        ),
        "file!: services.poll_batch: 0 is too small",
        "file!: services.stop_timeout: '-1s' is not a duration; write 500ms, 30s, 10m, 1h30m or 7d",
        "file!: dev.status_interval: '0s' is too small",
    ]


@pytest.mark.parametrize("memory", ["512m", "2g", "1G", "600000k", "1t"])
def test_the_heap_of_the_driver_is_a_size_that_java_takes(memory):
    settings = resolve([layer("file", spark__driver_memory=memory)]).settings
    assert settings.spark.driver_memory == memory


@pytest.mark.parametrize("memory", ["lots", "", "2", "2gb", "1.5g", "0g", "2 g", "-1g"])
def test_what_is_no_size_of_a_heap_is_refused_before_java_is(memory):
    assert problems(layer("file", spark__driver_memory=memory)) == [
        f"file!: spark.driver_memory: {memory!r} is not the size of a heap; write 512m or 2g"
    ]


def test_an_unknown_key_is_a_problem_with_the_nearest_name():
    assert problems(layer("file", kafka__bootstarp="x:1", kafak__brokers=1, hme="x")) == [
        "file!: 'kafka.bootstarp' is not a setting; did you mean 'kafka.bootstrap'?",
        "file!: 'kafak.brokers' is not a setting; did you mean 'kafka.brokers'?",
        "file!: 'hme' is not a setting or a section; did you mean 'home'?",
    ]


def test_a_section_given_as_a_value_is_told_apart_from_an_unknown_key():
    assert problems(layer("file", kafka="x:1")) == [
        "file!: 'kafka' is a section, not a setting; write [kafka] above its settings"
    ]


def test_the_problems_of_all_layers_come_at_once_unused_ones_included():
    found = problems(
        layer("file", home=1),
        layer("environment", kafka__brokers="two"),
        unused=(layer("profile", kafka__bootstarp=""),),
    )
    assert [text.partition(":")[0] for text in found] == ["file!", "environment!", "profile!"]


def test_the_entries_of_an_open_table_are_keys_of_their_own():
    configuration = resolve(
        [
            layer("file", **{"spark__options__spark.a": "1", "spark__options__spark.b": "1"}),
            layer("environment", spark__options='{"spark.b": "2"}'),
        ]
    )
    assert configuration.settings.spark.options == {"spark.a": "1", "spark.b": "2"}
    assert configuration.explain("spark.options.spark.b").layer == "environment"


@pytest.mark.parametrize("given", ["not json", "[1]", '{"a": 1}', 3])
def test_an_open_table_takes_names_to_texts_only(given):
    key = find_key("spark.options")
    assert key is not None
    with pytest.raises(ValueError, match="it is not a"):
        read_value(key, given)


def test_a_secret_never_shows_itself():
    configuration = resolve([layer("environment", kafka__sasl_password=HIDDEN)])
    found = configuration.explain("kafka.sasl_password")
    assert HIDDEN not in repr(configuration)
    assert shown(found.value) == "***"
    assert shown(Secret("")) == ""
    assert problems(layer("file", kafka__sasl_password=12345)) == [
        "file!: kafka.sasl_password: it is not a text; put it in quotes"
    ]


def test_a_secret_is_refused_as_a_flag():
    assert problems(layer("flag", kafka__sasl_password=HIDDEN)) == [
        (
            "flag!: kafka.sasl_password is a secret, and a flag is seen by everybody on the machine; "
            "set the variable PENSTOCK_KAFKA_SASL_PASSWORD"
        )
    ]


def test_explaining_what_is_no_key_suggests_one():
    with pytest.raises(ConfigurationError, match=r"did you mean 'kafka\.heap_mb'"):
        resolve([]).explain("kafka.heapmb")
