#!/usr/bin/env python3
"""Cost of `kumo trace` for a job while it records: LeNet on two workers and two servers, short
blocks, so that there is much to record; the same job without it, in turn.

  bench/trace_cost.py [--block MINIBATCHES] [--runs N] [--seconds S] [--data DIR] [--bin DIR] [--json FILE]

Prints samples a second without and with, and their ratio: median and range of the runs.
"""
import json
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

import log_messages
from jobs import commit, draw_data, machine, parser, rate, run_job


def address_of(folder):
    """Server 0's, when it has said it listens."""
    for _ in range(200):
        for log in pathlib.Path(folder).glob("kumo-*/logs/server-0.*.log"):
            found = log_messages.pattern("listens").search(log.read_text())
            if found:
                return found.group(1)
        time.sleep(0.05)
    raise SystemExit("trace_cost.py: no server has logged its address")


def trace_all_along(arguments, folder, spans):
    """As long as the job goes on."""
    address = address_of(folder)
    while True:
        done = subprocess.run([arguments.bin / "kumo", "trace", address, "--seconds", "2",
                               "--output", folder + "/trace.json"], capture_output=True, text=True)
        if done.returncode != 0:
            return
        spans.append(int(done.stderr.split()[0]))


def run(arguments, traced):
    with tempfile.TemporaryDirectory() as folder:
        spans = []
        tracing = threading.Thread(target=trace_all_along, args=(arguments, folder, spans))
        if traced:
            tracing.start()
        entries = run_job(arguments, 2, folder, servers=2, block=arguments.block)
        if traced:
            tracing.join()
        return rate(entries, arguments.block), sum(spans) / max(1, 2 * len(spans))


def main():
    options = parser(__doc__, runs=3, seconds=8)
    options.add_argument("--block", type=int, default=2,
                         help="minibatches of a block, one block a round (default 2)")
    arguments = options.parse_args()
    without, ratios, spans = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        for _ in range(arguments.runs):
            off, _ = run(arguments, False)
            on, of_a_second = run(arguments, True)
            without.append(off)
            ratios.append(on / off)
            spans.append(of_a_second)
    print(f"{machine()}, {commit()}")
    print(f"without: {statistics.median(without):,.0f} samples/s; while {statistics.median(spans):,.0f} "
          f"spans a second are recorded: {statistics.median(ratios):.3f} of it "
          f"({min(ratios):.3f} - {max(ratios):.3f})")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(
            {"without": without, "ratios": ratios, "spans_per_second": spans}))


if __name__ == "__main__":
    main()
