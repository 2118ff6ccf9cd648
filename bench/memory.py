#!/usr/bin/env python3
"""Memory that `kumo check` predicts for the processes, compared with their actual use.

Jobs of one epoch on this machine's CPU, two workers, each with other settings: MLP and LeNet as they
come, two servers that keep versions twice, large minibatches, and a network of 20 million weights whose
checkpoints are written all the time. Each process has the data in memory of its own. Reported for the
largest worker and server: the need, the peak of resident memory (VmHWM of /proc, read every 20 ms) and
need / peak.

  bench/memory.py [--only JOB ...] [--limit SAMPLES] [--data DIR] [--bin DIR] [--json FILE]
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import log_messages
from jobs import commit, draw_data, machine, parser

WIDE = """name: "wide" input { channels: 1 height: 28 width: 28 }
layers { name: "fc1" fully_connected { outputs: 4096 } }
layers { name: "relu" relu {} }
layers { name: "fc2" fully_connected { outputs: 4096 } }
layers { name: "fc3" fully_connected { outputs: 10 } }
layers { name: "loss" softmax_cross_entropy {} }
"""
# Name: experiment, servers, settings.
JOBS = {
    "MLP": ("mnist_mlp", 1, []),
    "LeNet, 1bit": ("mnist_lenet", 1, ["sync.warmup_samples=6400"]),
    "LeNet, two servers, replicas=2": ("mnist_lenet", 2, ["cluster.replicas=2"]),
    "LeNet, minibatch=4096 prefetch=64": (
        "mnist_lenet", 1, ["sync.minibatch=4096", "data.prefetch=64", "sync.warmup_samples=0"]),
    "LeNet, minibatch=1000000": ("mnist_lenet", 1, ["sync.minibatch=1000000"]),
    "wide, gradient": ("mnist_mlp", 1, ["network.file=wide.pbtxt", "checkpoint.every_rounds=5"]),
    "wide, block, 1bit": (
        "mnist_lenet", 1, ["network.file=wide.pbtxt", "checkpoint.every_rounds=5", "sync.block=10",
                           "sync.warmup_samples=640"]),
}


def command(arguments, program, *words):
    return [arguments.bin / program, *words]


def needs(arguments, experiment, servers, sets):
    said = subprocess.run(command(arguments, "kumo-worker", experiment, "--memory", "--servers",
                                  str(servers), *sets), check=True, capture_output=True, text=True)
    return {who: int(number) for who, number in
            log_messages.pattern("memory").findall(said.stdout)}


def look(parent, peaks):
    """Raises the peaks to those of the processes that `parent` has started."""
    for folder in pathlib.Path("/proc").iterdir():
        try:
            status = (folder / "status").read_text()
            program = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        peak = re.search(r"VmHWM:\s+(\d+)", status)
        if f"PPid:\t{parent}\n" not in status or not peak:
            continue
        for who in ("worker", "server"):
            if program[0].endswith("kumo-" + who) and "--memory" not in program:
                peaks[who] = max(peaks.get(who, 0), int(peak[1]) * 1024)


def measure(arguments, output, experiment, servers, settings):
    settings = ["job.epochs=1", f"data.train_limit={arguments.limit}",
                f"data.directory={arguments.data}", f"output.directory={output}",
                "data.cache=/dev/null", *settings]
    sets = [word for setting in settings for word in ("--set", setting)]
    need, peaks = needs(arguments, experiment, servers, sets), {}
    job = subprocess.Popen(command(arguments, "kumo", "launch", experiment, "--quiet", "--servers",
                                   str(servers), *sets,))
    while job.poll() is None:
        look(job.pid, peaks)
        time.sleep(.02)
    if job.returncode:
        raise SystemExit(f"{experiment} {settings}: exit code {job.returncode}")
    return need, peaks


def main():
    options = parser(__doc__)
    options.add_argument("--only", action="append", help="one of the jobs, by its name; repeatable")
    options.add_argument("--limit", type=int, default=12800, help="training samples (default 12800)")
    arguments = options.parse_args()
    arguments.bin = arguments.bin.resolve()

    rows = []
    print(f"{machine()}, commit {commit()}; {arguments.limit} training samples; MiB")
    print(f"{'job':34s}  worker: need  peak  ratio   server: need  peak  ratio")
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        arguments.data = os.path.abspath(arguments.data)
        os.chdir(folder)
        pathlib.Path("wide.pbtxt").write_text(WIDE)
        for name in arguments.only or JOBS:
            need, peaks = measure(arguments, f"out/{len(rows)}", *JOBS[name])
            rows.append({"name": name, "need": need, "peak": peaks})
            shown = [f"{need[who] / 2**20:12.0f} {peaks[who] / 2**20:5.0f} "
                     f"{need[who] / peaks[who]:6.2f}" for who in ("worker", "server")]
            print(f"{name:34s}  {'  '.join(shown)}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"benchmark": "memory", "machine": machine(),
                                              "commit": commit(), "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
