#!/usr/bin/env python3
"""Many processes on one machine: time until the end of the first round, and memory per worker.

A network of 7,850 numbers (one layer on MNIST), 150 workers, 2 servers, 200 partitions; round 1 is
over when server 0 has logged so. Reported are, for each run, the seconds from the start of `kumo launch`
until round 1 is over, the processor time that all processes took until then, the workers' peak of
resident memory (VmHWM; their median and the largest), and what they have of it for themselves (RssAnon,
the median). Each run unpacks the data anew.

  bench/many_workers.py [--runs N] [--workers N] [--servers M] [--partitions P] [--data DIR] [--bin DIR]
                        [--json FILE]
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

from jobs import commit, draw_data, logged, machine, parser

NETWORK = """name: "linear" input { channels: 1 height: 28 width: 28 }
layers { name: "fc" fully_connected { outputs: 10 } }
layers { name: "loss" softmax_cross_entropy {} }
"""
PATIENCE_S = 300


def processes(parent, program):
    """Folders of /proc of what `parent` has started."""
    for folder in pathlib.Path("/proc").iterdir():
        try:
            status = (folder / "status").read_text()
            command = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if f"PPid:\t{parent}\n" in status and command[0].endswith(program):
            yield folder, status


def mebibytes(what, status):
    return int(re.search(what + r":\s+(\d+)", status)[1]) / 1024


def processor_seconds(folder):
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(arguments, output):
    pathlib.Path("linear.pbtxt").write_text(NETWORK)
    settings = ["network.file=linear.pbtxt", f"data.directory={arguments.data}",
                f"output.directory={output}", f"data.cache={output}/cache",
                f"sync.partitions={arguments.partitions}",
                "sync.minibatch=5", "sync.mode=gradient", "output.interval_s=0.1",
                "sync.warmup_samples=0", "output.tensorboard=false", "job.epochs=1000"]
    began = time.time()
    job = subprocess.Popen(
        [arguments.bin / "kumo", "launch", "mnist_mlp", "--quiet", "--workers", str(arguments.workers),
         "--servers", str(arguments.servers), *[w for s in settings for w in ("--set", s)]])
    try:
        while True:
            time.sleep(.2)
            first = [e for e in logged(pathlib.Path(output, "log.jsonl"))
                     if e["kind"] == "progress" and e["round"] >= 1]
            if first:
                break
            if job.poll() is not None or time.time() - began > PATIENCE_S:
                raise SystemExit(f"no round was over in {time.time() - began:.0f} s")
        peaks, own, seconds = [], [], 0
        for folder, status in processes(job.pid, "kumo-worker"):
            peaks.append(mebibytes("VmHWM", status))
            own.append(mebibytes("RssAnon", status))
            seconds += processor_seconds(folder)
        for folder, _ in processes(job.pid, "kumo-server"):
            seconds += processor_seconds(folder)
        seconds += processor_seconds(pathlib.Path("/proc", str(job.pid)))
        return {"first_round_s": first[0]["wall_time"] - began, "round": first[0]["round"],
                "processor_s": seconds,
                "worker_mib": statistics.median(peaks), "largest_mib": max(peaks),
                "own_mib": statistics.median(own)}
    finally:
        job.terminate()
        job.wait()


def main():
    options = parser(__doc__, runs=3)
    options.add_argument("--workers", type=int, default=150)
    options.add_argument("--servers", type=int, default=2)
    options.add_argument("--partitions", type=int, default=200)
    arguments = options.parse_args()
    arguments.bin = arguments.bin.resolve()

    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        arguments.data = os.path.abspath(arguments.data)
        os.chdir(folder)
        print(f"{machine()}, commit {commit()}: {arguments.workers} workers, {arguments.servers} "
              f"servers, {arguments.partitions} partitions")
        rows = []
        for run in range(arguments.runs):
            rows.append(measure(arguments, f"out/{run}"))
            print("until the first round {first_round_s:5.1f} s, processor time {processor_s:5.1f} s, "
                  "a worker {worker_mib:4.0f} MiB (largest {largest_mib:.0f}), {own_mib:.0f} its own"
                  .format(**rows[-1]),
                  flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"benchmark": "many_workers", "machine": machine(),
                                              "commit": commit(), "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
