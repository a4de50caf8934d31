"""The pytest plugin loads in every run of an environment: it must cost nothing."""

import subprocess
import sys

import pytest

HEAVY = ("confluent_kafka", "pyspark", "pandas", "pyarrow", "penstock.backbone.topics.topics")


def test_loading_the_plugin_loads_neither_kafka_nor_spark():
    code = f"import sys, penstock.testing.fixtures; print([m for m in {HEAVY} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.strip() == "[]"


def test_the_markers_are_known(pytestconfig):
    markers = " ".join(pytestconfig.getini("markers"))
    assert "broker:" in markers
    assert "spark:" in markers


@pytest.mark.parametrize("name", ["kafka", "topic", "spark"])
def test_the_fixtures_are_there_for_every_test(request, name):
    assert request._fixturemanager.getfixturedefs(name, request.node)
