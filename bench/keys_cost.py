#!/usr/bin/env python3
"""(n) Cost of encryption keys for a job: two workers and a server, with cluster.keys and without, in turn.

A perceptron 784-W-W-1024-10 (W = 4096: 24 million parameters), minibatches of 64, one thread per
worker: gradients after every minibatch, which is all that a network can be asked for, and blocks of
10 with 1bit pushes and fp16 pulls. Reported are medians and ranges of samples per second of both
workers.

  bench/keys_cost.py [--rate 1gbit] [--width W] [--runs N] [--seconds S] [--data DIR] [--bin DIR]
                     [--json FILE]

With --rate (root, util-linux, iproute2) all connections share a loopback that lets so much through,
both ways together; without it the loopback is as it is. bench/push_pull has the transport alone.
"""
import json
import pathlib
import statistics
import subprocess
import tempfile

from jobs import commit, draw_data, in_slow_network, machine, parser, rate, run_job
from slow_network import write_network

# name: settings, minibatches a round
JOBS = {"gradients": (["sync.mode=gradient", "sync.push_codec=fp32"], 1),
        "blocks of 10, 1bit pushes, fp16 pulls":
            (["sync.push_codec=1bit", "sync.pull_codec=fp16"], 10)}


def main():
    options = parser(__doc__, runs=3, seconds=15)
    options.add_argument("--rate", help="of the network, as tc writes it: 1gbit, 300mbit")
    options.add_argument("--width", type=int, default=4096, help="of the first two layers")
    arguments = in_slow_network(options)

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        keys = pathlib.Path(folder) / "keys"
        subprocess.run([arguments.bin / "kumo", "keys", keys, "--workers", "2"], check=True,
                       stdout=subprocess.DEVNULL)
        file = write_network([784, arguments.width, arguments.width, 1024, 10], folder)
        for _ in range(arguments.runs):
            for name, (settings, block) in JOBS.items():
                for whether, more in (("without keys", []), ("with keys", [f"cluster.keys={keys}"])):
                    entries = run_job(arguments, 2, folder, block=block,
                                      settings=[f"network.file={file}", *settings, *more])
                    found.setdefault(f"{name}, {whether}", []).append(rate(entries, block))

    print(f"{machine()}, network {arguments.rate or 'loopback'}, commit {commit()}; "
          f"{arguments.runs} runs in turn, samples/s")
    rows = [{"name": name, "median": statistics.median(rates), "min": min(rates),
             "max": max(rates)} for name, rates in found.items()]
    for row in rows:
        print(f"{row['name']:54s} {row['median']:8.0f}  ({row['min']:.0f} .. {row['max']:.0f})")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "keys_cost", "machine": machine(), "commit": commit(),
            "network": arguments.rate or "loopback", "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
