#!/usr/bin/env python3
"""(t) Compute utilisation over slow links: hosts with a worker and a server each, replayed steps.

Compute utilisation (CU) is the time of the steps over the time that passes: 100 % if the network
costs nothing. THE COMPUTATION IS REPLAYED: a step is a sleep (replayed_worker.cc). Messages, codecs,
update rule and carried state are real, for a model of --parameters. Hosts are network namespaces of
this machine (links.py), so all processes share its processors: the last columns tell how busy these
are, of all cores, and the rate "unlimited" what CU is without a network.

Each job runs at one rate after the other. After a warm-up, --windows windows of --seconds, or of one
round if that is longer, give a median and a range.

  bench/grid.py [--rates 50,200,1000,5000,unlimited] [--delay-ms D] [--blocks 1,8,32,128]
                [--rows NAME,...] [--hosts N] [--parameters N] [--step-ms MS] [--windows N]
                [--seconds S] [--congestion NAME] [--set SECTION.KEY=VALUE] [--bin DIR]
                [--json FILE]

Beside it: torchft with DiLoCo in fp32, as published, for 30.8 million parameters, 4 workers, and
steps of 25 ms. Needs root, /dev/net/tun, iproute2 and util-linux.
"""
import collections
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from jobs import commit, machine, parser
from links import Links, address
from relay import Packets

# Settings of a row, from the steps of a block.
ROWS = {
    "fp32": lambda block: [],
    "1bit": lambda block: ["sync.push_codec=1bit", "sync.pull_codec=1bit"],
    "1bit+overlap": lambda block: ROWS["1bit"](block) + overlap(block // 2),
    "topk": lambda block: [f"sync.{way}_codec=topk" for way in ("push", "pull")] +
                          ["sync.topk_percent=1.6", "sync.topk_values=int4"],
    "topk+overlap": lambda block: ROWS["topk"](block) + overlap(block // 2),
    "topk2bit": lambda block: [f"sync.{way}_codec=topk2bit" for way in ("push", "pull")],
    "topk2bit+overlap": lambda block: ROWS["topk2bit"](block) + overlap(block // 2),
    # A minibatch is a step: blocks of 1. The delay is of one round.
    "gradient-fp16": lambda block: [f"sync.{way}_codec=fp16" for way in ("push", "pull")] +
                                   ["sync.mode=gradient"],
    "gradient-fp16+delay": lambda block: ROWS["gradient-fp16"](block) + overlap(1),
    "gradient-1bit": lambda block: ROWS["1bit"](block) + ["sync.mode=gradient"],
    "gradient-1bit+delay": lambda block: ROWS["gradient-1bit"](block) + overlap(1),
}
BLOCK_ROWS = [row for row in ROWS if not row.startswith("gradient")]
# CU in percent by rate in Mbit/s, then by steps of a block.
TORCHFT = {50: {1: .07, 8: .55, 32: 2.41, 128: 11.55}, 200: {1: .32, 8: 2.48, 32: 10.0, 128: 36.1},
           1000: {1: 1.74, 8: 12.35, 32: 36.0, 128: 71.5},
           5000: {1: 7.76, 8: 40.2, 32: 68.1, 128: 87.0}}
PUBLISHED_FOR = {"parameters": 30_800_000, "hosts": 4, "step_ms": 25}
EXPERIMENT = """[job]
epochs = 1
[network]
file = replayed
[sync]
mode = block
minibatch = 1
warmup_samples = 0
[block]
rule = block_momentum
nesterov = true
momentum = 0.9
learning_rate = 0.7
reset_local_state = false
[optimiser]
type = adamw
[checkpoint]
every_minutes = 0
[evaluation]
every_epochs = 0
[output]
interval_s = 0.02
tensorboard = false
[cluster]
insecure = true
"""
WARM_UP_ROUNDS, WARM_UP_S = 2, 2
PATIENCE_S = 900  # without a closed round
SKIPPED = 77
TICKS = os.sysconf("SC_CLK_TCK")


def overlap(steps):
    return [f"sync.overlap={steps}"] if steps else []


def write_experiment(folder):
    experiment = pathlib.Path(folder) / "replayed.conf"
    experiment.write_text(EXPERIMENT)
    return experiment


def processor_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / TICKS


def busy_seconds():
    """Processor time of this machine that was not idle, nor waited for a disk."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    return sum(int(field) for i, field in enumerate(fields) if i not in (3, 4)) / TICKS


class Job:
    """A job on hosts. A context manager that leaves no process running."""

    def __init__(self, arguments, links, experiment, settings, worker, folder):
        """experiment: its file; settings: "section.key=value"; worker: the command of a worker, without
        the experiment."""
        self.log, self.read_to = pathlib.Path(folder) / "out" / "log.jsonl", 0
        self.closed = time.time(), 0  # when the newest round was closed, and closed rounds
        self.links, self.processes = links, collections.defaultdict(list)
        self.errors = tempfile.TemporaryFile("w+")
        servers = ",".join(f"tcp://{address(host)}:7700" for host in range(arguments.hosts))
        settings = [f"sync.partitions={arguments.hosts}", f"cluster.workers={arguments.hosts}",
                    f"cluster.servers={servers}", f"output.directory={folder}/out", *settings]
        common = [experiment, *[word for setting in settings for word in ("--set", setting)]]
        for host in range(arguments.hosts):
            self.start("servers", host, [arguments.bin / "kumo-server", *common, "--index", host])
        for host in range(arguments.hosts):
            self.start("workers", host, [*worker, *common, "--name", f"worker-{host}"])

    def start(self, role, host, command):
        self.processes[role].append(self.links.popen(
            host, command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [p for role in self.processes.values() for p in role]:
            process.kill()
            process.wait()

    def rounds(self):
        """When the newest round was closed, and the number of closed rounds. Reads what is new in the
        log: this script must take no processor."""
        for role, processes in self.processes.items():
            for process in processes:
                if process.poll() is not None:
                    self.errors.seek(0)
                    sys.exit(f"grid.py: one of the {role} ended with {process.returncode}: "
                             f"{self.errors.read().strip()[-2000:]}")
        if self.log.exists():
            with self.log.open("rb") as file:
                file.seek(self.read_to)
                lines = file.read().splitlines(keepends=True)
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self.read_to += len(line)
                entry = json.loads(line)
                if entry["kind"] == "progress" and entry["round"] > self.closed[1]:
                    self.closed = entry["wall_time"], entry["round"]
        return self.closed

    def after(self, rounds, seconds):
        """Waits for so many more rounds and seconds. Returns the time and the rounds since."""
        began = self.rounds()
        last = time.time(), began[1]
        while True:
            time.sleep(.05 if seconds < 5 else .2)
            now = self.rounds()
            if now[1] - began[1] >= rounds and now[0] - began[0] >= seconds:
                return now[0] - began[0], now[1] - began[1]
            if now[1] != last[1]:
                last = time.time(), now[1]
            elif time.time() - last[0] > PATIENCE_S:
                sys.exit(f"grid.py: no round closed in {PATIENCE_S} s")

    def processor_seconds(self):
        found = {role: sum(processor_seconds(process.pid) for process in processes)
                 for role, processes in self.processes.items()}
        return {**found, "links": processor_seconds(self.links.process.pid), "all": busy_seconds()}

    def measure(self, arguments, rate, block):
        """One cell of the grid."""
        self.links.shape(rate * 1e6, arguments.delay_ms / 1e3 if rate else 0)
        self.after(WARM_UP_ROUNDS, WARM_UP_S)
        began, before = time.time(), self.processor_seconds()
        found = []
        for _ in range(arguments.windows):
            seconds, rounds = self.after(1, arguments.seconds)
            found.append(100 * rounds * block * arguments.step_ms / 1e3 / seconds)
        cores = (time.time() - began) * os.cpu_count() / 100
        after = self.processor_seconds()
        return {"cu": statistics.median(found), "min": min(found), "max": max(found),
                "processors": {role: (after[role] - before[role]) / cores for role in after}}


def main():
    options = parser(__doc__, seconds=3)
    options.add_argument("--rates", default="50,200,1000,5000,unlimited",
                         help="of each host's link, each way, Mbit/s")
    options.add_argument("--delay-ms", type=float, default=10, help="from host to host (default 10)")
    options.add_argument("--blocks", default="1,8,32,128", help="steps of a block")
    options.add_argument("--rows", default=",".join(BLOCK_ROWS),
                         help=f"of {', '.join(ROWS)} (default: those of blocks)")
    options.add_argument("--hosts", type=int, default=PUBLISHED_FOR["hosts"])
    options.add_argument("--parameters", type=int, default=PUBLISHED_FOR["parameters"])
    options.add_argument("--step-ms", type=float, default=PUBLISHED_FOR["step_ms"])
    options.add_argument("--congestion", default="cubic", help="control of TCP (default cubic)")
    options.add_argument("--windows", type=int, default=3, help="of each cell (default 3)")
    options.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE",
                         help="another setting of all jobs")
    arguments = options.parse_args()
    if lacking := Packets.missing():
        print(f"grid.py: no hosts can be made here: {lacking}")
        sys.exit(SKIPPED)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the processes too
    rates = [0 if rate == "unlimited" else float(rate) for rate in arguments.rates.split(",")]
    blocks = [int(block) for block in arguments.blocks.split(",")]
    published = all(getattr(arguments, key) == value for key, value in PUBLISHED_FOR.items())

    print(f"{machine()}, TCP {arguments.congestion}, commit {commit()}\n"
          f"{arguments.hosts} hosts with a worker and a server each, {arguments.parameters:,} "
          f"parameters, {arguments.delay_ms:g} ms from host to host;\ncomputation REPLAYED by sleeping "
          f"{arguments.step_ms:g} ms a step; {arguments.windows} windows of {arguments.seconds:g} s\n\n"
          "                                  CU, %                        torchft    processors, % of "
          "all cores\nMbit/s     block  row              median  (range)             published  all  "
          "workers servers links", flush=True)
    cells = []
    worker = [arguments.bin / "replayed_worker", "--parameters", arguments.parameters, "--step-ms",
              arguments.step_ms]
    for block in blocks:
        for row in arguments.rows.split(","):
            settings = [f"sync.block={block}", *ROWS[row](block), *arguments.set]
            with (tempfile.TemporaryDirectory() as folder,
                  Links(arguments.bin / "link_relay", arguments.hosts,
                        arguments.congestion) as links,
                  Job(arguments, links, write_experiment(folder), settings, worker,
                      folder) as job):
                job.after(WARM_UP_ROUNDS, 0)
                for rate in rates:
                    cell = job.measure(arguments, rate, block)
                    theirs = TORCHFT.get(rate, {}).get(block) if published else None
                    cells.append({"rate": rate, "block": block, "row": row, "torchft": theirs, **cell})
                    span = f"({cell['min']:.2f} .. {cell['max']:.2f})"
                    print(f"{f'{rate:g}' if rate else 'unlimited':9s} {block:6d}  {row:16s} "
                          f"{cell['cu']:6.2f}  {span:19s} {'' if theirs is None else theirs:>9}"
                          "{all:5.0f}{workers:9.0f}{servers:8.0f}{links:6.0f}"
                          .format(**cell["processors"]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "grid", "replayed": True, "machine": machine(), "commit": commit(),
            "hosts": arguments.hosts, "parameters": arguments.parameters,
            "step_ms": arguments.step_ms, "delay_ms": arguments.delay_ms, "cells": cells}) + "\n")


if __name__ == "__main__":
    main()
