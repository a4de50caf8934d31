"""What the Kafka client reports, in our families."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.backbone.client.failures import beyond_end, cause, failure, trimmed, unreachable
from penstock.errors import ConfigurationError, DataError, FencedError, TransientError


@pytest.mark.parametrize(
    ("code", "family", "name"),
    [
        (KafkaError._ALL_BROKERS_DOWN, TransientError, "kafka.unreachable"),
        (KafkaError._MSG_TIMED_OUT, TransientError, "kafka.unreachable"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, ConfigurationError, "kafka.denied"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError, "kafka.denied"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ConfigurationError, "topic.missing"),
        (KafkaError.MSG_SIZE_TOO_LARGE, DataError, "data.too-large"),
        (KafkaError.INVALID_RECORD, DataError, "data.refused"),
        (KafkaError.PRODUCER_FENCED, FencedError, "kafka.fenced"),
        (KafkaError.ILLEGAL_GENERATION, TransientError, "kafka.rebalanced"),
        (KafkaError.INVALID_REPLICATION_FACTOR, ConfigurationError, "kafka.refused"),
        (KafkaError.NOT_ENOUGH_REPLICAS, TransientError, "kafka.failed"),
    ],
)
def test_each_error_has_the_family_of_who_must_act(code, family, name):
    error = failure(KafkaError(code), doing="trying", bootstrap="host:9092")
    assert type(error) is family
    assert error.code == name
    assert error.message.startswith("trying: ")


def test_an_unreachable_cluster_is_named_with_its_address_and_the_next_command():
    error = unreachable(doing="listing topics", bootstrap="host:9092", reason="no answer in 3s")
    assert error.message == "listing topics: Kafka at host:9092 does not answer"
    assert "no answer in 3s" in error.detail
    assert error.hint == "penstock doctor"


def test_the_clients_own_words_are_kept_as_detail():
    error = failure(
        KafkaError(KafkaError.POLICY_VIOLATION, "at most 3"), doing="creating x", bootstrap="b"
    )
    assert error.detail == "at most 3 (POLICY_VIOLATION)"


def test_an_exception_without_an_error_in_it_still_has_a_cause():
    assert cause(KafkaException("odd")).code() == KafkaError.UNKNOWN
    assert cause(KafkaException(KafkaError(KafkaError._TIMED_OUT))).code() == KafkaError._TIMED_OUT


def test_a_trimmed_offset_names_topic_partition_both_offsets_and_the_way_out():
    error = trimmed(("words", 3), wanted=10, low=25, group="app.count")
    assert error.code == "offset.trimmed"
    assert error.message == (
        "words[3] was trimmed: group app.count stands at offset 10, the oldest left is 25"
    )
    assert "15 offsets" in error.detail
    assert "services.on_trimmed=skip" in error.hint
    assert "penstock reset" in error.hint
    assert "earliest" in trimmed(("words", 3), wanted=1, low=2).hint


def test_an_offset_beyond_the_end_names_both_offsets():
    error = beyond_end(("words", 0), wanted=900, high=3, group="g")
    assert error.code == "offset.beyond-end"
    assert "ends at offset 3" in error.message
    assert "900" in error.message
    assert "penstock reset" in error.hint
    assert "describe words" in beyond_end(("words", 0), wanted=9, high=3).hint
