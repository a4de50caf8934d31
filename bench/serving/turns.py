"""Questions to a process whose interpreter is busy: with short turns of its threads, and without.

``python bench/serving/turns.py [--seconds N]`` (20 seconds). One thread works without a pause, as a
worker that handles records does; another process asks 2,000 questions a second. In turn, so that
both meet the same machine; medians of three rounds, and how much the busy thread got done.
"""

import argparse
import asyncio
import json
import runpy
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

from penstock.machine.peers import prompt
from penstock.machine.peers.host import PeerHost
from penstock.machine.peers.visitor import Visitor

SECRET = b"only for this bench, and long enough"
RATE = 2000.0
ROUNDS = 3
RECORD = b'{"device":"device-1","celsius":21.5,"place":"on the roof"}'


async def answer(question: bytes) -> bytes:
    return b'{"value":21.5}' + question


async def ask(port: int, seconds: float) -> list[float]:
    """Ask at a steady rate; return how long each answer took from the moment it was due."""
    visitor = await Visitor.connect(f"127.0.0.1:{port}", SECRET)
    took: list[float] = []
    began = time.monotonic()

    async def one(due: float) -> None:
        await visitor.ask(b"device-1", seconds=60)
        took.append(time.monotonic() - due)

    async with asyncio.TaskGroup() as tasks:
        for number in range(int(RATE * seconds)):
            due = began + number / RATE
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            tasks.create_task(one(due))
    await visitor.close()
    return sorted(took)


def measure(turn: float, seconds: float) -> dict[str, float]:
    prompt.QUICK_SECONDS = turn
    stop, done = threading.Event(), [0]

    def work() -> None:
        while not stop.is_set():
            for _ in range(100):
                json.loads(RECORD)
            done[0] += 100

    busy = threading.Thread(target=work)
    with PeerHost(answer, host="127.0.0.1", secret=SECRET) as host:
        busy.start()
        before, began = done[0], time.monotonic()
        command = [sys.executable, __file__, "--port", str(host.port), "--seconds", str(seconds)]
        asked = subprocess.run(command, check=True, capture_output=True)
        rate = (done[0] - before) / (time.monotonic() - began)
        stop.set()
        busy.join()
    took = json.loads(asked.stdout)
    points = {f"p{point} ms": took[len(took) * point // 100] * 1000 for point in (50, 99)}
    return {**points, "work/s": rate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.port:
        print(json.dumps(asyncio.run(ask(arguments.port, arguments.seconds))))
        return
    usual, quick = sys.getswitchinterval(), prompt.QUICK_SECONDS
    found: dict[float, list[dict[str, float]]] = {usual: [], quick: []}
    for _ in range(ROUNDS):
        for turn, rounds in found.items():
            rounds.append(measure(turn, arguments.seconds))
    for turn, rounds in found.items():
        medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
        shown = "  ".join(f"{name} {value:10,.2f}" for name, value in medians.items())
        print(f"turns of {turn * 1000:4.1f} ms:  {shown}", flush=True)


if __name__ == "__main__":
    main()
