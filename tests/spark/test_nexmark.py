"""Every Nexmark query as a stream, on a broker and Spark, compared with a database's answer."""

import sys
from pathlib import Path

import pytest

# Before Spark starts: its workers get the path of this moment.
sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "nexmark"))

from generator import Disorder
from nexmark import QUERIES
from verify import Case, compared

pytestmark = pytest.mark.timeout(1200)


def test_every_query_gives_the_databases_answer_from_late_mixed_and_doubled_events(spark):
    disorder = Disorder(group=100, late=0.05, late_ms=3000, dup=0.02)
    case = Case(6000, seed=7, tps=200, disorder=disorder, bound="4s")
    found = dict(compared(spark, case, QUERIES, parts=2))
    assert list(found) == list(QUERIES)
    assert {query: str(each) for query, each in found.items() if not each.same} == {}
    assert all(each.right for each in found.values())
