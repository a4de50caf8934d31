"""Life cycles in the drawings of `penstock graph`."""

from datetime import datetime
from xml.etree import ElementTree as ET

from penstock import App, record
from penstock.core.drawing.svg import draw_svg
from penstock.core.drawing.text import draw_mermaid, draw_text
from penstock.lifecycles import lifecycle


@record(key="drive", time="at")
class Smart:
    drive: str
    at: datetime
    errors: int
    tags: list[str] = []  # noqa: RUF012 - what a record without it has


app = App("plant")
smart = app.stream("smart", Smart)
life = (
    lifecycle("cold", "hot <1>")
    .on(smart, "cold -> hot <1>", where="errors > 8")
    .after("90m", "hot <1> -> cold")
    .rests("cold")
)
app.stream("changes", life, on="services")
app.table("drives", life, on="services")


def test_the_text_lists_what_leads_from_each_state():
    assert draw_text(app.graph).partition("changes, drives: ")[2].splitlines() == [
        "life cycle, begins cold",
        "  cold  (may last for ever)",
        "    └─▶ hot <1>  (smart: errors > 8)",
        "  hot <1>",
        "    └─▶ cold  (after 1h30m)",
    ]


def test_mermaid_has_a_chart_of_states_within_the_flowchart():
    drawn = draw_mermaid(app.graph)
    assert 'subgraph s0["changes, drives: life cycle"]' in drawn
    assert 's0_0 -- "smart: errors #gt; 8" --> s0_1' in drawn


def test_the_picture_has_every_state_and_what_leads_along_each_arrow():
    texts = [
        each.text
        for each in ET.fromstring(draw_svg(app.graph)).iter()  # noqa: S314 - our own
        if each.tag.endswith("text")
    ]
    wanted = {"changes, drives: life cycle", "cold", "hot <1>", "smart: errors > 8", "after 1h30m"}
    assert wanted <= set(texts)
