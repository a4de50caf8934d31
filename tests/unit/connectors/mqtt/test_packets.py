"""Packets of MQTT are cut out of bytes, however these come, and broken ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.mqtt.packets import (
    PINGREQ,
    PUBLISH,
    PUBREL,
    Packet,
    PacketCutter,
    acknowledge,
    connect,
    number_of,
    publish,
    read_message,
    subscribe,
)
from penstock.errors import TransientError

SENT = [
    publish("a/b", b"x" * 200, quality=2, retain=True, number=7),
    publish("ö", b"", quality=0, retain=False, number=0),
    acknowledge(PUBREL, 65_535),
    PINGREQ,
    publish("t", b"y" * 20_000, quality=1, retain=False, number=1),
]


@given(st.lists(st.integers(0, 9_000), max_size=20))
def test_packets_are_the_same_however_their_bytes_are_divided(cuts):
    data, at = b"".join(SENT), 0
    cutter = PacketCutter(largest=20_000)
    found: list[Packet] = []
    for size in [*cuts, len(data)]:
        found += cutter.feed(data[at : at + size])
        at += size
    assert [each.kind for each in found] == [PUBLISH, PUBLISH, PUBREL, 12, PUBLISH]
    first, second, last = (read_message(found[n]) for n in (0, 1, 4))
    assert (first.topic, first.payload, first.quality, first.number) == ("a/b", b"x" * 200, 2, 7)
    assert (first.retained, second.retained) == (True, False)
    assert (second.topic, second.payload, second.number) == ("ö", b"", 0)
    assert (last.length, len(last.payload)) == (20_000, 20_000)
    assert number_of(found[2]) == 65_535


def test_of_a_message_that_is_too_long_the_beginning_is_kept_and_its_length_known():
    cutter = PacketCutter(largest=10)
    data = publish("t", b"z" * 1_000_000, quality=2, retain=False, number=9)
    found = []
    for at in range(0, len(data), 65_536):
        found += cutter.feed(data[at : at + 65_536])
        assert len(cutter._body) < 70_000
    message = read_message(found[0])
    assert (message.length, message.number) == (1_000_000, 9)
    assert len(message.payload) >= 10


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\x05ab", b"\0\x01a", b"\0\x01a\0"])
def test_a_message_that_is_cut_off_is_refused(body):
    with pytest.raises(TransientError, match="does not speak MQTT"):
        read_message(Packet(PUBLISH, 2, body, len(body)))


def test_what_is_no_mqtt_is_refused():
    with pytest.raises(TransientError, match="no length"):
        PacketCutter(largest=10).feed(b"\x20\xff\xff\xff\xff\xff")
    with pytest.raises(TransientError, match="names no message"):
        number_of(Packet(PUBREL, 2, b"\0", 1))
    with pytest.raises(TransientError, match="cut off"):
        read_message(Packet(PUBLISH, 6, b"\0\x01a\0\x01", 5))


def test_bytes_of_requests_are_those_of_the_standard():
    assert connect("c", keep_alive=60, clean=False, user="u", password="p") == (
        b"\x10\x13\0\x04MQTT\x04\xc0\0\x3c\0\x01c\0\x01u\0\x01p"
    )
    assert subscribe(1, ["a/+"], quality=2) == b"\x82\x08\0\x01\0\x03a/+\x02"
    with pytest.raises(ValueError, match="too long"):
        connect("x" * 70_000, keep_alive=1, clean=True, user=None, password=None)
