"""The shared broker and the shared Spark, once one test has lost them."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

TESTS = """
import os
import signal
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from py4j.protocol import Py4JError

from penstock.machine.process.ownedprogram import KeptProgram

def test_that_takes_all_memory_of_spark(spark):
    gateway = spark.sparkContext._gateway
    # The answer, or the connection for it, is cut off.
    with suppress(Py4JError, OSError):
        gateway.new_array(gateway.jvm.long, 1 << 30)
    gateway.proc.wait(60)

def test_that_needs_spark(spark):
    raise AssertionError("it was run")

def test_that_loses_the_broker(kafka):
    (directory,) = Path(tempfile.gettempdir()).glob("penstock-broker-*/node-1")
    broker = KeptProgram(directory, grace=timedelta())
    os.kill(broker.pid(), signal.SIGKILL)
    broker.wait_until_stopped(timeout=timedelta(seconds=60))

def test_that_needs_the_broker(topic):
    raise AssertionError("it was run")

def test_that_needs_neither():
    pass
"""


def test_whoever_needs_what_an_earlier_test_has_lost_fails_at_once_and_says_so(tmp_path):
    (tmp_path / "test_losing.py").write_text(TESTS)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert "it was run" not in run.stdout, run.stdout
    assert "lost what is shared: Spark's JVM has ended with status 3" in run.stdout, run.stdout
    assert "OutOfMemoryError: Java heap space" in run.stdout, run.stdout
    assert "lost what is shared: the embedded broker in" in run.stdout, run.stdout
    assert "3 passed" in run.stdout, run.stdout
