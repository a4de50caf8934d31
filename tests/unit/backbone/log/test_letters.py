"""A dead letter is written whatever its record had: what does not fit is cut, and told."""

import pytest

from penstock.backbone.log.letters import CUT_HEADER, Letter, fitted, is_letter, size_of

MARKS = [("penstock.reason", b"r" * 2000), ("penstock.code", b"data.too-large")]
MOST = 100_000


def letter(*, key=b"k", value=b"v", own=()):
    return Letter(key, value, [*own, *MARKS])


@pytest.mark.parametrize(
    ("given", "cut"),
    [
        (letter(value=b"v" * MOST), "value 100000"),
        (letter(key=b"k" * MOST), "key 100000"),
        (letter(own=[("h", b"x" * MOST)]), "headers 100011"),
        (letter(own=[(f"h{n}", b"") for n in range(20_000)]), "headers 308890"),
        (
            letter(key=b"k" * MOST, value=b"v" * MOST, own=[("h", b"x" * MOST)]),
            "headers 100011, key 100000, value 100000",
        ),
        (letter(key=None, value=b"v" * MOST, own=[("h", b"x" * 1000)]), "value 100000"),
    ],
)
def test_what_does_not_fit_is_cut_and_says_what_it_had(given, cut):
    found = fitted(given, MOST)
    assert MOST - 5_000 <= size_of(found) <= MOST or "value" not in cut
    assert size_of(found) <= MOST
    assert dict(found.headers)[CUT_HEADER] == cut.encode()
    assert [each for each in found.headers if each in MARKS] == MARKS
    assert (given.value or b"").startswith(found.value or b"")


def test_what_fits_is_left_alone():
    whole = letter(own=[("h", b"x")])
    assert fitted(whole, size_of(whole)) is whole
    assert fitted(whole, size_of(whole) + 1) is whole


def test_a_deletion_stays_one():
    found = fitted(letter(key=b"k" * MOST, value=None), MOST)
    assert (found.key, found.value) == (None, None)


def test_only_a_record_with_a_reason_is_a_letter():
    assert is_letter(MARKS)
    assert not is_letter([("penstock.pane", b"early")])
