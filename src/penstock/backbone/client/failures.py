"""Turn the errors of the Kafka client into the families of ``penstock.errors``.

The family says who must act: an unreachable cluster may come back (transient), a refused login
will not (configuration), a record that is too large is the record's own trouble (data).
"""
# ruff: noqa: SLF001 - the client's own error names begin with an underscore

from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import (
    ConfigurationError,
    DataError,
    FencedError,
    PenstockError,
    TransientError,
)

__all__ = ["beyond_end", "cause", "failure", "trimmed", "unreachable"]


@dataclass(frozen=True, slots=True)
class _Meaning:
    family: type[ConfigurationError | DataError | FencedError | TransientError]
    code: str
    text: str
    hint: str = ""


_UNREACHABLE = _Meaning(
    TransientError, "kafka.unreachable", "Kafka at {bootstrap} does not answer", "penstock doctor"
)
_DENIED = _Meaning(
    ConfigurationError,
    "kafka.denied",
    "Kafka at {bootstrap} refused the login or the permission",
    "penstock config explain kafka.security_protocol",
)
_MISSING = _Meaning(
    ConfigurationError,
    "topic.missing",
    "the topic or partition does not exist on {bootstrap}",
    "penstock topics list",
)
_TOO_LARGE = _Meaning(DataError, "data.too-large", "the record is too large")
_BAD_RECORD = _Meaning(
    DataError, "data.refused", "the broker refuses it, or another record in the same batch"
)
_FENCED = _Meaning(FencedError, "kafka.fenced", "another worker took over")
_MOVED = _Meaning(TransientError, "kafka.rebalanced", "the partitions now belong to other workers")
_REFUSED = _Meaning(
    ConfigurationError, "kafka.refused", "Kafka at {bootstrap} refused it", "penstock doctor"
)
_UNKNOWN = _Meaning(TransientError, "kafka.failed", "it failed")

_MEANINGS = {
    KafkaError._ALL_BROKERS_DOWN: _UNREACHABLE,
    KafkaError._RESOLVE: _UNREACHABLE,
    KafkaError._TIMED_OUT: _UNREACHABLE,
    KafkaError._TIMED_OUT_QUEUE: _UNREACHABLE,
    KafkaError._MSG_TIMED_OUT: _UNREACHABLE,
    KafkaError._TRANSPORT: _UNREACHABLE,
    KafkaError.BROKER_NOT_AVAILABLE: _UNREACHABLE,
    KafkaError.NETWORK_EXCEPTION: _UNREACHABLE,
    KafkaError.REQUEST_TIMED_OUT: _UNREACHABLE,
    KafkaError._AUTHENTICATION: _DENIED,
    KafkaError._SSL: _DENIED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _DENIED,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _DENIED,
    KafkaError.SASL_AUTHENTICATION_FAILED: _DENIED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _DENIED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _DENIED,
    KafkaError._UNKNOWN_PARTITION: _MISSING,
    KafkaError._UNKNOWN_TOPIC: _MISSING,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _MISSING,
    KafkaError.INVALID_MSG_SIZE: _TOO_LARGE,
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    KafkaError._INVALID_DIFFERENT_RECORD: _BAD_RECORD,
    KafkaError.INVALID_MSG: _BAD_RECORD,
    KafkaError.INVALID_RECORD: _BAD_RECORD,
    KafkaError.INVALID_TIMESTAMP: _BAD_RECORD,
    KafkaError._FENCED: _FENCED,
    KafkaError.FENCED_INSTANCE_ID: _FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH: _FENCED,
    KafkaError.PRODUCER_FENCED: _FENCED,
    KafkaError._ASSIGNMENT_LOST: _MOVED,
    KafkaError.ILLEGAL_GENERATION: _MOVED,
    KafkaError.REBALANCE_IN_PROGRESS: _MOVED,
    KafkaError.UNKNOWN_MEMBER_ID: _MOVED,
    KafkaError._INVALID_ARG: _REFUSED,
    KafkaError.INVALID_CONFIG: _REFUSED,
    KafkaError.INVALID_GROUP_ID: _REFUSED,
    KafkaError.INVALID_PARTITIONS: _REFUSED,
    KafkaError.INVALID_REPLICATION_FACTOR: _REFUSED,
    KafkaError.INVALID_REQUEST: _REFUSED,
    KafkaError.INVALID_TRANSACTION_TIMEOUT: _REFUSED,
    KafkaError.NON_EMPTY_GROUP: _REFUSED,
    KafkaError.POLICY_VIOLATION: _REFUSED,
    KafkaError.TOPIC_EXCEPTION: _REFUSED,
    KafkaError.UNSUPPORTED_VERSION: _REFUSED,
}


def cause(error: KafkaException | KafkaError) -> KafkaError:
    """Return what an exception of the client carries; some calls give it as it is."""
    if isinstance(error, KafkaError):
        return error
    carried = error.args[0] if error.args else None
    return (
        carried if isinstance(carried, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(error))
    )


def failure(error: KafkaError, *, doing: str, bootstrap: str) -> PenstockError:
    """Return the error to raise; ``doing`` says what was tried: "creating topic 'words'"."""
    meaning = _MEANINGS.get(error.code(), _UNKNOWN)
    return meaning.family(
        f"{doing}: {meaning.text.format(bootstrap=bootstrap)}",
        code=meaning.code,
        detail=f"{error.str()} ({error.name()})",
        hint=meaning.hint,
    )


def unreachable(*, doing: str, bootstrap: str, reason: str) -> PenstockError:
    """Return the error for a cluster that does not answer, where the client does not say so."""
    return failure(KafkaError(KafkaError._TIMED_OUT, reason), doing=doing, bootstrap=bootstrap)


def trimmed(
    partition: tuple[str, int], *, wanted: int, low: int, group: str | None = None
) -> ConfigurationError:
    """Return the error for an offset whose record retention has deleted."""
    topic, number = partition
    who = f"group {group} stands at" if group else "the range starts at"
    return ConfigurationError(
        f"{topic}[{number}] was trimmed: {who} offset {wanted}, the oldest left is {low}",
        code="offset.trimmed",
        detail=f"the records of {low - wanted} offsets were deleted before they were read",
        hint=(
            "services.on_trimmed=skip continues without them and counts them;"
            " penstock reset starts again with what is left"
            if group
            else "start at the earliest record, without them"
        ),
    )


def beyond_end(
    partition: tuple[str, int], *, wanted: int, high: int, group: str | None = None
) -> ConfigurationError:
    """Return the error for an offset that the log has not reached, or has lost again."""
    topic, number = partition
    who = f"group {group} stands at" if group else "the range starts at"
    return ConfigurationError(
        f"{topic}[{number}] ends at offset {high}: {who} {wanted}",
        code="offset.beyond-end",
        detail="the topic was created again, or a broker has lost records" if group else "",
        hint=(
            "penstock reset starts again with the existing records"
            if group
            else f"penstock topics describe {topic}"
        ),
    )
