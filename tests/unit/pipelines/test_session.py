"""What a start of Spark keeps to, without starting it."""

import signal

import pytest

from penstock.pipelines.session import _interrupts_later


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
