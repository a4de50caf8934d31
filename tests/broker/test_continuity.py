"""A checkpoint that does not fit to what was written is refused, whatever became of it."""

import json
from time import monotonic

import pytest

from penstock import App, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError, FencedError
from penstock.pipelines.sink.begun import BATCH_TOPIC, RENEWAL, BatchMarker, Begun, BegunBatches
from penstock.pipelines.sink.continuity import begun_before, plan_of


@record(key="word")
class Word:
    word: str


class Checkpoint:
    """The files of a checkpoint as Spark writes them, in a dict."""

    def __init__(self, query: str = "q1") -> None:
        self.kept = {"here/metadata": json.dumps({"id": query})}

    def plan(self, batch: int, offset: int) -> None:
        self.kept[f"here/offsets/{batch}"] = f'v1\n{{"at":{offset}}}\n{{"words":{{"0":{offset}}}}}'

    def copy(self) -> "Checkpoint":
        copied = Checkpoint()
        copied.kept = dict(self.kept)
        return copied

    def names(self, directory):
        found = (path.removeprefix(f"{directory}/") for path in self.kept)
        return [name for name in found if "/" not in name]

    def text(self, file):
        return self.kept[file]


class Written:
    """A stream, the table of the same records, and the pipeline that writes one of them."""

    def __init__(self, kafka, topic) -> None:
        self.kafka = kafka
        self.name = topic()
        app = App("shop")
        self.stream = app.stream(self.name, Word)
        self.table = app.table(topic(), Word)
        for each in (self.stream, self.table):
            with Producer(kafka) as producer:
                producer.send(each.topic.name, key=b"a", value=b"{}")

    def begin(self, checkpoint: Checkpoint, *batches: int, query: str = "q1") -> None:
        marker = BatchMarker(self.kafka, self.name)
        for batch in batches:
            plan = plan_of(checkpoint, "here", batch)
            marker.mark(Begun(query=query, batch=batch, plan=plan, program="p", tasks=2))
        marker.close()

    def before(self, checkpoint: Checkpoint, data=None) -> Begun | None:
        return begun_before(
            checkpoint,
            self.kafka,
            data or self.stream,
            pipeline="copied",
            name=self.name,
            checkpoint="here",
        )

    def refusal(self, checkpoint: Checkpoint, data=None) -> ConfigurationError:
        with pytest.raises(ConfigurationError) as refused:
            self.before(checkpoint, data)
        assert "penstock rebuild copied" in refused.value.hint
        return refused.value


@pytest.fixture
def written(kafka, topic) -> Written:
    return Written(kafka, topic)


def test_the_checkpoint_that_wrote_last_goes_on_and_an_older_copy_is_refused(written):
    checkpoint, copies = Checkpoint(), []
    assert written.before(checkpoint) is None
    for batch in range(4):
        copies.append(checkpoint.copy())
        checkpoint.plan(batch, batch * 10)
    written.begin(checkpoint, 0, 1, 2, 3)
    found = written.before(checkpoint)
    assert (found.batch, found.tasks, found.program) == (3, 2, "p")
    for each in copies:
        assert written.refusal(each).code == "pipeline.older-checkpoint"
        assert written.refusal(each, written.table).code == "pipeline.older-checkpoint"


def test_a_batch_that_was_planned_anew_is_not_the_one_that_was_begun(written):
    checkpoint = Checkpoint()
    checkpoint.plan(0, 10)
    older = checkpoint.copy()
    checkpoint.plan(1, 20)
    written.begin(checkpoint, 0, 1)
    older.plan(1, 35)
    assert written.refusal(older).code == "pipeline.older-checkpoint"


def test_a_deleted_checkpoint_is_refused_for_a_stream_and_begins_anew_for_a_table(written):
    checkpoint, new = Checkpoint(), Checkpoint()
    checkpoint.plan(0, 10)
    written.begin(checkpoint, 0)
    new.kept.clear()
    refused = written.refusal(new)
    assert refused.code == "pipeline.second-beginning"
    assert refused.hint.endswith("penstock rebuild copied --append")
    assert written.before(new, written.table) is None


def test_a_table_that_begins_anew_may_be_stopped_before_its_first_batch(written):
    checkpoint, new = Checkpoint("q1"), Checkpoint("q2")
    checkpoint.plan(0, 10)
    written.begin(checkpoint, 0)
    assert written.before(new, written.table) is None
    new.plan(0, 10)
    assert written.before(new, written.table) is None
    new.kept["here/commits/0"] = "v1"
    assert written.refusal(new, written.table).code == "pipeline.other-checkpoint"


def test_a_stream_in_which_nothing_ever_was_begins_anew(written, topic):
    checkpoint, new = Checkpoint(), Checkpoint()
    checkpoint.plan(0, 10)
    written.begin(checkpoint, 0)
    new.kept.clear()
    assert written.before(new, App("shop").stream(topic(), Word)) is None


def test_a_checkpoint_of_another_query_is_refused_until_it_is_handed_over(written):
    old, new = Checkpoint("q1"), Checkpoint("q2")
    old.plan(5, 50)
    new.plan(0, 50)
    written.begin(old, 5)
    assert written.refusal(new).code == "pipeline.other-checkpoint"
    running = BatchMarker(written.kafka, written.name)
    batches, beside = BegunBatches(written.kafka), f"{written.name}~1"
    marker = BatchMarker(written.kafka, beside)
    marker.mark(Begun(query="q2", batch=0, plan=plan_of(new, "here", 0)))
    marker.close()
    batches.hand_over(beside, to=written.name)
    batches.forget(beside)
    assert written.before(new).query == "q2"
    assert batches.get(beside) is None
    assert written.refusal(old).code == "pipeline.other-checkpoint"
    with pytest.raises(FencedError):
        running.mark(Begun(query="q1", batch=6, plan=""))
    assert written.before(new).query == "q2"


def test_what_was_begun_is_known_while_another_writer_hangs_half_way(written):
    checkpoint = Checkpoint()
    checkpoint.plan(0, 0)
    written.begin(checkpoint, 0)
    with TransactionalProducer(written.kafka, f"{written.name}.hanging") as hanging:
        hanging.begin()
        hanging.send(BATCH_TOPIC.name, key=b"another", value=b"{}")
        ends = Topics(written.kafka).ends
        deadline = monotonic() + 60
        while ends(BATCH_TOPIC.name) == ends(BATCH_TOPIC.name, committed=True):
            assert monotonic() < deadline
        checkpoint.plan(1, 10)
        written.begin(checkpoint, 1)
        assert written.before(checkpoint).batch == 1


def test_a_run_that_lasts_renews_what_the_cluster_would_forget(written):
    now, renewed = [0.0], []
    marker = BatchMarker(
        written.kafka, written.name, renew=lambda: renewed.append(now[0]), clock=lambda: now[0]
    )
    hour = RENEWAL.total_seconds()
    for at in (1.0, hour, hour + 1, hour + 2, 2 * hour + 2):
        now[0] = at
        marker.mark(Begun(query="q1", batch=int(at), plan=""))
    marker.close()
    assert renewed == [hour + 1, 2 * hour + 2]
