"""The door of devices, with real sockets: what is taken, answered and handed on."""

import asyncio
import functools
import json
import re
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from apps.anomaly.devices.device import Pace
from apps.anomaly.devices.door import DeviceDoor
from apps.anomaly.devices.fleet import Fleet, Plan
from apps.anomaly.devices.way import Trouble
from apps.anomaly.devices.wire import hung_up
from apps.anomaly.records import Command, Message
from tests.devicefleet import T0

from penstock.connectors import Row
from penstock.errors import ConfigurationError, TransientError
from penstock.machine.ports import free_ports


def in_a_loop(test):
    """Run an asynchronous test."""

    @functools.wraps(test)
    def run(door):
        asyncio.run(test(door))

    return run


class Log:
    """A log in memory; it can be away for a while."""

    def __init__(self):
        self.stop = threading.Event()
        self.there = threading.Event()
        self.there.set()
        self.lines = []
        self.facts = {}

    def put(self, item):
        self.lines.append(item.content)

    def settle(self):
        assert self.there.wait(30)

    def tell(self, fact, text):
        self.facts[fact] = text

    def complain(self, trouble): ...

    def messages(self):
        return [msgspec.json.decode(line, type=Message) for line in self.lines]


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


@asynccontextmanager
async def opened(door):
    log = Log()
    thread = threading.Thread(target=door.run, args=(log,))
    thread.start()
    try:
        await until(lambda: "listening on" in log.facts and door.way_back.exists())
        yield log
    finally:
        log.there.set()
        log.stop.set()
        await asyncio.to_thread(thread.join, 30)
        door.way_back.unlink(missing_ok=True)
        door.way_back.parent.rmdir()


@pytest.fixture
def door():
    return DeviceDoor(port=free_ports(1)[0])


def sent(number, **more):
    line = {"device": "a", "kind": "server", "started": 5, "number": number} | more
    return json.dumps(line | {"sent_at": T0.isoformat()}).encode() + b"\n"


@in_a_loop
async def test_a_line_is_answered_when_it_is_on_the_log_and_not_before(door):
    async with opened(door) as log:
        log.there.clear()
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(sent(0, received_at="1999-01-01T00:00:00Z"))
        await until(lambda: log.lines)
        answer = asyncio.ensure_future(reader.readline())
        await asyncio.sleep(0)
        assert not answer.done()
        log.there.set()
        assert json.loads(await answer) == {"taken": [5, 0]}
        assert log.messages()[0].received_at.year > 2000
        await hung_up(writer)


@in_a_loop
async def test_a_command_goes_to_the_socket_of_its_device_and_one_for_nobody_is_passed_over(door):
    async with opened(door) as log:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(sent(0))
        await reader.readline()
        way = door.commands.open(None)
        rows = [Row(Command(name, "c1", "turn-off", T0), b"", 0) for name in ("nobody", "a")]
        await asyncio.to_thread(way.write, 0, rows, 2)
        said = json.loads(await reader.readline())
        assert (said["command"]["device"], said["command"]["id"]) == ("a", "c1")
        await until(lambda: "1 commands to nobody" in log.facts.get("devices", ""))
        way.close()
        await hung_up(writer)


@in_a_loop
async def test_what_is_not_understood_is_a_dead_letter_and_ends_its_connection(door):
    async with opened(door) as log:
        for bad in (b"hello\n", b'{"device": 7}\n', b"x" * 300_000 + b"\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
            writer.write(bad)
            assert await reader.read() == b""
            await hung_up(writer)
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(sent(1))
        assert json.loads(await reader.readline()) == {"taken": [5, 1]}
        await hung_up(writer)
        assert len(log.lines) == 3  # the line that is too long is not kept


@in_a_loop
async def test_without_a_door_the_sink_of_commands_waits(door):
    with pytest.raises(TransientError, match="door of devices"):
        door.commands.open(None)


@in_a_loop
async def test_a_port_that_is_taken_is_named(door):
    async with opened(door):
        with pytest.raises(ConfigurationError, match="cannot listen"):
            await asyncio.to_thread(door.run, Log())


@in_a_loop
async def test_a_fleet_in_trouble_loses_no_message_and_obeys_once(door):
    trouble = Trouble(late=0.2, late_seconds=0.3, disorder=0.2, double=0.2, bursts=0.05)
    plan = Plan(port=door.port, devices=20, rate=20, trouble=trouble, pace=Pace(moving=0.1))
    fleet = Fleet(plan)
    async with opened(door) as log:
        running = asyncio.ensure_future(fleet.run())
        await until(lambda: fleet.connected == 20 and len(log.lines) > 200)
        fleet.fail("device-0003", "stuck")
        way = door.commands.open(None)
        command = Row(Command("device-0003", "c1", "move-data", T0), b"", 0)
        for _ in range(3):
            await asyncio.to_thread(way.write, 0, [command], 1)
        way.close()

        def done():
            found = [each.done for message in log.messages() for each in message.receipts]
            return {"moving", "moved"} <= set(found)

        await until(done)
        running.cancel()
        await asyncio.wait((running,))
    assert fleet.devices["device-0003"].did == [("c1", "move-data")]
    assert [each.get("did", each.get("fault")) for each in fleet.ledger.entries] == [
        "stuck",
        "move-data",
    ]
    numbers = {}
    for message in log.messages():
        numbers.setdefault(message.device, set()).add(message.number)
    for device, taken in numbers.items():
        waiting = fleet.devices[device]._untaken
        assert set(range(max(taken))) <= taken | set(waiting)


@in_a_loop
async def test_the_device_of_the_readme_is_a_whole_one(door):
    text = (Path(__file__).parents[4] / "apps" / "anomaly" / "README.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(code, names)  # noqa: S102 - it is ours
    command = Command("pump-7", "c1", "move-data", T0)
    row = Row(command, b"", 0)
    async with opened(door) as log:
        pump = functools.partial(names["pump"], door.port, times=60, every=0.05)
        running = asyncio.ensure_future(asyncio.to_thread(pump))
        await until(lambda: log.lines)
        way = door.commands.open(None)
        await asyncio.to_thread(way.write, 0, [row], 1)
        way.close()
        await running
        messages = log.messages()
    assert [each.number for each in messages] == list(range(60))
    assert {each.measurements[0].metrics["machine.bar"] for each in messages} == {4.2}
    said = [(each.command, each.done) for message in messages for each in message.receipts]
    assert said == [("c1", "moving"), ("c1", "moved")]
