from decimal import Decimal
from typing import Annotated, Literal

import pytest

from penstock import App, delete, limits, record, send
from penstock.errors import DataError
from penstock.services.step.outputs import Outputs


@record(key="word")
class Count:
    word: str
    count: int


@record()
class Alarm:
    text: str


app = App("demo")
counts = app.stream("counts", Count)
spread = app.stream("spread", Count, partition_by="round_robin")
alarms = app.stream("alarms", Alarm)
small = app.stream("small", Alarm, max_record="20B")


def outputs(*writes):
    @App("other").service(reads=counts, writes=writes)
    def subject(record): ...

    return Outputs(subject)


@record(key="word")
class Strict:
    word: str
    count: Annotated[int, limits(ge=0)] = 0
    share: float = 0.0
    kind: Literal["a", "b"] = "a"
    price: Decimal = Decimal(0)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (Strict("a", "text"), r"Expected `int`, got `str` - at `\$\.count`"),
        (Strict("a", None), "Expected `int`, got `null`"),
        (Strict("a", 0.5), "Expected `int`, got `float`"),
        (Strict("a", -1), "Expected `int` >= 0"),
        (Strict("a", 2**70), "Expected"),
        (Strict("a", share=float("nan")), "Expected `float`, got `null`"),
        (Strict("a", kind="z"), "Invalid enum value 'z'"),
        (Strict("a", price=Decimal("1e30")), "digits before"),
    ],
)
def test_what_readers_would_refuse_is_not_written(made, says):
    subject = outputs(App("strict").stream("strict", Strict))
    with pytest.raises(DataError, match=says) as raised:
        subject.of(made)
    assert raised.value.code == "data.not-encodable"
    assert raised.value.message.startswith("its readers would refuse it: not a Strict: ")


def test_nothing_is_sent_for_none():
    assert outputs(counts).of(None) == []


def test_a_record_goes_to_the_stream_of_its_type():
    subject = outputs(counts, alarms)
    assert subject.of(Count("a", 1)) == [("counts", b"a", b'{"word":"a","count":1}', (), None)]
    assert subject.of(Alarm("x")) == [("alarms", None, b'{"text":"x"}', (), "round_robin")]


def test_many_records_keep_their_order_and_none_among_them_is_skipped():
    sent = outputs(counts, alarms).of(iter([Count("a", 1), None, Alarm("x"), Count("b", 2)]))
    assert [topic for topic, *_ in sent] == ["counts", "alarms", "counts"]


def test_an_addressed_record_goes_where_it_says_with_its_headers():
    subject = outputs(counts, spread)
    (sent,) = subject.of(send(spread, Count("a", 1), headers={"trace": b"7"}))
    assert sent == ("spread", b"a", b'{"word":"a","count":1}', (("trace", b"7"),), "round_robin")


@pytest.mark.parametrize(
    ("writes", "result", "says"),
    [
        ((counts, spread), Count("a", 1), "counts and spread hold: address it"),
        ((counts,), Alarm("x"), r"gives a Alarm, and writes counts \(Count\)"),
        ((), Alarm("x"), "writes nothing"),
        ((counts,), "text", "gives a str"),
        ((counts,), 3, "gives a int"),
        ((counts,), [Count("a", 1), "text"], "gives a str"),
        ((counts,), send(alarms, Alarm("x")), "'alarms', which is not in its writes"),
        ((counts, alarms), send(alarms, Count("a", 1)), "a Count to 'alarms', which holds Alarm"),
    ],
)
def test_a_record_without_a_stream_is_refused_in_words(writes, result, says):
    with pytest.raises(TypeError, match=says):
        outputs(*writes).of(result)


def test_a_record_larger_than_its_stream_takes_is_refused():
    with pytest.raises(DataError, match="its stream takes 20"):
        outputs(small).of(Alarm("x" * 50))


def test_the_deletion_of_a_row_has_its_key_and_no_value():
    latest = app.table("latest", Count)
    subject = outputs(latest)
    given = [Count("a", 1), delete(latest, "a", headers={"why": b"old"})]
    assert subject.of(given) == [
        ("latest", b"a", b'{"word":"a","count":1}', (), None),
        ("latest", b"a", None, (("why", b"old"),), None),
    ]
    with pytest.raises(TypeError, match=r"'latest', which is not in its writes"):
        outputs(counts).of(delete(latest, "a"))
    with pytest.raises(TypeError, match=r"delete\(latest, key\) deletes a row"):
        subject.of(send(latest, None))


def test_a_dict_is_no_iterable_of_records():
    with pytest.raises(TypeError, match=r"it gives a dict, and writes counts \(Count\)"):
        outputs(counts).of({"word": "a"})
