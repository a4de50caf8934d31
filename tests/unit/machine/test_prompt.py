"""The switch interval is short while questions are answered, and then what it was before."""

import asyncio
import sys
import threading
import time

from penstock.machine.peers.host import PeerHost
from penstock.machine.peers.prompt import QUICK_SECONDS, Prompt
from penstock.machine.peers.visitor import Visitor

SECRET = b"of the project, long enough"


def test_the_last_one_who_needs_short_turns_restores_what_was_before() -> None:
    usual, prompt = sys.getswitchinterval(), Prompt()
    prompt.hold()
    prompt.hold()
    assert sys.getswitchinterval() == QUICK_SECONDS
    prompt.release()
    assert sys.getswitchinterval() == QUICK_SECONDS
    prompt.release()
    assert sys.getswitchinterval() == usual


def test_a_host_takes_short_turns_from_its_first_question_to_a_while_after_the_last() -> None:
    usual = sys.getswitchinterval()
    found: list[float] = []

    async def answer(question: bytes) -> bytes:
        found.append(sys.getswitchinterval())
        return question

    async def ask(port: int) -> bytes:
        visitor = await Visitor.connect(f"127.0.0.1:{port}", SECRET)
        answered = await visitor.ask(b"?", seconds=30)
        await visitor.close()
        return answered

    with PeerHost(answer, host="127.0.0.1", secret=SECRET) as host:
        assert sys.getswitchinterval() == usual
        assert asyncio.run(ask(host.port)) == b"?"
        assert found == [QUICK_SECONDS]
        deadline, looking = time.monotonic() + 60, threading.Event()
        while sys.getswitchinterval() != usual:
            assert time.monotonic() < deadline
            looking.wait(0.05)
    with PeerHost(answer, host="127.0.0.1", secret=SECRET) as host:
        asyncio.run(ask(host.port))
    assert sys.getswitchinterval() == usual
