from penstock.services.measures import Measures, Skipped


def test_an_offset_that_is_skipped_twice_is_counted_once():
    skipped = Skipped()
    skipped.see(("words", 0), 10, 30)
    skipped.see(("words", 0), 10, 30)
    skipped.see(("words", 0), 20, 35)
    skipped.see(("words", 1), 0, 5)
    assert skipped.offsets == 20 + 5 + 5


def test_what_was_skipped_is_in_the_metrics():
    measures = Measures()
    measures.skipped.see(("words", 0), 1, 8)
    assert measures.series()["skipped_offsets_total"] == 7
