import pytest

from penstock import App, State, record
from penstock.errors import ConfigurationError, TransientError
from penstock.services.worker.topicwatch import LOOK_SECONDS, TopicWatch, topics_of


@record(key="word")
class Word:
    word: str


class Cluster:
    """What there is; changed by the test."""

    def __init__(self) -> None:
        self.topics = {"words": ("w", 2), "told": ("t", 2)}
        self.away = False

    def __call__(self, names):
        if self.away:
            raise TransientError("away", code="kafka.away")
        return {name: shape for name, shape in self.topics.items() if name in names}


@pytest.fixture
def cluster():
    return Cluster()


def watching(cluster, *, keeps_state=True):
    reads, writes = frozenset({"words"}), frozenset({"told"})
    watch = TopicWatch("app.s", reads, writes, keeps_state=keeps_state, shapes=cluster)
    watch.look(0.0)
    watch.require_same()
    return watch


def test_a_service_looks_at_what_it_reads_and_at_all_that_it_writes():
    app = App("app")
    words, told = app.stream("words", Word), app.stream("told", Word)

    @app.service(reads=words, writes=told, name="s")
    def tell(word: Word, seen: State[int]) -> Word:
        return word

    reads, writes = topics_of(app.graph, app.graph.part("s"))
    assert reads == {"words"}
    assert writes == {"told", "app.dead-letters", "app.s.changelog"}


def test_a_topic_that_is_gone_is_told_until_it_is_back(cluster):
    watch = watching(cluster)
    told = cluster.topics.pop("told")
    watch.look(LOOK_SECONDS)
    assert watch.lost == "there is no topic told any more: penstock topics apply puts it back"
    cluster.topics["told"] = ("another", told[1])
    watch.look(2 * LOOK_SECONDS)
    assert watch.lost == ""
    watch.require_same()  # what it writes may be made anew


def test_an_input_that_is_made_anew_ends_the_worker_once(cluster):
    watch = watching(cluster)
    cluster.topics["words"] = ("another", 2)
    watch.look(LOOK_SECONDS - 1)
    watch.require_same()  # not looked yet
    watch.look(LOOK_SECONDS)
    with pytest.raises(ConfigurationError, match="words was deleted and made anew") as raised:
        watch.require_same()
    assert raised.value.code == "input.recreated"
    watch.look(2 * LOOK_SECONDS)
    watch.require_same()


@pytest.mark.parametrize(
    ("keeps_state", "kind", "code"),
    [(True, ConfigurationError, "state.repartitioned"), (False, TransientError, "input.grown")],
)
def test_partitions_that_were_added_end_it_where_it_keeps_state_and_are_read_where_it_does_not(
    cluster, keeps_state, kind, code
):
    watch = watching(cluster, keeps_state=keeps_state)
    cluster.topics["words"] = ("w", 4)
    watch.look(LOOK_SECONDS)
    with pytest.raises(kind, match="words has 4 partitions, and had 2") as raised:
        watch.require_same()
    assert raised.value.code == code


def test_a_cluster_that_does_not_answer_says_nothing_of_topics(cluster):
    watch = watching(cluster)
    cluster.away = True
    watch.look(LOOK_SECONDS)
    watch.require_same()
    assert watch.lost == ""
