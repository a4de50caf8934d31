"""What Spark advises in a refusal is said as a pipeline's author can do it."""

import pytest
from pyspark.errors import AnalysisException

from penstock import App, record
from penstock.core.graph.parts import Pipeline
from penstock.errors import ConfigurationError, Problem
from penstock.pipelines.spark.refusals import refusal

AGGREGATION = (
    "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append. This "
    "output mode is not supported for streaming aggregations without watermark on streaming "
    "DataFrames/DataSets. SQLSTATE: 42KDE;\n~Aggregate [id#17]\n"
)
DOUBLES = (
    "dropDuplicatesWithinWatermark is not supported on streaming DataFrames/DataSets without "
    "watermark;\n~CollectMetrics wrong.m20, [count(1) AS written#35L], 11\n"
)
JOIN = (
    "Stream-stream LeftOuter join between two streaming DataFrame/Datasets is not supported "
    "without a watermark in the join keys, or a watermark on the nullable side and an appropriate "
    "range condition;\n~Join LeftOuter, (id#17 = id#45)\n"
)


@record(key="word")
class Word:
    word: str


@pytest.fixture
def pipeline() -> Pipeline:
    words = App("refusals").stream("words", Word)
    return Pipeline(name="copy", function=lambda frame: frame, reads=(words,), writes=words)


def problem_of(text: str, pipeline: Pipeline) -> Problem:
    (problem,) = refusal(AnalysisException(text), pipeline).problems  # type: ignore[attr-defined]
    return problem


def test_a_function_that_runs_its_input_is_told_to_return_it(pipeline):
    text = (
        "Queries with streaming sources must be executed with writeStream.start(), or from a "
        "streaming table or flow definition within a Spark Declarative Pipeline.;\nkafka"
    )
    problem = problem_of(text, pipeline)
    assert problem.code == "pipeline.plan"
    assert problem.message == (
        "pipeline 'copy': the function starts a query over its input, but it may only build a plan"
    )
    assert "no collect(), count(), show()" in problem.hint


@pytest.mark.parametrize(
    ("text", "hint"), [(AGGREGATION, "write a table"), (DOUBLES, "disorder="), (JOIN, "both")]
)
def test_want_of_a_watermark_is_a_want_of_disorder_and_no_plan_is_shown(pipeline, text, hint):
    problem = problem_of(text, pipeline)
    assert hint in problem.hint
    assert "~" not in problem.message
    assert "pipeline 'copy': " in problem.message


def test_other_refusals_stay_as_they_are(pipeline):
    found = problem_of("[UNRESOLVED_COLUMN] no column `n`", pipeline)
    assert (found.message, found.hint) == ("pipeline 'copy': [UNRESOLVED_COLUMN] no column `n`", "")
    own = ConfigurationError("it is away", code="some.code")
    assert refusal(own, pipeline) is own
