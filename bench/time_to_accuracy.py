#!/usr/bin/env python3
"""(g) Time to a validation accuracy for LeNet on MNIST, from the start of the process.

Kumo runs `kumo launch` on experiments/mnist_lenet_sync.conf (one learner) and mnist_lenet.conf (two
partitions in block mode, two workers on one device); PyTorch trains as the first of them, eagerly
and, on a GPU, from a recorded graph (bench/torch_lenet.py). All run in turn, each time with another
seed, and are stopped at the first epoch whose validation reaches the target. Starting up, reading
the data and validating count: it is what a person waits for.

  bench/time_to_accuracy.py [--device cpu|cuda] [--target .99] [--runs N] [--data DIR] [--bin DIR]
                            [--json FILE]

--data: a folder with MNIST (default KUMO_DATA). KUMO_TORCH_PYTHON names a Python that has PyTorch;
without one only Kumo is timed, and said so.
"""
import contextlib
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from jobs import HERE, commit, draw_data, epochs, find_torch, machine, parser

LOOK_S, EPOCHS = 0.02, 20


def kumo(arguments, experiment, workers, seed, folder):
    """(seconds, epochs) to the target, or None."""
    out = pathlib.Path(folder) / f"{experiment}-{seed}"
    command = [arguments.bin / "kumo", "launch", HERE.parent / "experiments" / f"{experiment}.conf",
               "--workers", str(workers), "--servers", "1",
               "--set", f"output.directory={out}", "--set", f"data.directory={arguments.data}",
               "--set", f"network.device={arguments.device}", "--set", f"job.seed={seed}",
               "--set", f"job.epochs={EPOCHS}", "--set", "output.tensorboard=false"]
    if arguments.limit:
        command += ["--set", f"data.train_limit={arguments.limit}"]
    began = time.time()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            while True:
                ended = process.poll() is not None
                for entry in epochs(out / "log.jsonl"):
                    if entry["validation/main/accuracy"] >= arguments.target:
                        return entry["wall_time"] - began, entry["epoch"]
                if ended:
                    break
                time.sleep(LOOK_S)
        finally:
            process.terminate()
            process.wait()
        if process.returncode != 0:
            errors.seek(0)
            sys.exit(f"time_to_accuracy.py: kumo launch ended with {process.returncode}: "
                     f"{errors.read().strip()}")
    return None


def torch(arguments, python, mode, seed):
    began = time.time()
    done = subprocess.run(
        [python, HERE / "torch_lenet.py", "--data", arguments.data, "--device", arguments.device,
         "--mode", mode, "--target", str(arguments.target), "--seed", str(seed),
         "--epochs", str(EPOCHS), "--limit", str(arguments.limit)],
        capture_output=True, text=True)
    if done.returncode != 0:
        print(f"time_to_accuracy.py: PyTorch, {mode}: {done.stderr.strip().splitlines()[-1]}",
              file=sys.stderr)
        return None
    last = json.loads(done.stdout.splitlines()[-1])
    if last["accuracy"] < arguments.target:
        return None
    return last["wall_time"] - began, last["epoch"]


def main():
    options = parser(__doc__, runs=3)
    options.add_argument("--device", default="cpu")
    options.add_argument("--target", type=float, default=.99)
    options.add_argument("--limit", type=int, default=0, help="training samples (default: all)")
    arguments = options.parse_args()
    python, version = find_torch()

    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        contenders = {
            "kumo, one learner": lambda seed: kumo(arguments, "mnist_lenet_sync", 1, seed, folder),
            "kumo, 2 workers, blocks of 50": lambda seed: kumo(arguments, "mnist_lenet", 2, seed,
                                                               folder)}
        if python:
            for mode in ("eager",) if arguments.device == "cpu" else ("eager", "graph"):
                contenders[f"PyTorch {version} {mode}"] = (
                    lambda seed, mode=mode: torch(arguments, python, mode, seed))
        results = {name: [] for name in contenders}
        # What was measured before a Ctrl-C or a SIGTERM is reported.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            for seed in range(1, arguments.runs + 1):
                for name, run in contenders.items():
                    results[name].append(run(seed))

    print(f"{machine()}, {arguments.device}, commit {commit()}; seconds to {arguments.target:g} on "
          f"the validation set, {arguments.runs} runs in turn")
    rows = []
    for name, values in results.items():
        reached = [value for value in values if value]
        row = {"name": name, "runs": len(values), "reached": len(reached)}
        if reached:
            seconds, epochs = zip(*reached)
            row.update(median=statistics.median(seconds), min=min(seconds), max=max(seconds),
                       epochs=list(epochs))
            print(f"{name:34s} {row['median']:8.2f}  ({row['min']:.2f} .. {row['max']:.2f})   "
                  f"epochs {', '.join(map(str, epochs))}   reached in {len(reached)} of "
                  f"{len(values)}")
        else:
            print(f"{name:34s} not reached in {len(values)} runs of {EPOCHS} epochs, or failed")
        rows.append(row)
    if not python:
        print("PyTorch is not there (KUMO_TORCH_PYTHON names a Python that has it): not compared")
    result = {"benchmark": "time_to_accuracy", "machine": machine(), "commit": commit(),
              "device": arguments.device, "target": arguments.target, "rows": rows}
    if arguments.json:
        arguments.json.write_text(json.dumps(result) + "\n")
    # Whatever did not get there is a failure of Kumo's only.
    if any(row["name"].startswith("kumo") and not row["reached"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
