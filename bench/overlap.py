#!/usr/bin/env python3
"""(i) Gain of pushing a gradient's chunks while the rest is still computed.

LeNet in gradient mode: 2 partitions, minibatches of 64, chunks of 256 KiB, two workers and one
server. A job that pushes chunks as they become final beside one that pushes all at the end, which
optimiser.clip_norm makes it do (its factor comes from all gradients; set so high that it never
clips). The two take turns; reported are medians and ranges of samples per second of the whole job
and of their ratio.

With --rate all of it runs in a network namespace of its own, whose loopback lets through that much;
needs root, util-linux and iproute2. What the sides gain is what the network can do beside the
computation: on this machine's own loopback, with no core to spare, they do not.

  bench/overlap.py [--rate 1gbit] [--codecs fp32,1bit] [--runs N] [--seconds S] [--data DIR]
                   [--bin DIR] [--json FILE]
"""
import json
import statistics
import tempfile

from jobs import commit, draw_data, in_slow_network, machine, parser, rate, run_job

NEVER_CLIPS = "optimiser.clip_norm=1e30"


def measure(arguments, codec, early, folder):
    settings = ["sync.mode=gradient", f"sync.push_codec={codec}", "cluster.chunk_kib=256"]
    if not early:
        settings.append(NEVER_CLIPS)
    return rate(run_job(arguments, 2, folder, settings=settings, block=1), 1)


def row(name, values):
    return {"name": name, "median": statistics.median(values), "min": min(values),
            "max": max(values)}


def main():
    options = parser(__doc__, runs=5, seconds=5)
    options.add_argument("--rate", help="of the network, as tc writes it: 1gbit, 300mbit")
    options.add_argument("--codecs", default="fp32,1bit", help="of the pushes (default fp32,1bit)")
    arguments = in_slow_network(options)

    network = arguments.rate or "loopback"
    codecs = arguments.codecs.split(",")
    found = {(codec, early): [] for codec in codecs for early in (True, False)}
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        for run in range(arguments.runs):
            for codec in codecs:
                for early in (True, False) if run % 2 == 0 else (False, True):
                    found[codec, early].append(measure(arguments, codec, early, folder))

    print(f"{machine()}, network {network}, commit {commit()}; {arguments.runs} runs in turn")
    print("pushes   as they are final          all at the end             ratio")
    rows = []
    for codec in codecs:
        early, late = found[codec, True], found[codec, False]
        rows += [row(f"{codec} early", early), row(f"{codec} at the end", late),
                 row(f"{codec} ratio", [e / l for e, l in zip(early, late)])]
        print(f"{codec:7s}" + "".join(f"{r['median']:8.0f} ({r['min']:.0f} .. {r['max']:.0f})".ljust(27)
                                      for r in rows[-3:-1]) +
              f"{rows[-1]['median']:6.2f} ({rows[-1]['min']:.2f} .. {rows[-1]['max']:.2f})")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "overlap", "machine": machine(), "commit": commit(), "network": network,
            "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
