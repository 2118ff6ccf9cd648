#!/usr/bin/env python3
"""(p) Cost of HTTP monitoring for a job: LeNet on two workers and two servers, blocks of two
minibatches, so that rounds are short. Three phases take turns in one job: no requests; /metrics each second,
as from Prometheus; /status.json and /history.json each second, as from an open page. The client runs on the
same cores.

  bench/scrape_cost.py [--runs N] [--seconds S] [--data DIR] [--bin DIR] [--json FILE]

--runs: repetitions of the three phases; --seconds: length of a phase. Prints the time of a round without
requests, the slowdown in the other phases, and the duration of one request: medians and quartiles.
"""
import itertools
import json
import pathlib
import statistics
import tempfile
import threading
import time
import urllib.request

import log_messages
from jobs import commit, draw_data, machine, parser, run_job

BLOCK = 2
NOBODY, PROMETHEUS, PAGE = "nobody asks", "/metrics each second", "an open page"
PATHS = {NOBODY: [], PROMETHEUS: ["metrics"], PAGE: ["status.json", "history.json"]}
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def url_of(folder):
    """Server 0's address, once it trains."""
    for _ in range(400):
        for log in pathlib.Path(folder).glob("kumo-*/logs/server-0.*.log"):
            found = log_messages.pattern("page").search(log.read_text())
            if found and any(pathlib.Path(folder).glob("kumo-*/log.jsonl")):
                return found[1]
        time.sleep(0.05)
    raise SystemExit("scrape_cost.py: no server has logged its HTTP address")


class Watcher(threading.Thread):
    """Client that goes through the phases until the job ends. `turns` has [phase, begin, end] by the wall
    clock, `took` the seconds of each request by its path, `sizes` the bytes of its answer."""

    def __init__(self, folder, seconds):
        super().__init__()
        self.folder, self.seconds = folder, seconds
        self.turns, self.took, self.sizes = [], {}, {}

    def run(self):
        url = url_of(self.folder)
        try:
            for turn in itertools.count():
                # Each phase comes first, second and third equally often.
                for at in range(len(PATHS)):
                    what, paths = list(PATHS.items())[(turn + at) % len(PATHS)]
                    begin = time.time()
                    for second in range(max(1, round(self.seconds))):
                        # /healthz: ends the loop when the job has ended.
                        for path in paths or ["healthz"] * (second == 0):
                            self.ask(url, path)
                        time.sleep(max(0, begin + min(second + 1, self.seconds) - time.time()))
                    self.turns.append((what, begin, time.time()))
        except OSError:
            pass  # the job is over

    def ask(self, url, path):
        begin = time.perf_counter()
        with OPENER.open(url + path, timeout=30) as answer:
            self.sizes[path] = len(answer.read())
        self.took.setdefault(path, []).append(time.perf_counter() - begin)


def round_seconds(entries, begin, end):
    """Mean of the rounds whose progress was logged between two times."""
    within = [entry for entry in entries if begin <= entry["wall_time"] <= end]
    if len(within) < 2 or within[-1]["round"] == within[0]["round"]:
        return None
    return (within[-1]["wall_time"] - within[0]["wall_time"]) / (within[-1]["round"] - within[0]["round"])


def spread(values, digits):
    """The median and the quartiles."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.{digits}f} ({low:.{digits}f} - {high:.{digits}f}, {len(values)} times)"


def main():
    arguments = parser(__doc__, runs=30, seconds=3).parse_args()
    turn, arguments.seconds = arguments.seconds, arguments.seconds * len(PATHS) * arguments.runs + 1
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        watcher = Watcher(folder, turn)
        watcher.start()
        entries = run_job(arguments, 2, folder, servers=2, block=BLOCK,
                          settings=["http.address=127.0.0.1:0"])
        watcher.join()
    alone, ratios = [], {PROMETHEUS: [], PAGE: []}
    for at in range(0, len(watcher.turns) - len(PATHS) + 1, len(PATHS)):
        times = {what: round_seconds(entries, begin, end)
                 for what, begin, end in watcher.turns[at:at + len(PATHS)]}
        if None in times.values():
            continue
        alone.append(times[NOBODY])
        for what, found in ratios.items():
            found.append(times[what] / times[NOBODY])
    if not alone:
        raise SystemExit("scrape_cost.py: too few rounds; ask for more --seconds")
    print(f"{machine()}, {commit()}")
    print(f"round time without requests: {spread([1000 * each for each in alone], 1)} ms")
    for what, found in ratios.items():
        print(f"  {what}: {spread(found, 3)} of it")
    for path, took in watcher.took.items():
        if path != "healthz":
            print(f"one /{path}, {watcher.sizes[path]:,} bytes: "
                  f"{spread([1000 * each for each in took], 1)} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps(
            {"benchmark": "scrape_cost", "machine": machine(), "commit": commit(), "round_s": alone,
             "ratios": ratios, "request_s": watcher.took}) + "\n")


if __name__ == "__main__":
    main()
