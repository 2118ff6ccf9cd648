#!/usr/bin/env python3
"""(x) What Kumo costs a script of PyTorch: one worker beside the bare script, and two workers beside PyTorch
DDP (gloo).

Every process trains the same network on a random minibatch of 64 with one thread. Runs alternate: the bare
script, Kumo, DDP, ...; reported are the medians and ranges of samples per second and of the ratios of
neighbouring runs; the processor time of a sample in the training process, which other load on the machine
changes less; and the most memory that a process had. --rate gives the loopback a rate.

  bench/python_overhead.py [--rate 1gbit] [--network N] [--only WORDS] [--runs N] [--seconds S]
                           [--bin DIR] [--json FILE]

KUMO_TORCH_PYTHON names the Python that has PyTorch. --rate needs root, util-linux and iproute2.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from jobs import HERE, MINIBATCH, Ranks, commit, find_torch, in_slow_network, machine, parser

WIDTHS = "784-2048-2048-1024-10"  # 8 million parameters
ONE_BIT = ["sync.push_codec=1bit", "sync.pull_codec=1bit"]
# name: settings
KUMO = {
    "blocks of 50": ["sync.mode=block", "sync.block=50"],
    "blocks of 50, 1bit both ways, overlap 10":
        ["sync.mode=block", "sync.block=50", "sync.overlap=10", *ONE_BIT],
    "gradients": ["sync.mode=gradient"],
    "gradients, 1bit both ways, delay 1": ["sync.mode=gradient", "sync.overlap=1", *ONE_BIT],
}


def results(folder, names):
    return [json.loads((folder / f"{name}.json").read_text()) for name in names]


def bare(python, network, arguments):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, HERE / "torch_own.py", "bare", network, str(arguments.seconds), folder],
                       check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return results(pathlib.Path(folder), ["bare"])[0]


def kumo(python, network, arguments, workers, settings):
    """Samples per second of all workers, and the most memory of one."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = f"'{python}' '{HERE / 'torch_own.py'}' kumo {network} {arguments.seconds} '{folder}'"
        settings = [f"output.directory={folder / 'out'}", "output.tensorboard=false",
                    f"sync.partitions={workers}", f"sync.minibatch={MINIBATCH}", "job.epochs=1000",
                    "checkpoint.every_minutes=0", "optimiser.type=momentum", "schedule.learning_rate=0.05",
                    *settings]
        (folder / "job.conf").write_text(f'[worker]\ncommand = "{program}"\n')
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [arguments.bin / "kumo", "launch", folder / "job.conf", "--workers", str(workers),
                 *[word for setting in settings for word in ("--set", setting)]],
                stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, "OMP_NUM_THREADS": "1"})
            names = [f"worker-{i}" for i in range(workers)]
            while not all((folder / f"{one}.json").exists() for one in names):
                if process.poll() is not None:
                    errors.seek(0)
                    sys.exit(f"python_overhead.py: kumo launch ended with {process.returncode}: "
                             f"{errors.read().strip()}")
                time.sleep(.5)
            process.terminate()
            process.wait()
        found = results(folder, names)
        return {"samples_per_s": sum(one["samples_per_s"] for one in found),
                "processor_us": statistics.mean(one["processor_us"] for one in found),
                "most_mib": max(one["most_mib"] for one in found)}


def ddp_figures(python, network, arguments):
    with Ranks(python, network, arguments) as ranks:
        return {"samples_per_s": ranks.measure()[0], "most_mib": ranks.memory()}


def summary(numbers):
    return {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers)}


def main():
    options = parser(__doc__, runs=5, seconds=10)
    options.add_argument("--rate", help="of the loopback, as tc writes it: 1gbit, 300mbit")
    options.add_argument("--network", default="lenet",
                         help=f"lenet (the default), or a perceptron's widths, such as {WIDTHS}")
    options.add_argument("--only", default="", help="measure only Kumo's rows whose name has these words")
    arguments = in_slow_network(options)
    python, version = find_torch()
    if python is None:
        print("python_overhead.py: PyTorch is not there; KUMO_TORCH_PYTHON names a Python that has it")
        return
    network = arguments.network
    # By name, a list of each: samples_per_s, ratio, processor_us, processor_ratio, most_mib.
    rows = {}

    def note(name, found, beside):
        row = rows.setdefault(name, {})
        for key, value in found.items():
            row.setdefault(key, []).append(value)
        if found is not beside:
            row.setdefault("ratio", []).append(found["samples_per_s"] / beside["samples_per_s"])
        if found is not beside and "processor_us" in beside:
            row.setdefault("processor_ratio", []).append(found["processor_us"] / beside["processor_us"])

    for _ in range(arguments.runs):
        alone = bare(python, network, arguments)
        note("bare script", alone, alone)
        for name in ("blocks of 50", "gradients"):
            if arguments.only in f"1 worker, {name}":
                note(f"Kumo, 1 worker, {name}", kumo(python, network, arguments, 1, KUMO[name]), alone)
        two = {name: settings for name, settings in KUMO.items() if arguments.only in f"2 workers, {name}"}
        if two:
            rival = ddp_figures(python, network, arguments)
            note("DDP, 2 ranks", rival, rival)
        for name, settings in two.items():
            note(f"Kumo, 2 workers, {name}", kumo(python, network, arguments, 2, settings), rival)

    print(f"{machine()}, PyTorch {version}, {network}, network {arguments.rate or 'loopback'}, "
          f"commit {commit()}; {arguments.runs} runs of {arguments.seconds:g} s in turn")
    print("ratio: 1 worker to the bare script, 2 workers to DDP")
    forms = {"samples_per_s": "{:.0f} samples/s ({:.0f} .. {:.0f})", "ratio": "ratio {:.3f} ({:.3f} .. {:.3f})",
             "processor_us": "processor {:.0f} us a sample ({:.0f} .. {:.0f})",
             "processor_ratio": "ratio {:.3f} ({:.3f} .. {:.3f})", "most_mib": "{:.0f} MiB ({:.0f} .. {:.0f})"}
    for name, row in rows.items():
        print(name)
        for key, form in forms.items():
            if key in row:
                print("  " + form.format(*summary(row[key]).values()))
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "python_overhead", "machine": machine(), "commit": commit(), "torch": version,
            "layers": network, "network": arguments.rate or "loopback",
            "rows": {name: {key: summary(values) for key, values in row.items()}
                     for name, row in rows.items()}}) + "\n")


if __name__ == "__main__":
    main()
