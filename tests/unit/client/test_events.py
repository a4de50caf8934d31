from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.events import Event, EventReader, TooLargeEventError

STREAM = b": hello\n\nid: 0:1\r\nevent: change\r\ndata: {}\r\n\r\nretry: 5\n\ndata:a\ndata: b\n\n"
EVENTS = [Event("change", "{}", "0:1"), Event("message", "a\nb")]


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_events_are_the_same_however_their_bytes_come(cuts):
    reader = EventReader(most=1000)
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[at:to] for at, to in pairwise(places)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS


@pytest.mark.parametrize("piece", [b"x" * 200, b"data: x\n" * 50])
def test_an_event_without_an_end_is_refused(piece):
    with pytest.raises(TooLargeEventError):
        EventReader(most=100).feed(piece)
