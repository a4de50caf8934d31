"""Random pipes, commits, crashes and restarts: exactly once is exactly once, whatever happens."""

from collections import Counter
from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock import App, State, record
from penstock.testing import Driver


@record()
class Line:
    text: str


@record(key="word")
class Word:
    word: str


@record(key="word")
class Count:
    word: str
    count: int


app = App("wordcount")
lines = app.stream("lines", Line)
words = app.stream("words", Word, partitions=3)
counts = app.stream("counts", Count)


@app.service(reads=lines, writes=words)
def split(line: Line) -> Iterable[Word]:
    return [Word(word) for word in line.text]


@app.service(reads=words, writes=counts)
def count(word: Word, total: State[int]) -> Count | None:
    if word.word == "!":
        total.set(-1)
        raise ValueError(word.word)
    if word.word == "x":
        total.delete()
        return None
    total.set(total.get(0) + 1)
    return Count(word.word, total.get(0))


TEXTS = st.text(alphabet="abcx!", max_size=6)


def batch_recount(piped):
    """Return what each letter's counts must be, in order: the answer without any machinery."""
    expected, running = {}, Counter()
    for letter in "".join(piped):
        if letter == "x":
            running["x"] = 0
        elif letter != "!":
            running[letter] += 1
            expected.setdefault(letter, []).append(running[letter])
    return expected


class Crashes(RuleBasedStateMachine):
    @initialize(partitions=st.integers(1, 3))
    def begin(self, partitions):
        self.driver = Driver(app, partitions=partitions, auto_commit=False)
        self.piped, self.seen = [], {}

    @rule(texts=st.lists(TEXTS, max_size=4))
    def pipe(self, texts):
        self.piped += texts
        self.driver.pipe(lines, *(Line(text) for text in texts))

    @rule(service=st.sampled_from([None, split, count]))
    def crash_and_restart(self, service):
        self.driver.crash(service)
        self.driver.restart()

    @rule(service=st.sampled_from([split, count]), text=TEXTS)
    def pipe_into_a_dead_service(self, service, text):
        self.driver.crash(service)
        self.pipe([text])
        self.driver.restart()

    @rule(service=st.sampled_from([None, split, count]))
    def commit(self, service):
        self.driver.commit(service)

    @rule()
    def read(self):
        for found in self.driver.read(counts):
            self.seen.setdefault(found.word, []).append(found.count)

    @invariant()
    def nothing_was_seen_that_a_batch_does_not_give(self):
        expected = batch_recount(self.piped)
        for letter, found in self.seen.items():
            assert found == expected[letter][: len(found)]

    @invariant()
    def the_counts_add_up(self):
        for service in (split, count):
            assert self.driver.counts(service).balanced

    def teardown(self):
        if not hasattr(self, "driver"):
            return
        self.driver.commit()
        self.driver.commit()
        self.read()
        assert self.seen == batch_recount(self.piped)
        letters = Counter("".join(self.piped))
        assert len(self.driver.dead_letters()) == letters["!"]
        assert self.driver.counts(count).received == sum(letters.values())
        assert self.driver.counts(count).filtered == letters["x"]
        for letter in "abc":
            assert self.driver.state(count, letter) == (letters[letter] or None)


Crashes.TestCase.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=25
)
TestCrashes = Crashes.TestCase
