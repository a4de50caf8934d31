"""``python -m apps.anomaly simulate``: a fleet on the command line."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from apps.anomaly.devices.device import Pace
from apps.anomaly.devices.faults import FAULTS
from apps.anomaly.devices.fleet import Fleet, Ledger, Plan
from apps.anomaly.devices.recording import recorded
from apps.anomaly.devices.way import Trouble

__all__ = ["PlanError", "add_to", "play"]

SAYS_SECONDS = 5.0
MOST_DEVICES, MOST_RATE = 10_000, 100.0
MOST_SPEED, MOST_SECONDS, LAST_PORT = 1e9, 1e8, 65_535


class PlanError(Exception):
    """A fleet that cannot be, and why."""


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to others."""
    verb = verbs.add_parser("simulate", help="play devices, with faults and trouble on the way")
    number = partial(verb.add_argument, type=float, metavar="N")
    verb.add_argument("--host", default="127.0.0.1")
    verb.add_argument("--port", type=int, default=9100)
    verb.add_argument("--devices", type=int, default=100, help=f"how many, up to {MOST_DEVICES:,}")
    number("--rate", default=1.0, help="measurements a second, of each device")
    number("--seconds", default=0.0, help="how long; by default until Ctrl-C")
    number("--local", default=0.0, help="share of devices that score by themselves")
    verb.add_argument(
        "--fault", action="append", default=[], metavar="NAME[:COUNT]", help=", ".join(FAULTS)
    )
    number("--fault-after", default=60.0, help="seconds until faults begin")
    number("--fault-takes", default=20.0, help="seconds until a fault is at its worst")
    for name, text in (
        ("late", "share of lines that come late"),
        ("disorder", "share of lines in another order"),
        ("double", "share of lines that come twice"),
        ("bursts", "share of seconds in which nothing comes through, and then everything"),
        ("skew", "seconds by which clocks are off, at most"),
    ):
        number(f"--{name}", default=0.0, help=text)
    verb.add_argument("--replay", type=Path, metavar="FILE", help="play a recording: CSV, also .gz")
    number("--speed", default=1.0, help="how many times as fast")
    verb.add_argument("--ledger", type=Path, help="write what is done to devices and by them here")
    verb.add_argument("--seed", type=int, default=1)
    verb.set_defaults(run=_simulate)


def _simulate(given: argparse.Namespace) -> None:
    faults = [_fault(text) for text in given.fault]
    _check(given)
    plan = Plan(
        host=given.host,
        port=given.port,
        devices=given.devices,
        rate=given.rate,
        local=given.local,
        seconds=given.seconds,
        pace=Pace(fault=given.fault_takes),
        trouble=Trouble(
            late=given.late,
            disorder=given.disorder,
            double=given.double,
            bursts=given.bursts,
            skew_seconds=given.skew,
        ),
        seed=given.seed,
    )
    played = recorded(given.replay, speed=given.speed) if given.replay else None
    ledger = Ledger(given.ledger)
    fleet = Fleet(plan, ledger=ledger, recordings=played)
    with suppress(KeyboardInterrupt):
        asyncio.run(play(fleet, faults, after=given.fault_after))
    ledger.close()
    print(_said(fleet), file=sys.stderr)


async def play(fleet: Fleet, faults: list[tuple[str, int]], *, after: float) -> None:
    """Run a fleet; after a while let faults begin on its last devices, one device each."""
    names = [name for name, count in faults for _ in range(count)]
    running = asyncio.ensure_future(fleet.run())
    failing = asyncio.ensure_future(_fail(fleet, names, after))
    try:
        while not running.done():
            await asyncio.wait((running,), timeout=SAYS_SECONDS)
            print(_said(fleet), file=sys.stderr)
        await running
    finally:
        failing.cancel()
        running.cancel()


async def _fail(fleet: Fleet, names: list[str], after: float) -> None:
    await asyncio.sleep(after)
    for device, name in zip(reversed(fleet.devices), names, strict=False):
        fleet.fail(device, name)


def _check(given: argparse.Namespace) -> None:
    """Refuse what no fleet can be."""
    shares = ("local", "late", "disorder", "double", "bursts")
    limits = [
        ("devices", 1, MOST_DEVICES),
        ("rate", 0.001, MOST_RATE),
        ("port", 1, LAST_PORT),
        ("speed", 0.001, MOST_SPEED),
        *((name, 0, 1) for name in shares),
        *((name, 0, MOST_SECONDS) for name in ("seconds", "skew", "fault_after")),
        ("fault_takes", 0.1, MOST_SECONDS),
    ]
    for name, least, most in limits:
        if not least <= getattr(given, name) <= most:
            shown = name.replace("_", "-")
            raise PlanError(f"--{shown} {getattr(given, name):g}: it is from {least:g} to {most:g}")


def _fault(text: str) -> tuple[str, int]:
    name, _, count = text.partition(":")
    if name not in FAULTS or not (count or "1").isdecimal():
        raise PlanError(f"no such fault: {text}; there are {', '.join(FAULTS)}")
    return name, int(count or "1")


def _said(fleet: Fleet) -> str:
    done = sum(len(device.did) for device in fleet.devices.values())
    away = f": {fleet.trouble}" if fleet.trouble and not fleet.connected else ""
    return (
        f"{fleet.connected:,} of {len(fleet.devices):,} devices connected, "
        f"{fleet.bytes_sent / 1e6:.2f} MB sent, {done} commands done{away}"
    )
