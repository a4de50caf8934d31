"""The todo application in two browsers at once, while the network goes and the gateway is killed."""

import json
import os
from pathlib import Path

import pytest
from tests.browser.todoapp import Todo

pytestmark = pytest.mark.broker

PICTURES = os.environ.get("PENSTOCK_PICTURES", "")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
HOSTILE = '"><img src=x onerror="window.broken=1"><script>window.broken=1</script>'
MANY = 1000
NAMES = {
    "test_two_browsers_see_each_other_and_end_with_the_table": "Groceries",
    "test_it_can_be_read_in_the_dark_and_on_a_phone_and_by_name": "Weekend",
    "test_a_thousand_items_are_shown_and_moved": "Some day",
}
WORD = f"bread{os.getpid()}"
"""What no other test writes."""
TEXTS = "[...document.querySelectorAll('#items li .text')].map((each) => (each.localName === 'input' ? each.value : each.textContent))"


@pytest.fixture(scope="module")
def todo(kafka, tmp_path_factory):
    found = Todo(tmp_path_factory.mktemp("todo"), bootstrap=kafka.bootstrap)
    try:
        found.until_healthy()
        yield found
    finally:
        found.stop()


class Person:
    """Somebody in front of a page."""

    def __init__(self, page, todo, name):
        self.page, self.todo, self.name = page, todo, name
        page.resize(1100, 760)
        page.colours("light")
        page.open(todo.address)
        page.wait_text("Live", "#wire")
        page.fill("#who", name)

    def sees(self, *texts):
        self.page.wait(
            f"JSON.stringify({TEXTS}) === {json.dumps(json.dumps(texts, ensure_ascii=False, separators=(',', ':')))}"
        )

    def adds(self, *texts):
        for text in texts:
            self.page.fill("#text", text)
            self.page.press("Enter")
            self.page.wait(f"{TEXTS}.includes({json.dumps(text)})")

    def row(self, text):
        """Return a selector of the row of a text."""
        place = self.page.wait(f"{TEXTS}.indexOf({json.dumps(text)}) + 1")
        return f"#items li:nth-child({place})"

    def edits(self, text, new):
        row = self.row(text)
        self.page.click(f"{row} .text")
        self.page.fill(f"{row} input.text", new)
        self.page.press("Enter")

    def picture(self, name):
        if PICTURES:
            self.page.evaluate("document.activeElement.blur()")
            self.page.wait("!document.querySelector('#items .pending')")
            self.page.screenshot(Path(PICTURES) / f"{name}.png")


@pytest.fixture
def people(new_page, todo, request):
    """Give two people who look at a new list, and its identity."""
    ann, bo = Person(new_page(), todo, "Ann"), Person(new_page(), todo, "Bo")
    name = NAMES[request.node.name]
    ann.page.fill("#list-name", name)
    ann.page.press("Enter")
    ann.page.wait_text(name, "#title")
    bo.page.wait_text(name, "#lists")
    address = ann.page.evaluate("location.hash")
    bo.page.open(f"{todo.address}/{address}")
    bo.page.wait_text(name, "#title")
    return ann, bo, address.split("/")[1]


def test_two_browsers_see_each_other_and_end_with_the_table(people, todo):
    ann, bo, where = people
    both_see_what_the_other_does(ann, bo)
    searches_and_filters_are_live(ann, bo)
    both_go_on_while_one_is_offline(ann, bo)
    both_write_while_the_gateway_is_killed(ann, bo, todo, where)
    rows = both_write_while_another_gateway_takes_over(ann, bo, todo, where)
    what_the_gateway_refuses_is_taken_back(ann, rows)


def both_see_what_the_other_does(ann, bo):
    ann.adds("milk", "eggs", HOSTILE)
    bo.sees("milk", "eggs", HOSTILE)
    assert bo.page.evaluate("window.broken") is None
    bo.page.click(f"{bo.row('eggs')} input")
    ann.page.wait("document.querySelector('#items li:nth-child(2)').classList.contains('done')")
    ann.page.wait_text("Done 1", "#filters")
    assert "Bo: eggs, done" in ann.page.evaluate("document.querySelector('#said').textContent")
    ann.page.evaluate(
        f"document.querySelector({json.dumps(ann.row(HOSTILE) + ' .handle')}).focus()"
    )
    ann.page.press("ArrowUp")
    bo.sees("milk", HOSTILE, "eggs")
    ann.page.press("ArrowUp")
    bo.sees(HOSTILE, "milk", "eggs")
    assert "is now 1 of 3" in ann.page.evaluate("document.querySelector('#said').textContent")
    assert "handle" in ann.page.evaluate("document.activeElement.className")
    drag(bo.page, f"{bo.row('eggs')} .handle", f"{bo.row(HOSTILE)} .handle")
    ann.sees("eggs", HOSTILE, "milk")
    bo.page.click(f"{bo.row(HOSTILE)} .delete")
    ann.sees("eggs", "milk")
    bo.page.click(".notice .primary")
    ann.sees("eggs", HOSTILE, "milk")
    bo.page.click(f"{bo.row(HOSTILE)} .delete")
    ann.sees("eggs", "milk")


def searches_and_filters_are_live(ann, bo):
    ann.page.fill("#search", WORD.upper())
    ann.page.wait_text("Nothing has these words", "#empty")
    bo.adds(f"{WORD} & butter")
    ann.sees(f"{WORD} & butter")
    assert ann.page.text("#items mark") == WORD
    ann.page.evaluate(
        "document.querySelector('#search').value = ''; location.hash = location.hash.replace('all', 'open')"
    )
    ann.sees("milk", f"{WORD} & butter")
    bo.page.click(f"{bo.row('milk')} input")
    ann.sees(f"{WORD} & butter")
    ann.page.evaluate("location.hash = location.hash.replace('open', 'all')")
    ann.sees("eggs", "milk", f"{WORD} & butter")


def both_go_on_while_one_is_offline(ann, bo):
    ann.page.offline(cut=True)
    ann.page.wait_text("Offline", "#wire")
    ann.edits("milk", "oat milk")
    ann.edits("eggs", "six eggs")
    ann.adds("tea")
    ann.page.wait_text("3 changes wait", "#wire")
    bo.edits("milk", "soy milk")
    bo.page.click(f"{bo.row('eggs')} input")
    bo.sees("eggs", "soy milk", f"{WORD} & butter")
    ann.page.offline(cut=False)
    ann.page.wait_text("Live", "#wire")
    for each in (ann, bo):
        each.sees("six eggs", "soy milk", f"{WORD} & butter", "tea")
        each.page.wait("!document.querySelector('#items li').classList.contains('done')")
    ann.page.wait_text("Bo had changed this to “soy milk”, while you wrote “oat milk”", "#notices")


def both_write_while_the_gateway_is_killed(ann, bo, todo, where):
    todo.kill_gateway()
    ann.adds("sugar")
    bo.page.click(f"{bo.row('tea')} input")
    bo.adds("salt")
    todo.until_healthy()
    rows = both_end_with_the_table(ann, bo, todo, where, 6)
    assert sorted(each["text"] for each in rows[-2:]) == ["salt", "sugar"]


def both_write_while_another_gateway_takes_over(ann, bo, todo, where):
    todo.start_second_gateway()
    ann.adds("honey")
    todo.take_over()
    todo.kill_gateway()
    ann.adds("jam")
    bo.page.click(f"{bo.row('salt')} input")
    bo.adds("nuts")
    rows = both_end_with_the_table(ann, bo, todo, where, 9)
    assert sorted(each["text"] for each in rows[-3:]) == ["honey", "jam", "nuts"]
    return rows


def both_end_with_the_table(ann, bo, todo, where, count):
    """Wait for so many rows in both pages, and return the table, which both show."""
    for each in (ann, bo):
        each.page.wait_text("Live", "#wire")
        each.page.wait(f"{TEXTS}.length === {count} && !document.querySelector('#items .pending')")
    rows = todo.rows(where)
    for each in (ann, bo):
        each.sees(*(row["text"] for row in rows))
        assert each.page.evaluate(
            "[...document.querySelectorAll('#items input')].map((each) => each.checked)"
        ) == [row["done"] for row in rows]
        each.page.errors.clear()  # the browser tells that it could not connect
    return rows


def what_the_gateway_refuses_is_taken_back(ann, rows):
    ann.page.evaluate("document.querySelector('#text').maxLength = 600")
    ann.page.fill("#text", "x" * 501)
    ann.page.press("Enter")
    ann.page.wait_text("was refused", "#notices")
    ann.sees(*(row["text"] for row in rows))
    ann.page.errors.clear()


def test_it_can_be_read_in_the_dark_and_on_a_phone_and_by_name(people):
    ann, bo, _ = people
    ann.adds(
        "water the plants",
        "call the dentist",
        "return the books to the library",
        "mend the bicycle",
    )
    bo.page.click(f"{bo.row('call the dentist')} input")
    ann.page.wait_text("Done 1", "#filters")
    unnamed = (
        "[...document.querySelectorAll('button, input, a')].filter((each) => !each.closest('[hidden]'))"
        ".filter((each) => !(each.ariaLabel || each.textContent.trim() || each.labels?.length)).length"
    )
    assert ann.page.evaluate(unnamed) == 0
    for scheme in ("light", "dark"):
        ann.page.colours(scheme)
        ann.page.resize(1100, 760)
        ann.page.wait_text("All 4", "#filters")
        assert ann.page.evaluate(CONTRAST) == []
        ann.picture(f"todo-{scheme}")
        ann.page.resize(390, 760, phone=True)
        ann.page.wait("document.documentElement.scrollWidth <= 390")
        ann.picture(f"todo-phone-{scheme}")
    policy = "fetch('/').then((found) => found.headers.get('content-security-policy'))"
    assert "unsafe" not in ann.page.evaluate(policy)


def test_a_thousand_items_are_shown_and_moved(people, todo):
    ann, bo, where = people
    made = ann.page.evaluate(
        f"""import('/rank.js').then(({{ between }}) => {{
          const ranks = [''];
          for (let at = 0; at < {MANY}; at += 1) ranks.push(between(ranks.at(-1), ''));
          const inner = [ranks[1], ranks[2]]; // always into one place: they grow, and stay in order
          for (let at = 0; at < {MANY}; at += 1) inner.splice(1 + at % 2, 0, between(inner[at % 2], inner[1 + at % 2]));
          const sorted = (texts) => texts.every((each, at) => !at || texts[at - 1] < each);
          const front = [ranks[1]];
          for (let at = 0; at < {MANY}; at += 1) front.unshift(between('', front[0]));
          return [ranks.slice(1), sorted(ranks), sorted(inner), sorted(front), Math.max(...inner.map((each) => each.length))];
        }})"""
    )
    ranks, *good, longest = made
    assert good == [True, True, True]
    assert longest <= 400
    edits = [
        {"id": f"{where}-{n}", "edit": f"{n}", "list": where, "text": f"item {n}", "rank": rank}
        for n, rank in enumerate(ranks)
    ]
    todo.ask("/v1/streams/todo.edits/records", edits)
    for each in (ann, bo):
        each.page.wait(f"{TEXTS}.length === {MANY}")
    last = f"#items li:nth-child({MANY}) .handle"
    ann.page.evaluate(f"document.querySelector({json.dumps(last)}).focus()")
    ann.page.press("ArrowUp")
    bo.page.wait(f"{TEXTS}.at(-1) === 'item {MANY - 2}'")
    assert [row["text"] for row in todo.rows(where)] == bo.page.evaluate(TEXTS)


def drag(page, handle, target):
    """Press on a handle, move to another one, and let go."""
    places = [
        page.evaluate(
            f"(() => {{ const b = document.querySelector({json.dumps(each)}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for each in (handle, target)
    ]
    (x, y), (_, end) = places
    steps = [
        ("mousePressed", y),
        ("mouseMoved", (y + end) / 2),
        ("mouseMoved", end - 4),
        ("mouseReleased", end - 4),
    ]
    for kind, height in steps:
        page.command(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=height,
            button="left",
            buttons=1,
            clickCount=1,
        )
