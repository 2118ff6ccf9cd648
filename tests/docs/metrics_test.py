#!/usr/bin/env python3
"""The metrics that the sources name, against the table of docs/operations.md: equal names, both ways, and equal
texts, except for links. And the queries of the dashboard k8s/grafana.json: each names metrics and labels that are
served, those of one run.
Exits with 1 and says which where they differ.

  tests/docs/metrics_test.py
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = re.compile(r'"((?:kumo|process)_[a-z_]+)"')
HISTOGRAM = re.compile(r'->Histogram\(\s*"([a-z_]+)"')
LABEL = re.compile(r'\{"([a-z]+)", ')
# A metric's name and its help: literals that stand side by side are one text.
HELP = re.compile(r'"((?:kumo|process)_[a-z_]+)",\s*((?:"[^"]*"\s*)+),')
ROW = re.compile(r"^\| `((?:kumo|process)_[a-z_]+)` \| (.*) \|$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# In a query: a metric with what it is narrowed to; labels that are kept, or joined by, and those shown.
METRIC = re.compile(r"\b((?:kumo|process)_[a-z_]+)(\{[^}]*\})?")
GROUPED = re.compile(r"\b(?:by|on|group_left) \(([^)]*)\)")
SHOWN = re.compile(r"\{\{(\w+)\}\}")
OF_PROMETHEUS = {"job", "instance", "le"}  # which it gives to what it scrapes, and to histograms
ONE_RUN = '{job="$job"}'


def of_dashboard(dashboard, served, labels):
    """What is wrong with its queries."""
    places = [(panel["title"], target["expr"], target["legendFormat"]) for panel in dashboard["panels"]
              for target in panel.get("targets", [])]
    places += [(mark["name"], mark["expr"], "") for mark in dashboard["annotations"]["list"]]
    for title, query, legend in places:
        where = f"k8s/grafana.json: {title}: "
        metrics = METRIC.findall(query)
        if not metrics:
            yield f"{where}{query} asks for no metric"
        for name, narrowed in metrics:
            if name not in served:
                yield f"{where}{name} is not served"
            if narrowed != ONE_RUN:
                yield f"{where}{name} is of all runs"
        named = [label.strip() for group in GROUPED.findall(query) for label in group.split(",")]
        for label in named + SHOWN.findall(legend):
            if label not in labels:
                yield f"{where}no metric has a label {label}"


def main():
    source = (ROOT / "common/http/metrics_text.cc").read_text()
    served = set(NAME.findall(source))
    rows = ROW.findall((ROOT / "docs/operations.md").read_text())
    told = [name for name, _ in rows]
    texts = {name: LINK.sub(r"\1", text) for name, text in rows}
    wrong = [f"docs/operations.md: {name} is not served" for name in sorted(set(told) - served)]
    wrong += [f"docs/operations.md: {name} is missing" for name in sorted(served - set(told))]
    wrong += [f"docs/operations.md: {name} is there twice" for name in sorted(set(told))
              if told.count(name) > 1]
    help_of = {name: "".join(re.findall(r'"([^"]*)"', text)) for name, text in HELP.findall(source)}
    wrong += [f"docs/operations.md: {name} has the text {texts[name]!r}, but metrics_text.cc has {help_of[name]!r}"
              for name in sorted(texts.keys() & help_of.keys()) if texts[name] != help_of[name]]
    wrong += [f"metrics_text.cc: {name} has no help text" for name in sorted(served - help_of.keys())]
    histograms = set(HISTOGRAM.findall(source))
    series = served - histograms | {f"{name}_{part}" for name in histograms
                                    for part in ("bucket", "sum", "count")}
    dashboard = json.loads((ROOT / "k8s/grafana.json").read_text())
    wrong += of_dashboard(dashboard, series, set(LABEL.findall(source)) | OF_PROMETHEUS)
    print("\n".join(wrong) or f"{len(served)} metrics, {len(dashboard['panels'])} panels")
    return 1 if wrong or not served or not histograms else 0


if __name__ == "__main__":
    sys.exit(main())
