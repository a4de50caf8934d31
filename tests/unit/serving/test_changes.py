"""Changes of a table: told once each, again to those who come back, never without limit."""

import asyncio

from penstock.serving.tables.changes import (
    MOST_WAITING,
    Change,
    Changes,
    Listening,
    mark,
    read_mark,
)


def change(offset, key=b"a", partition=0):
    return Change(partition, offset, key, None, b"%d" % offset)


def test_positions_are_the_same_behind_the_mark_of_an_event():
    for positions in ({0: 5}, {1: 9, 0: 12}):
        assert read_mark(mark(positions)) == positions
    for other in ("", "0", "0:", ":1", "a:1", "0:1,", "0:-1", "9" * 50 + ":1", "0:1" * 3000):
        assert read_mark(other) is None


def test_what_changed_since_is_told_again_unless_it_is_too_long_ago():
    changes = Changes(most=3)
    changes.begin({0: 10, 1: 0})
    changes.add([change(10), change(0, partition=1), change(11)])
    assert [each.offset for each in changes.since({0: 11, 1: 0})] == [0, 11]
    assert list(changes.since({0: 12, 1: 1})) == []
    changes.add([change(12)])
    assert changes.since({0: 10, 1: 0}) is None
    assert [each.offset for each in changes.since({0: 11, 1: 0})] == [0, 11, 12]
    assert changes.since({0: 11}) is None
    changes.begin({0: 0, 1: 0})
    assert list(changes.since({0: 0, 1: 0})) == []


def test_who_listens_hears_of_its_keys_alone():
    async def run():
        changes = Changes()
        one, some = Listening(prefix=b"", key=b"ab"), Listening(prefix=b"a", key=None)
        changes.listen(one)
        changes.listen(some)
        changes.add([change(0, b"ab"), change(1, b"abc"), change(2, b"b")])
        heard = [[each.offset for each in await who.next(seconds=5)] for who in (one, some)]
        assert heard == [[0], [0, 1]]
        assert await one.next(seconds=0.01) == []
        changes.leave(some)
        changes.begin({})
        assert await one.next(seconds=5) is None
        assert await some.next(seconds=0.01) == []

    asyncio.run(run())


def test_who_does_not_keep_up_is_let_go_and_the_others_hear_on():
    async def run():
        changes = Changes()
        slow, quick = Listening(prefix=b"", key=None), Listening(prefix=b"", key=None)
        changes.listen(slow)
        changes.listen(quick)
        for offset in range(MOST_WAITING + 5):
            changes.add([change(offset)])
            assert [each.offset for each in await quick.next(seconds=5)] == [offset]
        heard = 0
        while (told := await slow.next(seconds=5)) is not None:
            heard += len(told)
        assert (heard, slow.behind, quick.behind) == (MOST_WAITING, True, False)

    asyncio.run(run())
