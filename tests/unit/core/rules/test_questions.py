"""What `penstock check` says of parts that ask and answer."""

from penstock import App, Output, record
from penstock.core.rules.check import check
from penstock.questions import Unanswered, ask


@record(key="order")
class Placed:
    order: str


@record(key="customer")
class Check:
    customer: str


@record()
class Verdict:
    good: bool


def made(*, partitions=2):
    app = App("shop")
    orders = app.stream("orders", Placed, partitions=partitions)
    return app, orders, app.questions("checks", Check, answers=Verdict)


def problems(app):
    return [(each.code, each.message) for each in check(app.graph)]


def right(message: Placed | Verdict | Unanswered[Check]) -> Output[Check] | None:
    return ask(made()[2], Check("ann"))


def deaf(message: Placed | Verdict) -> Output[Check] | None: ...


def plain(message: Placed | Verdict | Unanswered[Check]) -> Check | None: ...


def forgetful(message: Placed | Unanswered[Check]) -> Output[Check] | None: ...


def told(asker, **options):
    app, orders, checks = made(**options)
    app.service(reads=orders, asks=checks)(asker)
    return problems(app)


def test_a_part_that_asks_and_takes_answers_and_silence_is_sound():
    assert told(right) == []


def test_silence_has_to_be_taken():
    ((code, message),) = told(deaf)
    assert code == "ask.no-time-out"
    assert "asks 'checks', and does not take silence" in message


def test_an_answer_has_to_be_taken():
    assert [code for code, _ in told(forgetful)] == ["service.takes"]


def test_a_question_has_to_be_asked_not_given():
    assert "ask.not-asked" in [code for code, _ in told(plain)]


def test_answers_need_the_partitions_of_what_the_asking_part_reads():
    assert [code for code, _ in told(right, partitions=4)] == ["service.partitions"]


def test_only_questions_can_be_asked():
    app, orders, _ = made()
    app.service(reads=orders, asks=orders)(print)
    assert "data.option" in [code for code, _ in problems(app)]


def test_a_time_out_has_to_be_some_time():
    app = App("shop")
    app.questions("checks", Check, answers=Verdict, timeout="0s")
    assert [code for code, _ in problems(app)] == ["data.option"]
