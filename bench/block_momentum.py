#!/usr/bin/env python3
"""(j) Effect of block mode's settings on the accuracy: docs/block_momentum.md.

LeNet on MNIST at a constant learning rate, for each combination of the lists that are given, each
with several seeds. Columns: the settings; rounds of the whole job, the warm-up's too; median,
lowest and highest validation accuracy at the job's end. One worker and one server compute it: the
result does not depend on them.

  bench/block_momentum.py [--partitions LIST] [--blocks LIST] [--momentum LIST] [--rates LIST]
                          [--warmup LIST] [--codecs LIST] [--samples N] [--epochs N]
                          [--learning-rate RATE] [--set SECTION.KEY=VALUE ...] [--runs N]
                          [--data DIR] [--bin DIR] [--json FILE]
"""
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from jobs import HERE, commit, draw_data, epochs, machine, parser

MINIBATCH = 64
# Of each list: the option, what it holds by default, the setting, and its column's name.
LISTS = (("--partitions", "2,8", "sync.partitions", "partitions"),
         ("--blocks", "50", "sync.block", "block"),
         ("--momentum", "0,.5,.75,.875", "block.momentum", "momentum"),
         ("--rates", "1", "block.learning_rate", "rate"),
         ("--warmup", "0", "sync.warmup_samples", "warm-up"),
         ("--codecs", "fp32", "sync.push_codec", "codec"))


def train(arguments, settings, seed, folder):
    """(rounds, validation accuracy) at the end of a job."""
    out = tempfile.mkdtemp(dir=folder)
    given = {**settings, "job.seed": seed, "job.epochs": arguments.epochs, "sync.mode": "block",
             "sync.minibatch": MINIBATCH, "block.rule": "block_momentum",
             "block.convention": "paper", "schedule.type": "constant",
             "schedule.learning_rate": arguments.learning_rate,
             "data.train_limit": arguments.samples, "data.directory": arguments.data,
             "evaluation.every_epochs": 0, "output.directory": out, "output.tensorboard": "false",
             "checkpoint.every_minutes": 0, **dict(more.split("=", 1) for more in arguments.set)}
    ended = subprocess.run(
        [arguments.bin / "kumo", "launch", HERE.parent / "experiments" / "mnist_lenet.conf",
         "--workers", "1", "--servers", "1",
         *[part for key, value in given.items() for part in ("--set", f"{key}={value}")]],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        sys.exit(f"block_momentum.py: kumo launch ended with {ended.returncode}: "
                 f"{ended.stderr.strip()}")
    last = epochs(pathlib.Path(out) / "log.jsonl")[-1]
    return last["round"], last["validation/main/accuracy"]


def main():
    options = parser(__doc__, runs=3)
    for option, default, setting, _ in LISTS:
        options.add_argument(option, default=default, metavar="LIST",
                             help=f"of {setting} (default {default})")
    options.add_argument("--samples", type=int, default=12800,
                         help="to train on (default 12800; 0: all)")
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--learning-rate", default=".05")
    options.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE",
                         help="one more setting of all jobs; may be repeated")
    arguments = options.parse_args()
    lists = [getattr(arguments, option[2:]).split(",") for option, *_ in LISTS]

    print(f"{machine()}, commit {commit()}; {arguments.samples or 'all'} samples, "
          f"{arguments.epochs} epochs, learning rate {arguments.learning_rate}"
          f"{''.join(', ' + more for more in arguments.set)}; {arguments.runs} seeds")
    print("".join(f"{name:>11s}" for *_, name in LISTS) + "   rounds   accuracy")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        for values in itertools.product(*lists):
            settings = {setting: value for (_, _, setting, _), value in zip(LISTS, values)}
            runs = [train(arguments, settings, seed, folder)
                    for seed in range(1, arguments.runs + 1)]
            rounds, accuracies = runs[0][0], [accuracy for _, accuracy in runs]
            rows.append({**settings, "rounds": rounds, "median": statistics.median(accuracies),
                         "min": min(accuracies), "max": max(accuracies)})
            print("".join(f"{value:>11s}" for value in values) +
                  f"{rounds:9d}   {rows[-1]['median']:.4f} "
                  f"({min(accuracies):.4f} .. {max(accuracies):.4f})", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "block_momentum", "machine": machine(), "commit": commit(),
            "samples": arguments.samples, "epochs": arguments.epochs,
            "learning_rate": arguments.learning_rate, "set": arguments.set, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
