import os
import signal

import pytest

from penstock.cli.stopping import stop_on_signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_first_signal_asks_and_the_second_interrupts(number, code):
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop.event.is_set()
        os.kill(os.getpid(), number)
        assert stop.event.wait(60)
        assert stop.exit_code == code
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
