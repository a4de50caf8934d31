"""Which changes were read with the rows already."""

from penstock.connectors.postgres.seen import Look, Seen

EPOCH = 1 << 32


def test_a_transaction_was_seen_if_it_had_ended_before():
    look = Look.read("100:110:103,105", 7)
    assert [xid for xid in range(95, 115) if look.saw(xid)] == [
        *range(95, 103), 104, *range(106, 110),
    ]  # fmt: skip
    assert Look.read(look.text, 7) == look
    assert Look.read("5:5:", 7).text == "5:5:"


def test_numbers_of_transactions_that_began_anew_are_compared_with_their_epoch():
    look = Look.read(f"{EPOCH + 5}:{EPOCH + 10}:", 7)
    assert look.saw(EPOCH - 3)
    assert look.saw(4)
    assert not look.saw(11)
    late = Look.read(f"{EPOCH - 5}:{EPOCH - 2}:", 7)
    assert not late.saw(3)


def test_each_key_was_read_by_the_first_transaction_that_came_as_far():
    early, late = Look.read("100:100:", 50), Look.read("200:200:", 90)
    seen = Seen({"t": [((10,), early), (None, late)]})
    assert seen.has("t", (10,), 99)
    assert not seen.has("t", (10,), 150)
    assert seen.has("t", (11,), 150)
    assert not seen.has("t", (11,), 200)
    assert not seen.has("other", (1,), 1)


def test_all_is_forgotten_as_soon_as_the_stream_is_past_it():
    seen = Seen({"t": [(None, Look.read("100:100:", 50))]})
    seen.pass_by(50)
    assert seen
    seen.pass_by(51)
    assert not seen
    assert not seen.has("t", (1,), 1)
