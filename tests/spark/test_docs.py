"""The guide to pipelines is true: its functions run on Spark and give what it says."""

import runpy
import sys
import types
from pathlib import Path

import pytest
from pyspark import cloudpickle

ROOT = Path(__file__).parents[2]
run_page = runpy.run_path(str(ROOT / "tests" / "unit" / "test_docs.py"))["run_page"]


@pytest.fixture
def module(spark, tmp_path):
    created = types.ModuleType("docs_pipelines")
    created.__dict__.update(__file__=str(tmp_path / "shop.py"), spark=spark)
    sys.modules[created.__name__] = created
    # There is no file that the workers could import it from.
    cloudpickle.register_pickle_by_value(created)
    yield created
    cloudpickle.unregister_pickle_by_value(created)
    del sys.modules[created.__name__]


def test_the_python_of_the_guide_to_pipelines_runs_and_gives_what_it_says(module, spark, tmp_path):
    assert run_page(ROOT / "docs" / "pipelines.md", module) > 3
    assert run_page(ROOT / "docs" / "pipeline-recipes.md", module) > 3
    given = module.frame(spark, [(str(each), "ann", each) for each in range(9)])
    known = spark.createDataFrame([("ann", "Rome")], "customer string, city string")
    paid = spark.createDataFrame([], "order string, at timestamp")
    assert module.by_hour(given, known).collect()[0].orders == 9
    assert module.settle(given, paid).count() == 9
    # Relative paths are below the directory that the JVM was started in.
    module.MODEL, rates = str(tmp_path / "model"), str(tmp_path / "rates")
    assert module.fit(given).collect()[0].error > 0
    assert module.expect(given).count() == 9
    assert module.to_large(given).count() + module.to_small(given).count() == 9
    known.write.parquet(rates)
    assert module.with_rates(given, rates).count() == 9
