"""Our own pattern cases as services on a real broker: each step a commit, each by a new task."""

import json
import sys
from pathlib import Path

CONFORMANCE = Path(__file__).parents[1] / "conformance"
sys.path.insert(0, str(CONFORMANCE))

from pattern_form import differences  # noqa: E402 - beside its runner
from pattern_service import ServiceEngine  # noqa: E402


def test_every_case_passes_as_a_service(kafka):
    cases = json.loads((CONFORMANCE / "more_patterns.json").read_text(encoding="utf-8"))["cases"]
    found = ServiceEngine(kafka).run(cases)
    for case, outcomes in zip(cases, found, strict=True):
        assert not isinstance(outcomes, str), (case["id"], outcomes)
        assert [differences(case, each) for each in outcomes] == [[]], case["id"]
