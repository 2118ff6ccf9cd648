#!/usr/bin/env python3
"""(v) Cost of a worker that pauses: gradient mode, with a delay, and async mode.

LeNet, 2 partitions, minibatches of 64, two workers and a server. One worker is stopped (SIGSTOP) for
--pause seconds in every --period. Each mode runs undisturbed and with the pauses; reported are the
medians and ranges of samples per second, and the ratio. Each partition has its share of each epoch,
so the other worker can go on by as much as the mode lets it be ahead, and then waits.

  bench/straggler.py [--pause S] [--period S] [--modes NAME,...] [--runs N] [--seconds S] [--data DIR]
                     [--bin DIR] [--json FILE]
"""
import json
import os
import pathlib
import signal
import statistics
import tempfile
import threading

from jobs import commit, draw_data, machine, parser, rate, run_job

MODES = {
    "gradient": ["sync.mode=gradient"],
    "delay-8": ["sync.mode=gradient", "sync.overlap=8"],
    "async-8": ["sync.mode=async", "sync.staleness=8"],
    "async-200": ["sync.mode=async", "sync.staleness=200"],
    "async-1000": ["sync.mode=async", "sync.staleness=1000"],
}


def workers_below(pid):
    """Process numbers of the kumo-workers that this process and its children have started."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            try:
                name = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
            except OSError:  # it has ended
                continue
            found += [int(child)] if name == "kumo-worker" else []
            found += workers_below(int(child))
    return found


class Pauses(threading.Thread):
    """Stops the youngest worker again and again, until it is told to end."""

    def __init__(self, pause, period):
        super().__init__()
        self.pause, self.period, self.over = pause, period, threading.Event()

    def run(self):
        while not self.over.wait(self.period - self.pause):
            workers = workers_below(os.getpid())
            if not workers:
                continue
            os.kill(max(workers), signal.SIGSTOP)
            self.over.wait(self.pause)
            os.kill(max(workers), signal.SIGCONT)


def measure(arguments, mode, paused, folder):
    pauses = Pauses(arguments.pause, arguments.period) if paused else None
    if pauses:
        pauses.start()
    try:
        entries = run_job(arguments, 2, folder, settings=[*MODES[mode], "schedule.learning_rate=0.002"],
                          block=1)
    finally:
        if pauses:
            pauses.over.set()
            pauses.join()
    return rate(entries, 1)


def main():
    options = parser(__doc__, runs=3, seconds=30)
    options.add_argument("--pause", type=float, default=1, help="seconds (default 1)")
    options.add_argument("--period", type=float, default=10, help="seconds (default 10)")
    options.add_argument("--modes", default=",".join(MODES), help=f"of {', '.join(MODES)}")
    arguments = options.parse_args()

    modes = arguments.modes.split(",")
    found = {(mode, paused): [] for mode in modes for paused in (False, True)}
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        for _ in range(arguments.runs):
            for mode, paused in found:
                found[mode, paused].append(measure(arguments, mode, paused, folder))

    print(f"{machine()}, a worker paused {arguments.pause} s in {arguments.period} s, commit {commit()}; "
          f"{arguments.runs} runs in turn")
    print("mode              undisturbed              paused                   ratio")
    rows = []
    for mode in modes:
        columns = []
        pairs = zip(found[mode, False], found[mode, True])
        for name, values in (("undisturbed", found[mode, False]), ("paused", found[mode, True]),
                             ("ratio", [paused / whole for whole, paused in pairs])):
            row = {"name": f"{mode} {name}", "median": statistics.median(values),
                   "min": min(values), "max": max(values)}
            rows.append(row)
            form = ".2f" if name == "ratio" else ",.0f"
            columns.append(f"{row['median']:{form}} ({row['min']:{form}} .. {row['max']:{form}})")
        print(f"{mode:<16}  {columns[0]:<23}  {columns[1]:<23}  {columns[2]}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"benchmarks": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
