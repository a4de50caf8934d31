from penstock.connectors.source.splits import LOOK_SECONDS, OPEN_SPLITS, Splits


def test_splits_are_opened_once_in_the_order_in_which_they_were_found():
    splits = Splits()
    splits.found(["b", "a"], at=0.0)
    assert splits.to_open() == ["b", "a"]
    splits.found(["a", "c"], at=1.0)
    assert splits.to_open() == ["c"]
    assert splits.to_open() == []


def test_no_more_splits_are_open_than_allowed_and_the_others_follow_as_they_end():
    splits = Splits()
    splits.found([str(number) for number in range(OPEN_SPLITS + 2)], at=0.0)
    assert len(splits.to_open()) == OPEN_SPLITS
    assert splits.to_open() == []
    splits.end("5")
    assert splits.to_open() == [str(OPEN_SPLITS)]


def test_a_split_that_ended_is_not_opened_again():
    splits = Splits()
    splits.found(["a"], at=0.0)
    splits.to_open()
    splits.end("a")
    splits.found(["a"], at=1.0)
    assert splits.to_open() == []


def test_only_a_source_that_grows_is_asked_again_and_only_now_and_then():
    splits = Splits()
    assert splits.look_due(0.0, grows=False)
    splits.found([], at=0.0)
    assert not splits.look_due(99.0, grows=False)
    assert not splits.look_due(LOOK_SECONDS / 2, grows=True)
    assert splits.look_due(LOOK_SECONDS, grows=True)


def test_it_is_finished_when_all_have_ended_and_none_can_be_added():
    splits = Splits()
    assert not splits.finished(grows=False)
    splits.found(["a"], at=0.0)
    assert not splits.finished(grows=False)
    splits.to_open()
    assert not splits.finished(grows=False)
    splits.end("a")
    assert splits.finished(grows=False)
    assert not splits.finished(grows=True)


def test_only_a_source_with_several_splits_says_how_many():
    splits = Splits()
    splits.found(["a"], at=0.0)
    assert splits.describe() == ""
    splits.found(["b", "c"], at=0.0)
    splits.to_open()
    splits.end("b")
    assert splits.describe() == "1 of 3 read to the end"
