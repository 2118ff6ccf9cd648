#!/usr/bin/env python3
"""(b) Scaling from one worker to two, compared with PyTorch DDP with two ranks over gloo.

LeNet, minibatches of 64, one thread per worker or rank. Kumo trains two partitions in block mode
(50 minibatches between two synchronisations, 1bit pushes), once with one worker and once with two:
the same mathematics. DDP synchronises every step, as it does. All contenders run in turn, several
times, as processes of their own; reported are medians and ranges of samples per second of the whole
job, taken between the first and the last block that ended after the start-up.

  bench/scaling.py [--bin DIR] [--data DIR] [--runs N] [--seconds S] [--json FILE]

--data: a data.directory with MNIST, or what `kumo-data digits` draws (the default draws one).
KUMO_TORCH_PYTHON names a Python that has PyTorch; without one only Kumo is measured, and said so.
"""
import json
import statistics
import tempfile

from jobs import commit, ddp, draw_data, find_torch, kumo, machine, parser


def main():
    options = parser(__doc__, runs=5, seconds=8)
    arguments = options.parse_args()
    python, version = find_torch()

    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        layout = None
        if python:
            trials = {name: ddp(python, "lenet", arguments, name) for name in ("channels_last", "contiguous")}
            layout = max(trials, key=trials.get)
        rates = {"kumo, 1 worker": [], "kumo, 2 workers": []}
        if python:
            rates[f"PyTorch {version} DDP, 2 ranks ({layout})"] = []
        for _ in range(arguments.runs):
            for name in rates:
                rates[name].append(ddp(python, "lenet", arguments, layout) if "DDP" in name else
                                   kumo(arguments, int(name.split()[1]), folder))

    print(f"{machine()}, commit {commit()}; {arguments.runs} runs in turn, samples/s")
    rows = []
    two = rates["kumo, 2 workers"]
    for name, values in rates.items():
        ratios = [t / v for t, v in zip(two, values)]
        rows.append({"name": name, "median": statistics.median(values), "min": min(values),
                     "max": max(values), "two_workers_over_it": statistics.median(ratios)})
        print(f"{name:44s} {rows[-1]['median']:9.0f}  ({min(values):.0f} .. {max(values):.0f})"
              f"   2 workers over it: {rows[-1]['two_workers_over_it']:.2f}")
    if not python:
        print("PyTorch is not there (KUMO_TORCH_PYTHON names a Python that has it): not compared")
    result = {"benchmark": "scaling", "machine": machine(), "commit": commit(), "rows": rows}
    if arguments.json:
        arguments.json.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
