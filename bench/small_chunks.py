#!/usr/bin/env python3
"""(l) Cost of many small chunks.

The perceptron of mnist_mlp (1,796,010 numbers) for a few rounds, in chunks of 64 KiB and of 2 KiB:
111 and 3,510 of them, each pushed by every partition in every round. The two take turns; reported
are medians and ranges of a whole job's seconds, its start included, and of their ratio.

  bench/small_chunks.py [--rounds N] [--runs N] [--data DIR] [--bin DIR] [--json FILE]
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from jobs import HERE, commit, draw_data, machine, parser

MINIBATCH = 10
LARGE, SMALL = 64, 2  # KiB
CASES = [(2, 2, 1), (4, 1, 1), (2, 2, 2)]  # partitions, workers, replicas


def seconds(arguments, chunk_kib, case, folder):
    partitions, workers, replicas = case
    samples = arguments.rounds * partitions * MINIBATCH
    begin = time.monotonic()
    ended = subprocess.run(
        [arguments.bin / "kumo", "launch", HERE.parent / "experiments" / "mnist_mlp.conf", "--quiet",
         "--workers", str(workers), "--servers", str(replicas)] +
        [part for setting in [
            f"output.directory={pathlib.Path(folder) / str(time.monotonic_ns())}",
            f"data.directory={arguments.data}", f"data.train_limit={samples}",
            "data.validation_limit=100", "job.epochs=1", f"sync.partitions={partitions}",
            f"sync.minibatch={MINIBATCH}", f"cluster.chunk_kib={chunk_kib}",
            f"cluster.replicas={replicas}"] for part in ("--set", setting)],
        capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"small_chunks.py: kumo launch ended with {ended.returncode}: {ended.stderr}")
    return time.monotonic() - begin


def text(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} .. {max(values):.2f})"


def main():
    options = parser(__doc__, runs=5)
    options.add_argument("--rounds", type=int, default=5, help="of each job (default 5)")
    arguments = options.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        for case in CASES:
            found = {LARGE: [], SMALL: []}
            for run in range(arguments.runs):
                for chunk_kib in (LARGE, SMALL) if run % 2 == 0 else (SMALL, LARGE):
                    found[chunk_kib].append(seconds(arguments, chunk_kib, case, folder))
            rows.append({"partitions": case[0], "workers": case[1], "replicas": case[2],
                         "large_s": found[LARGE], "small_s": found[SMALL],
                         "ratio": [s / l for s, l in zip(found[SMALL], found[LARGE])]})
    print(f"{machine()}, commit {commit()}; {arguments.rounds} rounds, {arguments.runs} runs in turn")
    print(f"partitions  workers  replicas  {f's, {LARGE} KiB':22s}{f's, {SMALL} KiB':22s}ratio")
    for row in rows:
        print(f"{row['partitions']:10d}{row['workers']:9d}{row['replicas']:10d}  "
              f"{text(row['large_s']):22s}{text(row['small_s']):22s}{text(row['ratio'])}")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "small_chunks", "machine": machine(), "commit": commit(),
            "rounds": arguments.rounds, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
