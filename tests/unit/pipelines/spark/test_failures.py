"""What Spark raises becomes what a person can act on; no trace of the JVM reaches them."""

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, StreamingQueryException

from penstock import App, record
from penstock.core.graph.parts import Pipeline
from penstock.errors import ConfigurationError, DefinitionError, FencedError, TransientError
from penstock.pipelines.spark.failures import REFUSED_OUTPUT, of_definition, of_query, of_session
from penstock.pipelines.spark.session import session_log

TRACE = "\n\tat org.apache.spark.sql.Foo.bar(Foo.scala:1)\nCaused by: "
TAKEN_OVER = "pipeline.taken-over"
_WORKER = (
    "[FOREACH_BATCH] failed\nTraceback (most recent call last):\n  File x, line 1\n"
    "cimpl.KafkaException: KafkaError{{code}}\n\nThe above exception was the direct cause\n"
    "penstock.errors.{}\n\n\tat org.apache.spark.api.python.Reader(Reader.scala:1)\n"
)

_LIBRARIES = "/home/me/.venv/lib/python3.11/site-packages"
_PROXY = (
    "An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):\n"
    f'  File "{_LIBRARIES}/py4j/clientserver.py", line 644, in _call_proxy\n'
    "    return_value = getattr(self.pool[obj_id], method)(*params)\n"
    "                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    f'  File "{_LIBRARIES}/pyspark/errors/exceptions/captured.py", line 257, in deco\n'
    "    raise converted from None\n"
    "pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the worker:\n"
)
_AS_A_TASK = "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: "
_AS_A_CAUSE = f"Job aborted{TRACE}org.apache.spark.api.python.PythonException: "
_USERS = """Traceback (most recent call last):
  File "/home/me/shop.py", line 32, in rate
    return ask(n)
           ~~~^^~
{}"""
_QUERY = "\n SQLSTATE: 38000\n=== Streaming Query ===\nIdentifier: [id = 1]\n"


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


@pytest.mark.parametrize("around", [_PROXY, _AS_A_TASK, _AS_A_CAUSE])
def test_what_a_users_function_raises_in_a_task_is_named_with_its_line(pipeline, around):
    text = around + _USERS.format("ZeroDivisionError: integer division or modulo by zero")

    error = of_query(StreamingQueryException(text + _QUERY), pipeline)

    said = "pipeline 'copy' stopped: ZeroDivisionError: integer division or modulo by zero"
    assert error.message == said
    assert error.code == "pipeline.failed"
    assert error.detail == "/home/me/shop.py:32, in rate"
    log = session_log()  # there is one if tests with a session ran in this process
    assert error.hint == (f"the whole trace is in {log}" if log else "")


def test_what_pyspark_has_against_a_users_result_is_said_without_its_trace(pipeline):
    text = (
        f"{_AS_A_TASK}Traceback (most recent call last):\n"
        f'  File "{_LIBRARIES}/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 490, in verify\n'
        "    raise PySparkRuntimeError(\n"
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [NAMES] Missing: n.\n"
    )

    error = of_query(StreamingQueryException(text + _QUERY), pipeline)

    assert error.message == "pipeline 'copy' stopped: PySparkRuntimeError: [NAMES] Missing: n."
    assert error.detail == ""


@pytest.mark.parametrize("around", [_PROXY, _AS_A_TASK, _AS_A_CAUSE])
@pytest.mark.parametrize(
    "library",
    ["", f'  File "{_LIBRARIES}/urllib3/connection.py", line 9, in connect\n    connect()\n'],
)
def test_a_connection_that_a_users_function_lacks_is_not_blamed_on_kafka(pipeline, around, library):
    text = _USERS.format(f"{library}ConnectionRefusedError: [Errno 111] Connection refused")

    error = of_query(StreamingQueryException(around + text + _QUERY), pipeline)

    assert error.code == "pipeline.failed"
    assert "ConnectionRefusedError: [Errno 111] Connection refused" in error.message
    assert error.detail == "/home/me/shop.py:32, in rate"


def test_a_kafka_client_called_below_a_users_line_is_still_kafkas(pipeline):
    client = f'  File "{_LIBRARIES}/confluent_kafka/admin.py", line 1, in ask\n'
    text = _USERS.format(f"{client}OSError: Connection refused")

    error = of_query(StreamingQueryException(_AS_A_TASK + text), pipeline)

    assert error.code == "kafka.unreachable"


def test_a_cause_of_the_jvms_below_a_python_trace_is_the_innermost(pipeline):
    text = (
        f"{_PROXY}py4j.protocol.Py4JJavaError: calling o1.collect{TRACE}java.io.IOException: torn\n"
    )

    error = of_query(StreamingQueryException(text), pipeline)

    assert error.message == "pipeline 'copy' stopped: java.io.IOException: torn"


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Error while sending or receiving"),
        Py4JError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
        ConnectionResetError(104, "Connection reset by peer"),
    ],
)
def test_the_end_of_sparks_process_is_told_as_that(error):
    named = of_session(error)
    assert isinstance(named, TransientError)
    assert named.code == "spark.gone"
    assert "its process was killed, or died" in named.message
    assert "spark.driver_memory" in named.hint


@pytest.mark.parametrize(
    "error", [Py4JError("Method foo does not exist"), ValueError("x"), OSError(5)]
)
def test_any_other_end_is_what_it_was(error):
    assert of_session(error) is error
