"""Dashboards and alerts name metrics that exist, and a dashboard names all of them."""

import json
import re

import yaml

from penstock.core.status.dashboards import ALERTS, alert_rules, dashboard
from penstock.core.status.exposition import CATALOGUE

NAME = re.compile(r"penstock_(\w+)")


def metrics(text):
    return {re.sub("_bucket$", "", name) for name in NAME.findall(text)}


def test_a_dashboard_shows_every_metric_and_no_other():
    made = dashboard()
    queries = [target["expr"] for panel in made["panels"] for target in panel.get("targets", ())]
    assert set().union(*map(metrics, queries)) == set(CATALOGUE)
    assert len(queries) == len(CATALOGUE)
    assert json.loads(json.dumps(made)) == made
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"])
    places = [tuple(panel["gridPos"].values())[:2] for panel in made["panels"]]
    assert len(set(places)) == len(places)


def test_histograms_counters_and_gauges_are_asked_for_as_what_they_are():
    queries = {
        panel["title"]: panel["targets"][0]["expr"]
        for panel in dashboard()["panels"]
        if "targets" in panel
    }
    assert queries[CATALOGUE["batch_seconds"]].startswith("histogram_quantile(0.95, sum by (le, ")
    assert queries[CATALOGUE["received_records_total"]].startswith("rate(penstock_received_")
    assert queries[CATALOGUE["lag_records"]].startswith("penstock_lag_records{")


def test_alerts_are_rules_of_metrics_that_exist_and_say_what_is_wrong():
    (group,) = yaml.safe_load(alert_rules())["groups"]
    assert [rule["alert"] for rule in group["rules"]] == [alert.name for alert in ALERTS]
    for rule in group["rules"]:
        assert metrics(rule["expr"]) <= set(CATALOGUE)
        assert "{{ $labels.part }}" in rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"critical", "warning"}
