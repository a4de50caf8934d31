"""Turn Spark's exceptions into Penstock's errors: what, where, why, and what to do next."""

import re
import traceback

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, PySparkException

from penstock.core.graph.parts import Pipeline
from penstock.core.settings.masking import without_secrets
from penstock.errors import (
    ConfigurationError,
    DefinitionError,
    FencedError,
    PenstockError,
    Place,
    Problem,
    TransientError,
)
from penstock.pipelines.spark.pythontrace import Raised, raised_in
from penstock.pipelines.spark.session import session_log

__all__ = [
    "REFUSED_OUTPUT",
    "TRIMMED",
    "UNKNOWN",
    "first_lines",
    "of_definition",
    "of_query",
    "of_session",
]

REFUSED_OUTPUT = "refused output: "
"""What the error of a query begins with when a record of its output is not a good one."""

TRIMMED, UNKNOWN = "offset.trimmed", "pipeline.failed"
"""The codes of input that is gone, and of an end whose reason nobody here knows."""

_REASON_LIMIT = 600
_LOST = re.compile(r"KAFKA_DATA_LOSS|failOnDataLoss|OffsetOutOfRange", re.IGNORECASE)
_AWAY = re.compile(
    r"TimeoutException|DisconnectException|NetworkException|Connection (refused|reset)"
    r"|NotAvailableException|NotCoordinatorException|NotLeaderOrFollowerException"
    r"|UnknownTopicOrPartitionException"
)
_REAL_TIME = re.compile(r"REAL_TIME_MODE|real-time mode", re.IGNORECASE)
_DISK = re.compile(r"No space left on device")
_TAKEN_OVER = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming jobs detected")
_OURS = re.compile(
    r"penstock\.errors\.(?P<family>\w+): (?P<message>.+) \[(?P<code>[a-z][a-z.-]+)\]"
    r"(\n  (?!hint: )(?P<detail>.+))?(\n  hint: (?P<hint>.+))?"
)
"""One of our errors that a Python worker or a callback raised, as Spark passes it on."""
_BAD_RECORD = frozenset({"data.too-large", "data.refused"})
_CAUSED = "Caused by: "
_SQLSTATE = re.compile(r" SQLSTATE: \w{5}")


def of_definition(error: Exception, pipeline: Pipeline) -> PenstockError:
    """Return the error for the author: the user's function, or the plan it makes, is wrong."""
    if isinstance(error, PenstockError):
        return error
    if _DISK.search(str(error)):
        return _full(f"pipeline {pipeline.name!r} does not start", _innermost(str(error)))
    if isinstance(error, PySparkException):
        reason = first_lines(str(error))
        code = "pipeline.real-time" if _REAL_TIME.search(reason) else "pipeline.plan"
        hint = "use micro_batch()" if code == "pipeline.real-time" else ""
    else:
        reason = f"{type(error).__name__}: {error}"
        code, hint = "pipeline.raised", ""
    place = _place_in(error, pipeline)
    return DefinitionError((Problem(code, f"pipeline {pipeline.name!r}: {reason}", hint, place),))


def of_query(error: Exception, pipeline: Pipeline) -> PenstockError:
    """Return the error for the end of a running query, in the family of who must act."""
    text = str(error)
    if isinstance(error, AnalysisException) or _REAL_TIME.search(text):
        return of_definition(error, pipeline)
    if REFUSED_OUTPUT in text:
        return _refused(text[text.index(REFUSED_OUTPUT) + len(REFUSED_OUTPUT) :], pipeline)
    if _TAKEN_OVER.search(text):
        return _taken_over(pipeline, first_lines(text))
    what = f"pipeline {pipeline.name!r} stopped"
    if (known := _of_ours(text, pipeline) or _of_spark(text, what)) is not None:
        return known
    raised, reason = _raised(text), first_lines(_innermost(text))
    if raised is None and not isinstance(error, PySparkException):
        reason = f"{type(error).__name__}: {reason}"
    where = f"{raised.place}, in {raised.function}" if raised and raised.place else ""
    log = session_log()
    hint = f"the whole trace is in {log}" if log else ""
    return TransientError(f"{what}: {reason}", code=UNKNOWN, detail=where, hint=hint)


def of_session(error: Exception) -> Exception:
    """Return the error for the end of Spark itself; any other is returned as it is.

    Python talks to Spark's process over a socket of this machine, and hears only that nobody
    answers there any more.
    """
    unanswered = type(error) is Py4JError and "is empty" in str(error)
    gone = isinstance(error, Py4JNetworkError | ConnectionError) or unanswered
    if not gone or isinstance(error, Py4JJavaError):
        return error
    log = session_log()
    where = f"its log is {log}; " if log else ""
    return TransientError(
        "Spark has ended: its process was killed, or died",
        code="spark.gone",
        detail=f"{type(error).__name__}: {first_lines(str(error))}",
        hint=f"{where}if memory was short, set spark.driver_memory",
    )


def _of_spark(text: str, what: str) -> PenstockError | None:
    """Return our error for an error of Spark or its Kafka client; None if it is unknown."""
    reason = first_lines(_innermost(text))
    if _LOST.search(text):
        return ConfigurationError(
            f"{what}: its input was trimmed before it was read",
            code=TRIMMED,
            detail=reason,
            hint="keep records longer, or start again under another name",
        )
    if _DISK.search(text):
        return _full(what, reason)
    raised = _raised(text)
    # The network that a user's function lacks is not Kafka's.
    if _AWAY.search(text) and not (raised and raised.place):
        return TransientError(
            f"{what}: Kafka does not answer", code="kafka.unreachable", detail=reason
        )
    return None


def _full(what: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what}: the disk is full",
        code="disk.full",
        detail=first_lines(reason),
        hint="make room; the pipeline continues from its last commit",
    )


def _of_ours(text: str, pipeline: Pipeline) -> PenstockError | None:
    """Return one of our errors that Spark passed on as text; None if there is none."""
    # The last one: those above it are its causes.
    for found in reversed(list(_OURS.finditer(text))):
        message, code, detail = found["message"], found["code"], found["detail"] or ""
        hint = (found["hint"] or "").replace(" NAME", f" {pipeline.name}")
        match found["family"]:
            case "FencedError":
                return _taken_over(pipeline, message)
            case "DataError" if code in _BAD_RECORD:
                return _refused(f"{message} {detail}", pipeline)
            case "TransientError":
                family: type[TransientError | ConfigurationError] = TransientError
            case "ConfigurationError":
                family = ConfigurationError
            case _:
                continue
        said = f"pipeline {pipeline.name!r} stopped: {message}"
        return family(said, code=code, detail=detail, hint=hint)
    return None


def _refused(reason: str, pipeline: Pipeline) -> DefinitionError:
    said = f"pipeline {pipeline.name!r} would write a row that {pipeline.writes.name} refuses"
    hint = "filter such rows out, or change the declaration of the record"
    text = f"{said}: {first_lines(reason)}"
    return DefinitionError((Problem("pipeline.output", text, hint, pipeline.place),))


def _taken_over(pipeline: Pipeline, detail: str) -> FencedError:
    return FencedError(
        f"pipeline {pipeline.name!r} stopped: another run of it has taken over",
        code="pipeline.taken-over",
        detail=detail,
        hint="run only one of them, because they share a checkpoint",
    )


def _place_in(error: Exception, pipeline: Pipeline) -> Place | None:
    """Return the line of the user's function that the error came through."""
    file = pipeline.place.file if pipeline.place else None
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file
    ]
    if not frames:
        return pipeline.place
    return Place(frames[-1].filename, frames[-1].lineno or 0)


def _innermost(text: str) -> str:
    """Return the last cause in a trace of the JVM's or of Python's; what is above only wraps it."""
    if (raised := _raised(text)) is not None:
        return raised.said
    _, caused, last = text.rpartition(_CAUSED)
    return last.partition("\n")[0] if caused else text


def _raised(text: str) -> Raised | None:
    """Return the Python exception that is the last cause; None: it is one of the JVM's."""
    return raised_in(text.rpartition(_CAUSED)[2])


def first_lines(text: str) -> str:
    """Return the message without plans and stack traces."""
    kept = []
    for line in text.strip().splitlines():
        if line.startswith(("\tat ", "    at ", "JVM stacktrace", "==", "'", "+-", ";")):
            break
        if line.strip():
            kept.append(line.strip())
    return without_secrets(_SQLSTATE.sub("", " ".join(kept)))[:_REASON_LIMIT]
