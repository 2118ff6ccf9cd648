#!/usr/bin/env python3
"""Goodput under kills: the useful speed of a job of Python workers while one of its processes is killed
every minute, beside PyTorch DDP below torchrun, which starts all ranks again from their last checkpoint, and
beside torchft, whose other replica goes on alone and gives its state to the new one.

Kumo: two workers of goodput_program.py and two servers with cluster.replicas=2, in blocks of 50 minibatches;
SIGKILL goes to a worker and to a server in turn, server 0 included. DDP: two ranks of the same model over gloo,
a checkpoint every --checkpoint-steps steps; SIGKILL goes to the ranks in turn. torchft: two replicas of one rank
over gloo below a lighthouse with the settings of its documentation; SIGKILL goes to the replicas in turn, which
are started again at once. Each side first runs undisturbed for --undisturbed minutes, which gives its own full speed.

Columns:
  full speed    samples/s of the undisturbed run
  goodput       useful samples per second of the disturbed run, as a share of the full speed; samples that
                are computed again count once
  goes on after seconds from a kill until the job is two rounds (12,800 samples) beyond where it was:
                median, maximum; "never" if it was not when the measurement ended
  lost per kill seconds of full speed that a kill costs, from one kill to the next: median, maximum
  again         samples that were computed and have no effect, of how many useful ones; up to 6,400 are those
                of the round in progress

KUMO_TORCH_PYTHON names a Python that has PyTorch; without it the workers use numpy (KUMO_ONNX_PYTHON), and DDP
is left out, as is torchft if that Python lacks it. Prints a table and one line of JSON. Exit code 1 if a job
ended, or if Kumo's stood still after a kill; 77 without numpy.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from jobs import HERE, commit, find_torch, logged, machine

MINIBATCH, BLOCK, PARTITIONS = 64, 50, 2
ROUND = MINIBATCH * BLOCK * PARTITIONS  # samples
PROGRAM = HERE / "goodput_program.py"
LOOK_S = 0.05
STEADY_S = 3      # from the first progress to the measurement, at most
LIMIT_S = 120     # of any progress


def children(parent):
    """{name: process id} of the servers, workers and ranks that a process has started."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) != parent:
                continue
            words = (folder / "cmdline").read_text().split("\0")
            environment = dict(line.split("=", 1) for line in
                               (folder / "environ").read_text().split("\0") if "=" in line)
        except OSError:  # it has ended
            continue
        if words[0].endswith("kumo-server"):
            found[f"server-{words[words.index('--index') + 1]}"] = int(folder.name)
        elif "KUMO_WORKER_NAME" in environment:
            found[environment["KUMO_WORKER_NAME"]] = int(folder.name)
        elif "RANK" in environment:
            found[f"rank-{environment['RANK']}"] = int(folder.name)
        elif "REPLICA_GROUP_ID" in environment:
            found[f"replica-{environment['REPLICA_GROUP_ID']}"] = int(folder.name)
    return found


def version_of(python, package):
    """Empty if it is not there."""
    asked = f"import {package}, importlib.metadata as m; print(m.version('{package}'))"
    return subprocess.run([python, "-c", asked], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout.strip()


class Side:
    """A job. A context manager that leaves no process running."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ, GOODPUT_FOLDER=str(folder), OMP_NUM_THREADS="1",
                                OMP_WAIT_POLICY="PASSIVE", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

    def __enter__(self):
        self.folder.mkdir()
        self.printed = open(self.folder / "printed", "w")
        self.process = subprocess.Popen(self.command(), cwd=self.folder, env=self.environment,
                                        stdin=subprocess.DEVNULL, stdout=self.printed,
                                        stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_):
        # What these programs started ends with them, or is ended here.
        started = children(self.process.pid)
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for process in started.values():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.printed.close()

    def computed(self):
        """Samples that all processes have computed, dead ones included."""
        return sum(int(file.read_text() or 0) for file in self.folder.glob("count-*"))

    def check(self):
        if self.process.poll() is not None:
            self.give_up(f"the job ended with {self.process.returncode}")

    def give_up(self, words):
        printed = (self.folder / "printed").read_text().splitlines()[-20:]
        sys.exit("\n".join([f"goodput.py: {words}; it has printed:", *printed]))


class Kumo(Side):
    victims = ("worker-0", "server-1", "worker-1", "server-0")

    def __init__(self, folder, arguments, python):
        super().__init__(folder)
        self.bin, self.python = arguments.bin, python

    def command(self):
        (self.folder / "job.conf").write_text(
            f"[job]\nepochs = 100000\n[worker]\ncommand = \"'{self.python}' '{PROGRAM}'\"\n"
            f"[sync]\nmode = block\npartitions = {PARTITIONS}\nminibatch = {MINIBATCH}\nblock = {BLOCK}\n"
            "warmup_samples = 0\npush_codec = 1bit\n[cluster]\nreplicas = 2\n"
            f"[output]\ndirectory = out\ninterval_s = {LOOK_S}\ntensorboard = false\n")
        return [self.bin / "kumo", "launch", "job.conf", "--workers", "2", "--servers", "2",
                "--max-restarts", "100000"]

    def useful(self):
        """Samples of the rounds that are closed."""
        log = self.folder / "out/log.jsonl"
        try:
            with open(log, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
                lines = file.read().decode(errors="replace").splitlines(keepends=True)
        except OSError:
            return 0
        for line in reversed(lines):
            if line.startswith("{") and line.endswith("\n") and '"progress"' in line:
                return int(json.loads(line)["samples"])
        return max((int(entry["samples"]) for entry in logged(log) if entry["kind"] == "progress"), default=0)


class Ddp(Side):
    victims = ("rank-0", "rank-1")

    def __init__(self, folder, arguments, python):
        super().__init__(folder)
        self.python = python
        self.environment.update(GOODPUT_CHECKPOINT_STEPS=str(arguments.checkpoint_steps),
                                GLOO_SOCKET_IFNAME="lo")

    def command(self):
        return [self.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
                "--max_restarts", "100000", "--monitor_interval", "0.1", PROGRAM]

    def useful(self):
        try:
            return int((self.folder / "progress-0").read_text() or 0)
        except OSError:
            return 0


class Torchft(Side):
    victims = ("replica-0", "replica-1")

    def __init__(self, folder, arguments, python):
        super().__init__(folder)
        self.python = python
        self.environment.update(GLOO_SOCKET_IFNAME="lo", TORCHFT_REPLICAS=str(PARTITIONS))

    def command(self):
        return [self.python, PROGRAM]

    def useful(self):
        """Samples of the minibatches that a replica knows to be committed."""
        return max((int(file.read_text() or 0) for file in self.folder.glob("progress-*")), default=0)


class Course:
    """Useful samples over time."""

    def __init__(self, side):
        self.side, self.points = side, []

    def look(self):
        self.side.check()
        self.points.append((time.monotonic(), self.side.useful()))
        return self.points[-1]

    def follow(self, until):
        while time.monotonic() < until:
            self.look()
            time.sleep(LOOK_S)

    def begin(self, steady_s):
        """Waits until the job is at its speed. Returns the time and samples."""
        if not self.wait(lambda: self.look()[1] > 0):
            self.side.give_up("the job does not begin")
        self.follow(time.monotonic() + steady_s)
        return self.look()

    def wait(self, condition):
        """Looks until the condition holds; False if that takes too long."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_S)
            self.look()
        return True

    def reached(self, samples, since):
        return next((when for when, there in self.points if when > since and there >= samples), None)


def measure(arguments, make):
    """The figures of a side."""
    steady_s = min(STEADY_S, arguments.undisturbed * 60)
    with make("undisturbed") as side:
        course = Course(side)
        begin, before = course.begin(steady_s)
        course.follow(begin + arguments.undisturbed * 60)
        end, after = course.look()
        speed = (after - before) / (end - begin)
    with make("disturbed") as side:
        course = Course(side)
        begin, before = course.begin(steady_s)
        kills = []
        next_kill, over = begin + arguments.kill_every / 2, begin + arguments.minutes * 60
        while next_kill < over:
            course.follow(next_kill)
            victim = side.victims[len(kills) % len(side.victims)]
            # After the kill before, it may be starting.
            if not course.wait(lambda: victim in children(side.process.pid)):
                side.give_up(f"{victim} is not started again")
            there = course.look()[1]
            os.kill(children(side.process.pid)[victim], signal.SIGKILL)
            kills.append((time.monotonic(), there, victim))
            print(f"killed {victim}", file=sys.stderr, flush=True)
            next_kill += arguments.kill_every
        course.follow(over)
        if kills:
            last = kills[-1]
            course.wait(lambda: course.reached(last[1] + 2 * ROUND, last[0]))
        end, after = course.look()
        computed = side.computed()
    going_on, lost = [], []
    for i, (when, there, _) in enumerate(kills):
        reached = course.reached(there + 2 * ROUND, when)
        going_on.append(None if reached is None else reached - when)
        until, then = (kills[i + 1][:2] if i + 1 < len(kills) else (end, after))
        lost.append((until - when) - (then - there) / speed)
    return {"samples_per_s": speed, "goodput": (after - before) / (end - begin) / speed,
            "kills": len(kills), "going_on_s": going_on, "lost_s": lost,
            "useful": after, "again": max(0, computed - after)}


def print_table(rows):
    lines = [("", "full speed", "kills", "goodput", "goes on after", "lost per kill", "again")]
    for name, row in rows.items():
        def pair(values):
            known = [value for value in values if value is not None]
            never = f", {len(values) - len(known)} never" if len(known) < len(values) else ""
            return f"{statistics.median(known):.1f} {max(known):.1f}{never}" if known else "-"
        lines.append((name, f"{row['samples_per_s']:.0f}/s", str(row["kills"]), f"{row['goodput']:.3f}",
                      pair(row["going_on_s"]), pair(row["lost_s"]), f"{row['again']} of {row['useful']}"))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build/release/bin")
    parser.add_argument("--minutes", type=float, default=15, help="of the disturbed runs (default 15)")
    parser.add_argument("--undisturbed", type=float, default=2, help="minutes (default 2)")
    parser.add_argument("--kill-every", type=float, default=60, help="seconds (default 60)")
    parser.add_argument("--checkpoint-steps", type=int, default=200, help="of DDP (default 200)")
    arguments = parser.parse_args()
    arguments.bin = arguments.bin.resolve()
    python, version = find_torch()
    if python is None:
        print("PyTorch is not there (KUMO_TORCH_PYTHON names a Python that has it): numpy, and not compared")
    kumo_python = python or os.environ.get("KUMO_ONNX_PYTHON", sys.executable)
    if not python and subprocess.run([kumo_python, "-c", "import numpy"], capture_output=True).returncode:
        print(f"skipped: {kumo_python} has no numpy (KUMO_ONNX_PYTHON names one that has)")
        return 77
    rows = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        rows["Kumo"] = measure(arguments, lambda name: Kumo(folder / name, arguments, kumo_python))
        if python:
            rows[f"PyTorch {version} DDP"] = measure(
                arguments, lambda name: Ddp(folder / f"ddp-{name}", arguments, python))
        torchft = python and version_of(python, "torchft")
        if torchft:
            rows[f"torchft {torchft}"] = measure(
                arguments, lambda name: Torchft(folder / f"torchft-{name}", arguments, python))
        else:
            print("torchft is not there: not compared")
    print_table(rows)
    print(json.dumps({"machine": machine(), "commit": commit(), "minutes": arguments.minutes,
                      "kill_every_s": arguments.kill_every, "checkpoint_steps": arguments.checkpoint_steps,
                      "sides": rows}))
    return 1 if None in rows["Kumo"]["going_on_s"] else 0


if __name__ == "__main__":
    sys.exit(main())
