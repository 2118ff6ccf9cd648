#!/usr/bin/env python3
"""(k) Training speed over a slow network: two workers and a server compared with PyTorch DDP, gloo.

A perceptron 784-W-W-1024-10 (W = 4096: 24 million parameters), minibatches of 64, one thread per
worker or rank, all on a loopback that lets through --rate in all. Kumo exchanges gradients after
every minibatch, or trains blocks of 10, half of one while the last one is exchanged; DDP exchanges
gradients, as they are or in half precision. All contenders run in turn; reported are medians and
ranges of samples per second of both workers.

Both ways of all connections share the loopback. Kumo's gradient mode sends 4 times the weights per
minibatch that way (two workers push and pull), DDP twice.

  bench/slow_network.py [--rate 1gbit] [--width W] [--runs N] [--seconds S] [--data DIR] [--bin DIR]
                        [--json FILE]

--rate needs root, util-linux and iproute2; without it the loopback is as it is. KUMO_TORCH_PYTHON
names a Python that has PyTorch; without one only Kumo is measured, and said so.
"""
import json
import pathlib
import statistics
import tempfile

from jobs import commit, ddp, draw_data, find_torch, in_slow_network, machine, parser, rate, run_job

BLOCKS = 10
CODED = ["sync.push_codec=1bit", "sync.pull_codec=fp16"]
ONE_BIT = ["sync.push_codec=1bit", "sync.pull_codec=1bit"]
# name: settings, minibatches a round
KUMO = {
    "gradients": (["sync.mode=gradient", "sync.push_codec=fp32"], 1),
    "gradients, 1bit pushes, fp16 pulls": (["sync.mode=gradient", *CODED], 1),
    f"blocks of {BLOCKS}": (["sync.push_codec=fp32"], BLOCKS),
    f"blocks of {BLOCKS}, 1bit pushes, fp16 pulls": (CODED, BLOCKS),
    "gradients, 1bit both ways": (["sync.mode=gradient", *ONE_BIT], 1),
    "gradients, 1bit both ways, delay 1": (["sync.mode=gradient", *ONE_BIT, "sync.overlap=1"], 1),
    f"blocks of {BLOCKS}, 1bit both ways": (ONE_BIT, BLOCKS),
    f"blocks of {BLOCKS}, 1bit both ways, overlap {BLOCKS // 2}":
        ([*ONE_BIT, f"sync.overlap={BLOCKS // 2}"], BLOCKS),
}
DDP = {"gradients": "none", "gradients, fp16": "fp16"}


def write_network(widths, folder):
    layers = "".join(
        f'layers {{ name: "fc{i}" fully_connected {{ outputs: {outputs} }} }}\n'
        f'layers {{ name: "relu{i}" relu {{}} }}\n' for i, outputs in enumerate(widths[1:-1]))
    file = pathlib.Path(folder) / "perceptron.pbtxt"
    file.write_text('name: "perceptron"\ninput { channels: 1 height: 28 width: 28 }\n' + layers +
                    f'layers {{ name: "scores" fully_connected {{ outputs: {widths[-1]} }} }}\n'
                    'layers { name: "loss" softmax_cross_entropy {} }\n')
    return file


def main():
    options = parser(__doc__, runs=3, seconds=15)
    options.add_argument("--rate", help="of the network, as tc writes it: 1gbit, 300mbit")
    options.add_argument("--width", type=int, default=4096, help="of the first two layers")
    arguments = in_slow_network(options)
    python, version = find_torch()
    widths = [784, arguments.width, arguments.width, 1024, 10]

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        network = f"network.file={write_network(widths, folder)}"
        for _ in range(arguments.runs):
            for name, (settings, block) in KUMO.items():
                entries = run_job(arguments, 2, folder, settings=[network, *settings], block=block)
                found.setdefault(f"Kumo, {name}", []).append(rate(entries, block))
            for name, hook in DDP.items() if python else ():
                measured = ddp(python, "-".join(map(str, widths)), arguments.seconds, hook=hook)
                found.setdefault(f"PyTorch {version} DDP, {name}", []).append(measured)

    print(f"{machine()}, network {arguments.rate or 'loopback'}, commit {commit()}; "
          f"{arguments.runs} runs in turn, samples/s")
    rows = [{"name": name, "median": statistics.median(rates), "min": min(rates),
             "max": max(rates)} for name, rates in found.items()]
    for row in rows:
        print(f"{row['name']:46s} {row['median']:8.0f}  ({row['min']:.0f} .. {row['max']:.0f})")
    if not python:
        print("PyTorch is not there (KUMO_TORCH_PYTHON names a Python that has it): not compared")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "slow_network", "machine": machine(), "commit": commit(),
            "network": arguments.rate or "loopback", "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
