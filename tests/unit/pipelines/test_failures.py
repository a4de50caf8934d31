"""What Spark raises becomes what a person can act on; no trace of the JVM reaches them."""

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from penstock import App, record
from penstock.core.graph import Pipeline
from penstock.errors import ConfigurationError, DefinitionError, FencedError, TransientError
from penstock.pipelines.failures import REFUSED_OUTPUT, of_definition, of_query

TRACE = "\n\tat org.apache.spark.sql.Foo.bar(Foo.scala:1)\nCaused by: "
TAKEN_OVER = "pipeline.taken-over"
_WORKER = (
    "[FOREACH_BATCH] failed\nTraceback (most recent call last):\n  File x, line 1\n"
    "cimpl.KafkaException: KafkaError{{code}}\n\nThe above exception was the direct cause\n"
    "penstock.errors.{}\n\n\tat org.apache.spark.api.python.Reader(Reader.scala:1)\n"
)


@record(key="word")
class Word:
    word: str


@pytest.fixture
def pipeline() -> Pipeline:
    words = App("failures").stream("words", Word)
    return Pipeline(name="copy", function=lambda frame: frame, reads=(words,), writes=words)


@pytest.mark.parametrize(
    ("text", "family", "code"),
    [
        (f"Query failed{TRACE}[KAFKA_DATA_LOSS.X] gone", ConfigurationError, "offset.trimmed"),
        (
            f"Query failed{TRACE}java.io.IOException: No space left on device",
            ConfigurationError,
            "disk.full",
        ),
        (f"Query failed{TRACE}TimeoutException: no node", TransientError, "kafka.unreachable"),
        (f"Query failed{TRACE}LeaderNotAvailableException", TransientError, "kafka.unreachable"),
        (
            f"Query failed{TRACE}[CONCURRENT_STREAM_LOG_UPDATE] Multiple streaming jobs detected",
            FencedError,
            "pipeline.taken-over",
        ),
        (_WORKER.format("FencedError: begin 'a': taken [kafka.fenced]"), FencedError, TAKEN_OVER),
        (
            _WORKER.format("TransientError: send: Kafka does not answer [kafka.unreachable]"),
            TransientError,
            "kafka.unreachable",
        ),
        (
            _WORKER.format("ConfigurationError: send: no [kafka.denied]\n  said so"),
            ConfigurationError,
            "kafka.denied",
        ),
        (_WORKER.format("DataError: odd [data.other]"), TransientError, "pipeline.failed"),
        (f"Query failed{TRACE}something else", TransientError, "pipeline.failed"),
    ],
)
def test_the_end_of_a_query_names_its_cause_and_who_must_act(pipeline, text, family, code):
    error = of_query(StreamingQueryException(text), pipeline)

    assert isinstance(error, family)
    assert error.code == code
    assert "pipeline 'copy' stopped" in error.message
    assert "\tat " not in str(error)


def test_an_output_that_the_stream_would_refuse_is_the_authors_to_mend(pipeline):
    text = f"[USER_RAISED_EXCEPTION] {REFUSED_OUTPUT}word must be text and is null SQLSTATE: P0001{TRACE}x"

    error = of_query(StreamingQueryException(text), pipeline)

    assert isinstance(error, DefinitionError)
    (problem,) = error.problems
    assert problem.message.endswith("words refuses: word must be text and is null")


def test_a_record_that_kafka_refuses_is_the_authors_to_mend(pipeline):
    said = (
        "DataError: sending 9 bytes to words with key 'a': the record is too large [data.too-large]"
    )
    error = of_query(StreamingQueryException(_WORKER.format(said)), pipeline)
    assert isinstance(error, DefinitionError)
    (problem,) = error.problems
    assert "words refuses: sending 9 bytes to words with key 'a'" in problem.message


def test_a_plan_that_spark_refuses_is_shown_without_the_plan(pipeline):
    error = of_definition(
        AnalysisException(
            "[UNRESOLVED_COLUMN] no column `wrod`. SQLSTATE: 42703;\n'Project ['wrod]\n+- x"
        ),
        pipeline,
    )

    assert isinstance(error, DefinitionError)
    (problem,) = error.problems
    assert problem.code == "pipeline.plan"
    assert "Project" not in problem.message


def test_what_the_function_itself_raises_is_named(pipeline):
    error = of_definition(ZeroDivisionError("division by zero"), pipeline)

    assert "ZeroDivisionError: division by zero" in str(error)


def test_a_disk_that_is_full_at_the_start_is_no_mistake_of_the_author(pipeline):
    error = of_definition(RuntimeError("java.io.IOException: No space left on device"), pipeline)

    assert isinstance(error, ConfigurationError)
    assert error.code == "disk.full"
    assert "does not start" in error.message
