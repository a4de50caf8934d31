from datetime import UTC, datetime

from penstock.core.records.deadletter import Coordinates, dead_letter_headers, read_letter
from penstock.errors import DataError

PLACE = Coordinates("words", 2, 7)


def test_what_is_written_of_a_dead_letter_is_read_and_its_own_headers_stay_its_own():
    error = DataError("not JSON", code="data.not-json")
    marks = dead_letter_headers(error, PLACE, part="count", at=datetime(2026, 1, 1, tzinfo=UTC))
    letter = read_letter(b"k", b"{", [("trace", b"1"), *marks])
    assert (letter.code, letter.reason, letter.part) == ("data.not-json", "not JSON", "count")
    assert (letter.coordinates, letter.at) == (PLACE, "2026-01-01T00:00:00+00:00")
    assert (letter.key, letter.value, letter.headers) == (b"k", b"{", (("trace", b"1"),))


def test_a_record_that_somebody_else_wrote_there_is_shown_as_it_is():
    letter = read_letter(None, b"x", [("penstock.offset", b"\xff"), ("penstock.code", None)])
    assert (letter.code, letter.coordinates) == ("", Coordinates("", -1, -1))


def test_what_a_record_said_of_itself_stays_its_own_and_goes_back_with_it():
    own = (("penstock.asker", b"bank.door"), ("penstock.withdrawn", b"true"), ("reason", b"1"))
    marks = dead_letter_headers(
        DataError("bad", code="x"), PLACE, part="p", at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    past = [("penstock.rounds", b"9"), ("penstock.given-back", b"1")]
    letter = read_letter(b"k", b"v", [*own, *past, *marks])
    assert (letter.headers, letter.given_back, letter.code) == (own, 1, "x")
