#!/usr/bin/env python3
"""Cost of fault tolerance in a run without faults.

LeNet on two workers and two servers, as in scaling.py, with and without heartbeats every second,
checkpoints every minute, and each version kept twice (cluster.replicas=2). All contenders run in
turn, several times; reported are medians and ranges of samples per second, and the median of each
run's ratio to the run with all of it off just before it. Checkpoints only count where a run takes
longer than a minute.

  bench/safety_cost.py [--bin DIR] [--data DIR] [--runs N] [--seconds S] [--json FILE]
"""
import json
import statistics
import tempfile

from jobs import commit, draw_data, kumo, machine, parser

OFF = ["cluster.heartbeat_s=1800", "cluster.suspect_after_s=3600", "checkpoint.every_minutes=0"]
ON = ["cluster.heartbeat_s=1", "checkpoint.every_minutes=1"]
CONTENDERS = {
    "all off": OFF,
    "heartbeats, checkpoints": ON,
    "heartbeats, checkpoints, replicas": [*ON, "cluster.replicas=2"],
}


def main():
    options = parser(__doc__, runs=5, seconds=65)
    arguments = options.parse_args()

    rates = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        for _ in range(arguments.runs):
            for name, settings in CONTENDERS.items():
                rates[name].append(kumo(arguments, 2, folder, servers=2, settings=settings))

    print(f"{machine()}, commit {commit()}; {arguments.runs} runs in turn of {arguments.seconds:g} s, "
          "samples/s")
    rows = []
    for name, values in rates.items():
        ratios = [value / off for value, off in zip(values, rates["all off"])]
        rows.append({"name": name, "median": statistics.median(values), "min": min(values),
                     "max": max(values), "ratio": statistics.median(ratios)})
        print(f"{name:36s} {rows[-1]['median']:8.0f}  ({min(values):.0f} .. {max(values):.0f})"
              f"   ratio {rows[-1]['ratio']:.3f}  ({min(ratios):.3f} .. {max(ratios):.3f})")
    if arguments.json:
        arguments.json.write_text(json.dumps({"benchmark": "safety_cost", "machine": machine(),
                                              "commit": commit(), "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
