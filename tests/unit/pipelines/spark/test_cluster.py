"""Masters that are not local: what they are given, and what is refused before anything starts."""

from dataclasses import replace

import pytest

from penstock import App, record
from penstock.core.settings.settings import LakeSettings, Settings, SparkSettings
from penstock.errors import ConfigurationError
from penstock.pipelines.spark.cluster import cluster_options, is_local, refuse_unshared


@record(key="word")
class Word:
    word: str


def _pipelines():
    app = App("example")
    words = app.stream("words", Word)
    copies = app.stream("copies", Word)
    kept = app.lake("kept", Word)
    app.pipeline(reads=words, writes=copies, name="copied")(lambda words: words)
    app.pipeline(reads=words, writes=kept, name="stored")(lambda words: words)
    return [app.graph.part("copied"), app.graph.part("stored")]


def _settings(master: str, **spark: str) -> Settings:
    return replace(Settings(), spark=replace(SparkSettings(), master=master, **spark))


@pytest.mark.parametrize("master", ["local[*]", "spark://127.0.0.1:7077", "spark://localhost:7077"])
def test_a_master_on_this_machine_may_use_its_directories(master):
    refuse_unshared(_settings(master), _pipelines())


@pytest.mark.parametrize("master", ["spark://head:7077", "k8s://https://10.0.0.1:6443", "yarn"])
def test_checkpoints_and_lake_on_one_machine_of_many_are_refused(master):
    with pytest.raises(ConfigurationError) as caught:
        refuse_unshared(_settings(master), _pipelines())
    assert caught.value.code == "spark.not-shared"
    assert caught.value.detail == "not set: spark.checkpoint_dir, lake.path"


def test_the_lake_is_asked_for_only_by_pipelines_that_use_it():
    settings = _settings("yarn", checkpoint_dir="/shared/checkpoints")
    copied, stored = _pipelines()
    refuse_unshared(settings, [copied])
    with pytest.raises(ConfigurationError, match="other machines"):
        refuse_unshared(settings, [stored])
    refuse_unshared(replace(settings, lake=LakeSettings(path="/shared/lake")), [stored])


def test_the_lake_is_asked_for_by_pipelines_that_read_a_history():
    app = App("example")
    words, copies = app.stream("words", Word), app.stream("copies", Word)
    app.pipeline(reads=app.archive(words).then_live, writes=copies, name="copied")(lambda it: it)
    with pytest.raises(ConfigurationError, match="other machines"):
        refuse_unshared(
            _settings("yarn", checkpoint_dir="/shared/checkpoints"), [app.graph.part("copied")]
        )


def test_the_driver_of_a_cluster_is_found_by_its_own_name_unless_all_is_on_one_machine():
    assert "spark.driver.host" not in cluster_options("spark://head:7077", ["a.jar"])
    options = cluster_options("spark://127.0.0.1:7077", ["a.jar", "b.jar"])
    assert options["spark.driver.host"] == "127.0.0.1"
    assert options["spark.jars"] == "a.jar,b.jar"
    assert not is_local("spark://127.0.0.1:7077")
