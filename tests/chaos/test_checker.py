"""The checker goes red for every fault that is planted, and only then."""

import copy
import random
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

kit = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("checker.py"))))


@pytest.fixture
def history():
    chance = random.Random(1)
    written = {}
    for id_ in range(1000):
        written.setdefault(f"k{chance.randrange(20)}", []).append(id_)
    return kit.History(
        written=written,
        seen={
            key: [(id_, count) for count, id_ in enumerate(ids, start=1)]
            for key, ids in written.items()
        },
        state={key: len(ids) for key, ids in written.items()},
        poison=[2000, 2001],
        dead=[2000, 2001],
    )


def drop(history):
    del history.seen["k3"][5]


def double(history):
    history.seen["k3"].insert(6, history.seen["k3"][5])


def double_later(history):
    history.seen["k3"].append(history.seen["k3"][5])


def swap(history):
    pairs = history.seen["k3"]
    pairs[5], pairs[6] = pairs[6], pairs[5]


def make_up(history):
    history.seen["k3"].append((9999, 99))


def forget_a_key(history):
    del history.seen["k3"]


def move_to_another_key(history):
    history.seen["k4"].append(history.seen["k3"].pop())


def count_wrongly(history):
    id_, count = history.seen["k3"][5]
    history.seen["k3"][5] = (id_, count + 1)


def keep_an_old_state(history):
    history.state["k3"] -= 1


def keep_a_state_of_nobody(history):
    history.state["nobody"] = 1


def lose_a_dead_letter(history):
    history.dead.pop()


def double_a_dead_letter(history):
    history.dead.append(2000)


def bury_a_good_record(history):
    history.dead.append(1)


FAULTS = {
    drop: "I1",
    double: "I2",
    double_later: "I2",
    swap: "I3",
    make_up: "I4",
    forget_a_key: "I1",
    move_to_another_key: "I1",
    count_wrongly: "I3",
    keep_an_old_state: "I5",
    keep_a_state_of_nobody: "I5",
    lose_a_dead_letter: "I1",
    double_a_dead_letter: "I2",
    bury_a_good_record: "I4",
}


def test_a_run_without_faults_is_green(history):
    assert kit.check(history) == []


@pytest.mark.parametrize("plant", FAULTS, ids=lambda fault: fault.__name__)
def test_every_planted_fault_is_found(history, plant):
    before = copy.deepcopy(history)
    plant(history)
    assert history != before
    findings = [str(finding) for finding in kit.check(history)]
    assert any(text.startswith(FAULTS[plant]) for text in findings), findings
