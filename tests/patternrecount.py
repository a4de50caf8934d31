"""What a pattern must find, counted plainly: every way to write it out, every choice of events.

It knows nothing of points and threads. It writes a flat pattern out as words of steps, tries each
word on all events, and asks of each pair of neighbours whether the rules let one follow the other.
"""

from dataclasses import dataclass, field
from itertools import product


@dataclass
class S:
    """A step: the letters it takes, and how."""

    letters: str
    after: str = "relaxed"
    least: int = 1
    most: int | None = 1
    between: str = "relaxed"
    optional: bool = False
    greedy: bool = False
    until: str = ""
    absent: bool = False
    sum_below: int | None = None
    """Whether it takes only while the numbers of all that it took, with the new one, are below."""


@dataclass
class Wait:
    """What one event of a word waits for."""

    step: int
    after: str
    forbids: list = field(default_factory=list)
    forbids_next: list = field(default_factory=list)
    stops: str = ""
    passes: str = ""
    blockers: list = field(default_factory=list)


def words(steps, most):
    """Every way to write a pattern out, as steps by number."""
    choices = []
    for number, step in enumerate(steps):
        if step.absent:
            choices.append([()])
            continue
        top = most if step.most is None else min(step.most, most)
        counts = list(range(step.least, top + 1)) + ([0] if step.optional else [])
        choices.append([(number,) * count for count in counts])
    for choice in product(*choices):
        word = [number for part in choice for number in part]
        if 0 < len(word) <= most:
            yield word


class Recount:
    """All matches of a pattern in events ``(time, letter, number)``, which are in order."""

    def __init__(self, steps, events, *, within=None, gap=False):
        self.steps = steps
        self.events = events
        self.within = within
        self.gap = gap
        self.last = max(n for n, step in enumerate(steps) if not step.absent)

    def matches(self):
        """Return them as tuples of (event, step), each with the time at which it is known."""
        found = []
        for word in words(self.steps, len(self.events)):
            for first in range(len(self.events)):
                if self._begins(word[0], first):
                    found += self._on([(first, word[0])], word)
        return found

    def _begins(self, step, at):
        blockers = [n for n in range(step) if self.steps[n].greedy]
        if any(self._may_begin(n, at) for n in blockers):
            return False
        return self._may_begin(step, at)

    def _may_begin(self, step, at):
        return self._fits(step, at, []) and self.events[at][1] not in self.steps[step].until

    def _on(self, path, word):
        if len(path) == len(word):
            return self._ends(path)
        found = []
        wait = self._wait(path, word[len(path)])
        for at in range(path[-1][0] + 1, len(self.events)):
            if self._takes(wait, path, at):
                found += self._on([*path, (at, wait.step)], word)
        return found

    def _count(self, path):
        """How often the newest step was repeated."""
        return sum(1 for _, step in path if step == path[-1][1])

    def _wait(self, path, step):
        before = path[-1][1]
        if step == before:
            forbids, forbids_next = self._absent(before + 1, self._next_positive(before))
            return Wait(
                step, self.steps[step].between, forbids, forbids_next, self.steps[step].until
            )
        forbids, forbids_next = self._absent(before + 1, step)
        blockers = self._blockers(path, step)
        until = self.steps[step].until
        return Wait(step, self.steps[step].after, forbids, forbids_next, "", until, blockers)

    def _blockers(self, path, until_step):
        before = path[-1][1]
        found = []
        step = self.steps[before]
        if step.greedy and (step.most is None or self._count(path) < step.most):
            found.append(self._wait(path, before))
        for number in range(before + 1, until_step):
            if self.steps[number].greedy:
                forbids, forbids_next = self._absent(before + 1, number)
                one = self.steps[number]
                found.append(Wait(number, one.after, forbids, forbids_next, "", one.until))
        return found

    def _next_positive(self, number):
        after = [n for n in range(number + 1, len(self.steps)) if not self.steps[n].absent]
        return after[0] if after else len(self.steps)

    def _absent(self, start, end):
        absent = [self.steps[n] for n in range(start, end) if self.steps[n].absent]
        forbids = [each.letters for each in absent if each.after == "relaxed"]
        return forbids, [each.letters for each in absent if each.after == "strict"]

    def _takes(self, wait, path, at):  # noqa: PLR0911 - one for each rule
        """Whether a wait that began after the path takes this very event."""
        begin = path[-1][0] + 1
        for number in range(begin, at + 1):
            if any(self._takes(each, path, number) for each in wait.blockers):
                return False
            if self._late(wait.step, path, number):
                return False
            letter = self.events[number][1]
            if number == begin and any(letter in each for each in wait.forbids_next):
                return False
            if letter in wait.stops:
                return False
            fits = self._fits(wait.step, number, path)
            passes = fits and letter in wait.passes
            if number == at:
                return fits and not passes
            if wait.after == "strict" or (fits and wait.after != "any"):
                return False
            if any(letter in each for each in wait.forbids):
                return False
        return False

    def _late(self, step, path, at):
        if self.within is None or (self.gap and step != self.last):
            return False
        since = path[-1][0] if self.gap else path[0][0]
        return self.events[at][0] >= self.events[since][0] + self.within

    def _fits(self, step, at, path):
        one = self.steps[step]
        _, letter, number = self.events[at]
        if letter not in one.letters:
            return False
        taken = sum(self.events[n][2] for n, taker in path if taker == step)
        return one.sum_below is None or taken + number < one.sum_below

    def _ends(self, path):  # noqa: PLR0911 - one for each rule
        """Whether nothing more is needed after the path, or what is needed is seen not to come."""
        newest, before = path[-1]
        if self._count(path) < self.steps[before].least:
            return []
        rest = range(before + 1, len(self.steps))
        if any(not (self.steps[n].optional or self.steps[n].absent) for n in rest):
            return []
        known = tuple(path)
        trailing = [self.steps[n] for n in rest if n > self.last]
        if not trailing:
            return [(known, self.events[newest][0])]
        forbids, forbids_next = self._absent(before + 1, len(self.steps))
        blockers = self._blockers(path, len(self.steps))
        since = newest if self.gap else path[0][0]
        until = None if self.within is None else self.events[since][0] + self.within
        waits = any(each.after == "relaxed" for each in trailing)
        for at in range(newest + 1, len(self.events)):
            time, letter, _ = self.events[at]
            if until is not None and time >= until:
                break
            if any(self._takes(each, path, at) for each in blockers):
                return []
            if at == newest + 1 and any(letter in each for each in forbids_next):
                return []
            if any(letter in each for each in forbids):
                return []
            if not waits:
                return [(known, time)]
        return [(known, until)] if waits else []


def skipped(matches, mode, step):
    """Return the matches that are left where each discards others."""
    left = sorted(matches, key=lambda m: (m[0][0][0], m[0][-1][0], -len(m[0]), m[0]))
    found = []
    while left:
        match = left.pop(0)
        found.append(match)
        path = [at for at, _ in match[0]]
        of_step = [at for at, taker in match[0] if taker == step]
        bound = {
            "to-next": path[0],
            "past-last": path[-1],
            "to-first": of_step[0] - 1 if of_step else -1,
            "to-last": of_step[-1] - 1 if of_step else -1,
        }[mode]
        left = [each for each in left if each[0][0][0] > bound]
    return found
