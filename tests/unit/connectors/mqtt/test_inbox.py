"""Each message of QoS 2 is kept once, whenever reader or connection end: against a broker's rules."""

import random
from collections import deque

from penstock.connectors.mqtt.inbox import Inbox
from penstock.connectors.mqtt.packets import PUBACK, PUBCOMP, PUBREC, Message


class Broker:
    """What MQTT 3.1.1 says of a sender of QoS 1 and 2; numbers are used again as soon as may be."""

    def __init__(self, payloads, quality, window):
        self.queue, self.quality, self.window = deque(payloads), quality, window
        self.sent: dict[int, bytes] = {}
        self.released: set[int] = set()
        self.line: deque = deque()

    def connect(self):
        """A new connection: what was not finished is sent again, in its order."""
        self.line.clear()
        for number, payload in self.sent.items():
            self.line.append(Message("t", payload, self.quality, number, again=True))
        self.line.extend(sorted(self.released))

    def push(self):
        used = self.sent.keys() | self.released
        while self.queue and len(used) < self.window:
            number = next(n for n in range(1, self.window + 1) if n not in used)
            self.sent[number] = self.queue.popleft()
            used.add(number)
            self.line.append(Message("t", self.sent[number], self.quality, number))

    def hear(self, kind, number):
        if kind == PUBACK:
            self.sent.pop(number)
        elif kind == PUBREC:
            self.sent.pop(number, None)
            if number not in self.released:
                self.released.add(number)
                self.line.append(number)
        elif kind == PUBCOMP:
            self.released.discard(number)

    @property
    def done(self):
        return not self.queue and not self.sent and not self.released


class Reader:
    """What a source keeps of one broker, over connections that end at random."""

    def __init__(self, broker, seed):
        self.broker, self.chance = broker, random.Random(seed)
        self.kept: list[bytes] = []
        self.position: list[int] = []

    def happens(self, probability):
        return self.chance.random() < probability

    def connection(self):
        """One connection, to its end."""
        self.broker.connect()
        inbox = Inbox(self.position)
        while not self.happens(0.05) and self.tells(inbox.settle()):
            self.broker.push()
            given = self.takes(inbox)
            if self.happens(0.1) or not self.keeps(inbox, given):
                return

    def tells(self, owed):
        """Tell the broker; False: the connection ended meanwhile."""
        arrives = self.chance.randint(0, len(owed)) if self.happens(0.1) else len(owed)
        for kind, number in owed[:arrives]:
            self.broker.hear(kind, number)
        return arrives == len(owed)

    def takes(self, inbox):
        given = []
        for _ in range(min(self.chance.randint(0, 4), len(self.broker.line))):
            packet = self.broker.line.popleft()
            if isinstance(packet, int):
                inbox.release(packet)
            elif inbox.take(packet):
                given.append(packet)
        return given

    def keeps(self, inbox, given):
        """Keep what was given and the position behind it; False: it died in the middle."""
        until = self.chance.randint(0, len(given)) if self.happens(0.2) else len(given)
        if until or (inbox.moved and not given):
            self.position = list(inbox.held_after(until))
            self.kept += [message.payload for message in given[:until]]
        return until == len(given)


def run(seed, *, quality):
    """Read everything while connection and reader end at random; return what was kept and sent."""
    # Equal payloads in a row, as devices send them: only their number tells messages apart.
    payloads = [b"%d" % (n // 3) for n in range(40)]
    broker = Broker(payloads, quality, window=seed % 5 + 1)
    reader = Reader(broker, seed)
    for _ in range(5_000):
        reader.connection()
        if broker.done:
            return reader.kept, payloads
    raise AssertionError(f"it does not come to its end with seed {seed}")


def test_each_message_of_qos_2_is_kept_once_whenever_anything_ends():
    for seed in range(200):
        kept, payloads = run(seed, quality=2)
        assert sorted(kept) == sorted(payloads), seed


def test_each_message_of_qos_1_is_kept_at_least_once():
    for seed in range(50):
        kept, payloads = run(seed, quality=1)
        assert all(kept.count(each) >= payloads.count(each) for each in payloads), seed


def test_the_broker_is_told_only_of_what_is_kept():
    inbox = Inbox([])
    assert inbox.take(Message("t", b"a", 2, 7))
    assert not inbox.take(Message("t", b"a", 2, 7, again=True))  # repeated before it is kept
    assert inbox.take(Message("t", b"b", 1, 8))
    assert inbox.take(Message("t", b"c", 0, 0))
    assert inbox.held_after(0) == []
    assert inbox.held_after(3) == [7]
    assert inbox.settle() == [(PUBREC, 7), (PUBACK, 8)]
    assert not inbox.take(Message("t", b"a", 2, 7, again=True))
    inbox.release(7)
    assert inbox.settle() == [(PUBREC, 7)]  # not PUBCOMP: no position leaves it out yet
    assert inbox.moved
    assert inbox.held_after(0) == []
    assert inbox.settle() == [(PUBCOMP, 7)]
    assert not inbox.moved
    inbox.release(9)  # of a run that was killed after its last commit
    assert inbox.settle() == [(PUBCOMP, 9)]
