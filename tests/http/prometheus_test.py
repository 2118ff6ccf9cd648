#!/usr/bin/env python3
"""A real Prometheus scrapes all processes of a real run, and answers every query of k8s/grafana.json from
what it has scraped.

  tests/http/prometheus_test.py --bin DIR     DIR: the folder of the programs

Exits with 77, saying so, where there is no prometheus.
"""
import argparse
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse

import training
import ctest

DASHBOARD = training.ROOT / "k8s" / "grafana.json"
# Of what happens in no undisturbed run: the query is answered, with nothing.
QUIET = {"kumo_worker_silent_seconds"}
PROGRAMS = ""


class Prometheus:
    """One on loopback, at a port that the kernel picks; use it in a `with`."""

    def __init__(self, program, targets):
        self.program = program
        self.targets = targets  # "127.0.0.1:43211"

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kumo_prometheus_"))
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                  "scrape_configs": [{"job_name": "watched",
                                      "static_configs": [{"targets": self.targets}]}]}
        (self.folder / "prometheus.yml").write_text(json.dumps(config))  # which is YAML too
        self.log = self.folder / "log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [self.program, f"--config.file={self.folder}/prometheus.yml",
                 f"--storage.tsdb.path={self.folder}/data", "--web.listen-address=127.0.0.1:0"],
                stdout=subprocess.DEVNULL, stderr=log)
        try:
            self.url = "http://" + training.await_("the address of prometheus", self._address)
            training.await_("prometheus answers", self._is_ready)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _address(self):
        if self.process.poll() is not None:
            raise AssertionError("prometheus ended: " + self.log.read_text())
        found = re.search(r'"?Listening on"? address=(127\.0\.0\.1:\d+)', self.log.read_text())
        return found and found[1]

    def _is_ready(self):
        try:
            return training.fetch(f"{self.url}/-/ready")
        except urllib.error.HTTPError:
            return None

    def ask(self, path, **arguments):
        text = training.fetch(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(arguments)}")
        return json.loads(text)["data"]

    def query(self, query):
        """[(labels, value)]"""
        return [(each["metric"], float(each["value"][1]))
                for each in self.ask("query", query=query)["result"]]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # unittest has enterClassContext from Python 3.11 on.
        contexts = contextlib.ExitStack()
        cls.addClassCleanup(contexts.close)
        watched = contexts.enter_context(training.Training(PROGRAMS))
        watched.await_epochs(1)
        targets = [url.removeprefix("http://").rstrip("/") for url in watched.urls.values()]
        cls.prometheus = contexts.enter_context(Prometheus(shutil.which("prometheus"), targets))

    def test_every_process_is_scraped_without_an_error(self):
        def all_up():
            targets = self.prometheus.ask("targets")["activeTargets"]
            self.assertEqual([each["lastError"] for each in targets if each["lastError"]], [])
            return [each["health"] for each in targets] == ["up"] * len(training.NAMES)
        training.await_("all targets are up", all_up)
        processes = {labels["process"] for labels, _ in self.prometheus.query("kumo_build_info")}
        self.assertEqual(processes, set(training.NAMES))

    def test_what_is_scraped_moves_with_the_training(self):
        def moved():
            rates = self.prometheus.query("rate(kumo_rounds_total[5s])")
            return rates and rates[0][1] > 0
        training.await_("rounds are counted", moved)
        quantile = self.prometheus.query(
            "histogram_quantile(0.5, rate(kumo_round_seconds_bucket[1m]))")
        self.assertEqual(len(quantile), 1)
        self.assertGreater(quantile[0][1], 0)

    def query_of_dashboard(self, query):
        return self.prometheus.query(
            query.replace("$job", "watched").replace("$__rate_interval", "30s"))

    def test_every_query_of_the_dashboard_is_answered(self):
        dashboard = json.loads(DASHBOARD.read_text())
        targets = [(panel["title"], target) for panel in dashboard["panels"]
                   for target in panel.get("targets", [])]
        self.assertGreater(len(targets), 20)
        for title, target in targets:
            query = target["expr"]
            with self.subTest(panel=title, query=query):
                if any(name in query for name in QUIET):
                    self.query_of_dashboard(query)
                    continue
                found = training.await_(query, lambda: self.query_of_dashboard(query))
                for labels, _ in found:
                    for shown in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                        self.assertIn(shown, labels)
        for mark in dashboard["annotations"]["list"]:
            self.query_of_dashboard(mark["expr"])


def main():
    global PROGRAMS
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    PROGRAMS = parser.parse_args().bin
    if not shutil.which("prometheus"):
        ctest.skip("prometheus is missing (Debian has it)")
    ctest.run()


if __name__ == "__main__":
    main()
