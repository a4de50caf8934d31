from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from penstock import App, State, feedback, real_time, record
from penstock.connectors import json_files
from penstock.core.drawing.layout import Size, lay_out
from penstock.core.drawing.svg import draw_svg
from penstock.core.drawing.text import counted, draw_mermaid, draw_text
from penstock.core.graph.graph import Graph


@dataclass(frozen=True)
class Lines:
    interactive: bool = False

    def describe(self) -> str:
        return 'lines of "a" & <b>'


@record(key="word")
class Word:
    word: str


def application() -> Graph:
    app = App("example")
    words, loud, spare = (app.stream(name, Word) for name in ("words", "loud", "spare"))
    counts = app.table("counts", Word)
    kept = app.lake("kept", Word, partition_by="word")
    app.source("file", Lines(), into=words)
    app.source("other", Lines(), into=words)

    @app.service(reads=words, writes=loud)
    def shout(word: Word, seen: State[int]) -> Word:
        return word

    @app.service(reads=loud, writes=feedback(words), delivery="at_least_once")
    def echo(word: Word) -> Word:
        return word

    @app.pipeline(reads=loud, writes=counts)
    def count(loud):
        return loud

    @app.pipeline(reads=loud, writes=kept)
    def keep(loud):
        return loud

    @app.pipeline(reads=words, writes=loud, trigger=real_time())
    def fast(words):
        return words

    assert spare.name == "spare"
    return app.graph


def test_the_text_shows_each_node_once_and_where_records_go():
    assert draw_text(application()) == (
        """\
example: 2 sources, 3 streams, 1 table, 1 lake table, 3 pipelines, 2 services

file  (source, lines of "a" & <b>)
└─▶ words  (stream of Word by word)
    ├─▶ shout  (service, exactly once, state seen)
    │   └─▶ loud  (stream of Word by word)
    │       ├─▶ echo  (service, at least once)
    │       │   └─▶ words ↺ feedback
    │       ├─▶ count  (pipeline, micro-batch, update, exactly once)
    │       │   └─▶ counts  (table of Word by word)
    │       └─▶ keep  (pipeline, micro-batch, append, exactly once)
    │           └─▶ kept  (lake table of Word by word)
    └─▶ fast  (pipeline, real-time, append, at least once)
        └─▶ loud ↑, drawn above

other  (source, lines of "a" & <b>)
└─▶ words ↑, drawn above

not used by any part:
  spare  (stream of Word by word)"""
    )


def test_an_undeclared_cycle_without_a_start_is_drawn_too():
    app = App("round")
    words = app.stream("words", Word)

    @app.service(reads=words, writes=words)
    def repeat(word: Word) -> Word:
        return word

    assert draw_text(app.graph).splitlines()[2:] == [
        "repeat  (service, exactly once)",
        "└─▶ words  (stream of Word by word)",
        "    └─▶ repeat ↑, drawn above",
    ]
    assert draw_svg(app.graph).count('class="edge') == 2


def test_an_empty_application_can_be_drawn():
    graph = App("empty").graph
    assert counted(graph) == "nothing"
    assert draw_text(graph) == "empty: nothing"
    assert draw_mermaid(graph) == "flowchart LR"
    assert ET.fromstring(draw_svg(graph)).tag.endswith("svg")  # noqa: S314 - our own text


def test_mermaid_has_every_node_and_edge_with_its_text_escaped():
    lines = draw_mermaid(application()).splitlines()
    source = next(line for line in lines if "<b>file</b>" in line)
    assert source == (
        '  n0>"<b>file</b><br/>source, lines of #quot;a#quot; #amp; #lt;b#gt;"]:::source'
    )
    assert sum("-->" in line for line in lines) == 11
    assert sum("-. feedback .->" in line for line in lines) == 1


def test_the_svg_is_well_formed_and_names_every_node():
    graph = application()
    picture = ET.fromstring(draw_svg(graph))  # noqa: S314 - our own text
    space = "{http://www.w3.org/2000/svg}"
    names = {node.text for node in picture.iter(f"{space}text") if node.get("class") == "name"}
    assert names == {node.name for node in (*graph.parts, *graph.data)}
    edges = [path for path in picture.iter(f"{space}path") if "edge" in path.get("class", "")]
    assert len(edges) == len(list(graph.edges()))
    assert sum("feedback" in path.get("class", "") for path in edges) == 1


@given(
    st.integers(1, 12).flatmap(
        lambda count: st.tuples(
            st.lists(st.integers(40, 200), min_size=count, max_size=count),
            st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=24),
        )
    )
)
def test_boxes_never_overlap_and_routes_begin_and_end_at_their_sides(drawn):
    widths, pairs = drawn
    nodes = {f"n{at}": Size(width, 50) for at, width in enumerate(widths)}
    layout = lay_out(nodes, [(f"n{start}", f"n{end}") for start, end in pairs if start != end])
    for one, other in combinations(layout.boxes.values(), 2):
        apart_across = one.x + one.width <= other.x or other.x + other.width <= one.x
        apart_along = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert apart_across or apart_along
    for box in layout.boxes.values():
        assert 0 <= box.x <= box.x + box.width <= layout.width + 1e-6
        assert 0 <= box.y <= box.y + box.height <= layout.height + 1e-6
    for route in layout.routes:
        for name, (x, y) in ((route.start, route.points[0]), (route.end, route.points[-1])):
            box = layout.boxes[name]
            assert min(abs(x - box.x), abs(x - box.x - box.width)) < 1e-6
            assert box.y <= y <= box.y + box.height


def test_a_sink_is_drawn_behind_what_it_reads():
    app = App("out")
    words = app.stream("words", Word)
    app.source("file", Lines(), into=words)
    app.sink("files", json_files("dump"), reads=words)
    assert draw_text(app.graph).splitlines() == [
        "out: 1 source, 1 stream, 1 sink",
        "",
        'file  (source, lines of "a" & <b>)',
        "└─▶ words  (stream of Word by word)",
        "    └─▶ files  (sink, exactly once, JSON lines in dump)",
    ]
    assert '[/"<b>files</b><br/>sink, exactly once, JSON lines in dump"/]:::sink' in draw_mermaid(
        app.graph
    )
    assert 'class="node sink"' in draw_svg(app.graph)
