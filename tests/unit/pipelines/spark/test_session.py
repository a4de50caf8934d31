"""What a start of Spark keeps to, without starting it."""

import logging
import signal

import pytest
from pyspark.logger import PySparkLogger

from penstock.pipelines.spark.session import _QUIET, _interrupts_later, _quieten


def test_an_interrupt_waits_until_the_jvm_can_be_ended():
    done = []

    def start() -> None:
        with _interrupts_later():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_whoever_takes_interrupts_takes_them_afterwards_too():
    taken = []
    before = signal.signal(signal.SIGINT, lambda *_: taken.append("asked"))
    try:
        with _interrupts_later():
            signal.signal(signal.SIGINT, signal.default_int_handler)  # as PySpark does
        signal.raise_signal(signal.SIGINT)
        with _interrupts_later():
            signal.raise_signal(signal.SIGINT)
            assert taken == ["asked"]
    finally:
        signal.signal(signal.SIGINT, before)
    assert taken == ["asked", "asked"]


def test_traces_that_pyspark_logs_beside_raising_them_are_not_shown(capsys):
    before = {name: PySparkLogger.getLogger(name).level for name in _QUIET}
    try:
        _quieten()
        for name in _QUIET:
            # As PySpark logs them: with fields of its own, to a handler of its own.
            PySparkLogger.getLogger(name).exception("no such column", errorClass="UNRESOLVED")
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
    shown = capsys.readouterr()
    assert shown.out + shown.err == ""
