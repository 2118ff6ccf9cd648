#!/usr/bin/env python3
"""Fault injection into running jobs: time to detection, time to recovery, and lost work.

LeNet in block mode with 1bit pushes and cluster.recovery=exact trains with several servers and two
workers while this program acts as the scheduler: it starts the processes, disturbs one of them at a
random moment, restarts ended processes, and reads logs and progress. Each pair FAULT:ROLE is
tried --tries times, many times in one job; each job's final weights are compared with those of an
undisturbed run of the same experiment.

  kill       SIGKILL; started again after a random pause
  lose       kill of a server with a disk of its own (--set checkpoint.disks=private), whose
             checkpoints are deleted
  terminate  SIGTERM to a worker, which hands over, leaves with 75 and is started again
  freeze     SIGSTOP, and SIGCONT after 1.5 to 3.5 times cluster.suspect_after_s
  cut        no traffic in either direction, for a time as of freeze
  oneway     no traffic in one direction, for a time as of freeze
  loss       30 % of the packets are lost, each way, for 5 s
  latency    packets are 300 ms late, each way, for 5 s

The roles are worker, server (any but server 0) and coordinator (server 0). The last four faults need
a network of bench/relay.py that can impair traffic, and `lose` needs the setting; a fault that is
impossible here is shown as "not here".

Columns, times in seconds, "MEDIAN MAXIMUM [in so many of the tries]":
  tried             faults done
  found after       from the fault to the first message about it in a log
  going on after    from the fault until a round later than the one then open is closed (looked at
                    every 0.05 s)
  again             rounds computed again because the job went back to a checkpoint
  ended themselves  processes that gave up and had to be restarted, in all tries together
  weights           whether all jobs ended with the undisturbed run's bits; with --accuracy-within,
                    whether they ended with its validation accuracy, within that much
  hung or lost      tries after which the job did not go on within --limit, or in which a process
                    crashed or ended with an exit code that forbids a restart

Exit code: 0; 1 if a job hung, was lost or ended with other weights (the logs of such jobs are
kept); 64 for bad arguments.
"""
import argparse
import collections
import contextlib
import datetime
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import log_messages
import relay
from jobs import HERE, commit, machine

ROLES = ("worker", "server", "coordinator")
FAULTS = {fault: ROLES for fault in ("kill", "freeze", "cut", "oneway", "loss", "latency")}
FAULTS["terminate"] = ("worker",)
FAULTS["lose"] = ("server", "coordinator")
FAULT_LASTS_S = 5             # loss, latency
PAUSE_S = (0.2, 3)            # until a restart: before or after the process is missed
LOOK_S, NEWS_S = 0.02, 0.1    # between two polls; until a closed round is visible
WARM_UP_ROUNDS = 20           # too short to tell which one was open at a fault
TRIES_HUNG = 3                # a pair is abandoned after this many
SETTINGS = {
    "data.train_limit": 12800, "data.validation_limit": 1000, "sync.block": 20,
    "sync.warmup_samples": WARM_UP_ROUNDS * 128, "evaluation.every_epochs": 5,
    "checkpoint.every_rounds": 5, "cluster.recovery": "exact",
    "cluster.suspect_after_s": 2, "cluster.heartbeat_s": 0.2,
    "cluster.insecure": "true", "output.interval_s": 0.05, "output.tensorboard": "false"}
WEIGHTS = {None: "-", True: "equal", False: "DIFFERENT"}
LOG_TIME = re.compile(r" [IWEF](\d{8} \d\d:\d\d:\d\d\.\d+) ")
FOUND = log_messages.pattern("fault")
WENT_BACK = log_messages.pattern("went back")


def newest_weights(output):
    """Version and weights (start and, where a rule keeps them apart, weights) of the newest
    checkpoint: docs/formats.md, "Shard file"."""
    manifest = max((output / "checkpoints").glob("round-*/MANIFEST"))
    vectors = collections.defaultdict(dict)
    for name in re.findall(r'files \{ name: "([^"]+)"', " ".join(manifest.read_text().split())):
        data = (manifest.parent / name).read_bytes()
        at = struct.unpack_from("<I", data, 12)[0]
        while data[at:at + 4] == b"KREC":
            kind, = struct.unpack_from("<I", data, at + 4)
            position, numbers = struct.unpack_from("<qq", data, at + 24)
            if kind in (1, 2):
                vectors[kind][position] = data[at + 48:at + 48 + 4 * numbers]
            at += 48 + 4 * numbers
    return manifest.parent.name, {kind: b"".join(part for _, part in sorted(parts.items()))
                                  for kind, parts in vectors.items()}


def last_accuracy(output):
    """Validation accuracy at the end of the last epoch; 0 without a validated epoch."""
    key = "validation/main/accuracy"
    entries = [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]
    return next((entry[key] for entry in reversed(entries) if key in entry), 0)


def same_result(arguments, output, reference):
    """Whether a job ended as the undisturbed one."""
    if arguments.accuracy_within is None:
        return newest_weights(output) == reference["weights"]
    accuracy = last_accuracy(output)
    print(f"validation accuracy {accuracy:.4f}, undisturbed {reference['accuracy']:.4f}",
          file=sys.stderr, flush=True)
    return abs(accuracy - reference["accuracy"]) <= arguments.accuracy_within


class Job:
    """The processes of one run of the experiment, their logs and their progress. A context manager that
    leaves no process running."""

    def __init__(self, arguments, network, folder):
        self.arguments, self.network, self.folder = arguments, network, folder
        self.output = folder / "out"
        self.processes, self.due, self.done, self.lost = {}, {}, set(), []
        self.gave_up = 0          # processes that ended by themselves, to be started again
        self.expected = {}        # nodes that this program ends -> expected exit code
        self.progress = []        # (time when it was seen, closed rounds, live workers)
        self.last_line = b""
        self.lines = []           # (wall time, "log's name: line") of all logs
        self.read_to = collections.Counter()
        self.highest, self.again, self.rounds = 0, 0, 0

    def __enter__(self):
        self.folder.mkdir()
        return self

    def start_all(self):
        for node in self.network.workers + self.network.servers:
            self.start(node)
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        for node in self.network.servers + self.network.workers:
            self.network.impair(node, relay.NONE)

    def start(self, node):
        settings = dict(self.arguments.settings)
        settings.update({"output.directory": self.output, "data.directory": self.arguments.data,
                         "cluster.workers": len(self.network.workers),
                         "cluster.servers": ",".join(self.network.addresses(node))})
        role, index = node.split("-")
        who = ["--name", node] if role == "worker" else [
            "--index", index, "--bind", self.network.bind(node)]
        if role == "server" and index != "0" and has_private_disks(self.arguments):
            who += ["--disk", self.disk(node)]
        command = [self.arguments.bin / f"kumo-{role}", self.arguments.experiment, *who]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        environment = dict(os.environ, KUMO_TERMINATION_LOG=str(self.folder / f"{node}.last-words"))
        with open(self.folder / f"{node}.printed", "ab") as printed:
            self.processes[node] = self.network.popen(
                node, [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=printed,
                stderr=subprocess.STDOUT, env=environment, start_new_session=True)

    def disk(self, node):
        """The checkpoint folder of a server with a disk of its own."""
        return self.output if node == "server-0" else self.folder / f"disk-{node}"

    def lose_disk(self, node):
        """Deletes the disk's contents except logs and curves, which this program reads. The server must not
        run."""
        shutil.rmtree(self.disk(node) / "checkpoints", ignore_errors=True)
        (self.disk(node) / "generation").unlink(missing_ok=True)

    def signal(self, node, number):
        if self.processes[node].poll() is None:
            self.processes[node].send_signal(number)

    def tend(self):
        """Restarts ended processes, and reads new log lines. Called often."""
        now = time.time()
        for node, process in list(self.processes.items()):
            if process.poll() is None or node in self.done or node in self.due:
                continue
            ours = process.returncode == self.expected.pop(node, None)
            if ours or process.returncode == 75:
                self.gave_up += not ours
                self.due[node] = now + self.arguments.random.uniform(*PAUSE_S)
                continue
            self.done.add(node)
            if process.returncode != 0:
                self.lost.append(f"{node} ended with {process.returncode}")
        for node in [node for node, due in self.due.items() if due <= now]:
            del self.due[node]
            self.start(node)
        self.read_progress()
        self.read_logs()

    def read_progress(self):
        """The end of log.jsonl. Its times are not used: they may be a second off."""
        with contextlib.suppress(OSError), open(self.output / "log.jsonl", "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 65536))
            lines = re.findall(rb'^{"round":.*"progress".*}\n', file.read(), re.MULTILINE)
            if lines and lines[-1] != self.last_line:
                self.last_line = lines[-1]
                entry = json.loads(lines[-1])
                self.progress.append((time.time(), entry["round"], entry["workers"]))
                self.rounds = entry["rounds"]
                self.highest = max(self.highest, entry["round"])

    def read_logs(self):
        new = []
        for log in (self.output / "logs").glob("*.log"):
            with open(log, errors="replace") as file:
                file.seek(self.read_to[log])
                text = file.read()
            text = text[:text.rfind("\n") + 1]
            self.read_to[log] += len(text.encode())
            for line in text.splitlines():
                if when := LOG_TIME.search(line):
                    when = datetime.datetime.strptime(when[1], "%Y%m%d %H:%M:%S.%f").timestamp()
                    new.append((when, line))
        for when, line in sorted(new):
            self.lines.append((when, line))
            back = WENT_BACK.search(line) if line.startswith("server-0") else None
            if back and self.highest:
                self.again += max(0, self.highest - int(back[1] or back[2]))
                self.highest = int(back[1] or back[2])

    def round(self):
        return self.progress[-1][1] if self.progress else 0

    def ended(self):
        return len(self.done) == len(self.processes)

    def wait(self, until, limit_s):
        """Tends until the condition holds; False if a process is lost or the limit comes first."""
        deadline = time.time() + limit_s
        while not until():
            if self.lost or time.time() > deadline:
                return False
            time.sleep(LOOK_S)
            self.tend()
        return True


def has_private_disks(arguments):
    return arguments.settings.get("checkpoint.disks") == "private"


def begin(job, fault, node, chance):
    """Injects the fault; returns (seconds until its end, a function that ends it)."""
    lasts = chance.uniform(1.5, 3.5) * job.arguments.suspect_after_s
    if fault in ("kill", "lose", "terminate"):
        if job.processes[node].poll() is None:
            job.expected[node] = 75 if fault == "terminate" else -signal.SIGKILL
        job.signal(node, signal.SIGTERM if fault == "terminate" else signal.SIGKILL)
        if fault == "lose":
            job.processes[node].wait()
            job.lose_disk(node)
        return 0, lambda: None
    if fault == "freeze":
        job.signal(node, signal.SIGSTOP)
        return lasts, lambda: job.signal(node, signal.SIGCONT)
    into = chance.random() < 0.5
    impairment, lasts = {
        "cut": (relay.Impairment(into=True, out=True), lasts),
        "oneway": (relay.Impairment(into=into, out=not into), lasts),
        "loss": (relay.Impairment(loss=0.3), FAULT_LASTS_S),
        "latency": (relay.Impairment(delay_s=0.3), FAULT_LASTS_S)}[fault]
    job.network.impair(node, impairment)
    return lasts, lambda: job.network.impair(node, relay.NONE)


def one_try(job, fault, role, chance):
    """Disturbs a training job, and watches it until it has recovered. Returns the measurements, or None
    if the job ended too soon."""
    pause_ends = time.time() + chance.uniform(0, 1.5)
    if not job.wait(lambda: time.time() > pause_ends, 60):
        return {"hung": "; ".join(job.lost)}
    network = job.network
    node = chance.choice({"worker": network.workers, "server": network.servers[1:],
                          "coordinator": network.servers[:1]}[role])
    again, gave_up = job.again, job.gave_up
    at = time.time()
    lasts, end = begin(job, fault, node, chance)
    healed = job.wait(lambda: time.time() >= at + max(lasts, NEWS_S), lasts + 60)
    end()
    healed_at = time.time()
    before = next(closed for when, closed, _ in reversed(job.progress) if when <= at + NEWS_S)

    def going_on():
        return next((when - at for when, closed, _ in job.progress
                     if when > at and closed >= before + 2), None)

    def as_before():
        since = [closed for when, closed, workers in job.progress
                 if when > healed_at + 0.5 and workers == len(network.workers)]
        return job.ended() or (going_on() and not job.due and since and since[-1] >= since[0] + 2)

    well = healed and job.wait(as_before, job.arguments.limit)
    if well and not going_on():
        return None
    found = [when for when, line in job.lines if when > at and FOUND.search(line)]
    result = {"node": node, "at": at, "round": before, "lasts_s": lasts,
              "found_s": min(found) - at if found else None,
              "going_on_s": going_on(), "again": job.again - again,
              "gave_up": job.gave_up - gave_up}
    if not well:
        result["hung"] = "; ".join(job.lost) or f"not as before within {job.arguments.limit:g} s"
    return result


class Trial:
    """All tries of one pair of fault and role."""

    def __init__(self, fault, role, wanted):
        self.fault, self.role, self.wanted, self.tries, self.jobs = fault, role, wanted, [], []
        self.possible, self.same = True, None  # of no job yet

    def open(self):
        return self.possible and len(self.tries) < self.wanted and self.hung() < TRIES_HUNG

    def failed(self):
        return self.same is False or self.hung() > 0

    def hung(self):
        return sum("hung" in one for one in self.tries)

    def add(self, one):
        self.tries.append(one)
        print(f"{self.fault}:{self.role} {len(self.tries)}: " + ", ".join(
            f"{key} {value:.2f}" if isinstance(value, float) and key != "at" else f"{key} {value}"
            for key, value in one.items() if key != "at"), file=sys.stderr, flush=True)

    def row(self):
        def values(key):
            return [one[key] for one in self.tries if one.get(key) is not None]

        def spread(key):
            found = values(key)
            return ({"median": statistics.median(found), "max": max(found), "count": len(found)}
                    if found else None)

        return {"fault": self.fault, "role": self.role, "possible": self.possible,
                "tried": len(self.tries), "found_s": spread("found_s"),
                "going_on_s": spread("going_on_s"), "again": spread("again"),
                "ended_themselves": sum(values("gave_up")), "jobs": len(self.jobs),
                "same_weights": self.same, "hung": self.hung()}


def run_job(arguments, network, folder, trials, reference):
    """One job, and as many of those tries as it lasts for."""
    with Job(arguments, network, folder) as job:
        trial = trials[0]
        well = job.start_all().wait(lambda: job.round() > WARM_UP_ROUNDS, arguments.limit)
        if not well:
            trial.add({"hung": "; ".join(job.lost) or "the training did not begin"})
        last = job.rounds - min(job.rounds / 2.5, 15 * reference["rounds_per_s"])
        while well and job.round() < last and any(one.open() for one in trials):
            trial = next(one for one in trials if one.open())
            if result := one_try(job, trial.fault, trial.role, arguments.random):
                trial.add(result)
                well = "hung" not in result
        if well and not job.wait(job.ended, arguments.limit + job.rounds):
            trial.add({"hung": "; ".join(job.lost) or "the job did not end"})
            well = False
    if not any(trial.tries for trial in trials):
        sys.exit("chaos.py: the job was over before anything could be tried: more --rounds")
    same = same_result(arguments, folder / "out", reference) if well else None
    for trial in trials:
        trial.same = trial.same if same is None else same and trial.same is not False
        trial.jobs.append({"folder": str(folder), "gave_up": job.gave_up, "again": job.again})
    if not same:
        print(f"chaos.py: look at {folder}", file=sys.stderr)
    elif not arguments.keep:
        shutil.rmtree(folder)


def undisturbed(arguments, network, folder):
    """The reference run."""
    with Job(arguments, network, folder) as job:
        began = job.start_all().wait(lambda: job.progress, arguments.limit)
        if not began or not job.wait(job.ended, arguments.limit + job.rounds):
            sys.exit(f"chaos.py: the undisturbed run failed: {'; '.join(job.lost)}; see {folder}")
        first, last = job.progress[len(job.progress) // 2], job.progress[-1]
    return {"weights": newest_weights(folder / "out"),
            "accuracy": last_accuracy(folder / "out"), "rounds": last[1],
            "rounds_per_s": (last[1] - first[1]) / (last[0] - first[0])}


def print_table(rows):
    def pair(spread, tried, digits=1):
        if not spread:
            return "-"
        seldom = f" in {spread['count']}" if spread["count"] < tried else ""
        return f"{spread['median']:.{digits}f} {spread['max']:.{digits}f}{seldom}"

    lines = [("fault", "role", "tried", "found after", "going on after", "again",
              "ended themselves", "weights", "hung or lost")]
    for row in rows:
        if not row["possible"]:
            lines.append((row["fault"], row["role"], "not here") + ("",) * 6)
            continue
        tried = row["tried"]
        lines.append((row["fault"], row["role"], str(tried), pair(row["found_s"], tried),
                      pair(row["going_on_s"], tried), pair(row["again"], tried, 0),
                      str(row["ended_themselves"]), WEIGHTS[row["same_weights"]],
                      str(row["hung"])))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def pairs_of(text):
    """The pairs of "FAULT:ROLE", in which either part may be missing."""
    fault, _, role = text.partition(":")
    pairs = [(f, r) for f in FAULTS for r in FAULTS[f] if fault in ("", f) and role in ("", r)]
    if not pairs:
        raise argparse.ArgumentTypeError(
            f"'{text}': faults: {', '.join(FAULTS)}; roles: {', '.join(ROLES)} (terminate: worker)")
    return pairs


def setting(text):
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not SECTION.KEY=VALUE")
    return key, value


def at_least_1(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of at least 1")
    return int(text)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(64, f"chaos.py: {message} (--help tells)\n")


def parse():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=pairs_of, action="append", metavar="FAULT:ROLE",
                        help="only these; FAULT or :ROLE may be left out; may be repeated")
    parser.add_argument("--tries", type=at_least_1, help="of each pair (default 20)")
    parser.add_argument("--quick", action="store_true",
                        help="one try of kill in each role, in one short job")
    parser.add_argument("--seed", type=int, default=1, help="of moments and victims (default 1)")
    parser.add_argument("--servers", type=at_least_1, default=3, help="default 3; at least 2")
    parser.add_argument("--network", choices=("auto", "packets", "relay", "loopback"),
                        help="bench/relay.py has them (default auto; loopback with --quick)")
    parser.add_argument("--rounds", type=at_least_1, help="of one job, about (default 160)")
    parser.add_argument("--limit", type=float, default=90, metavar="SECONDS",
                        help="longer than that without going on is hung (default 90)")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build/release/bin",
                        help="folder of the programs (default build/release/bin)")
    parser.add_argument("--data", default=os.environ.get("KUMO_DATA"),
                        help="a data.directory with MNIST (default $KUMO_DATA, else drawn digits)")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="KEY=VALUE",
                        help="another setting of the experiment, of all runs; may be repeated")
    parser.add_argument("--accuracy-within", type=float, metavar="X",
                        help="jobs need not end with the undisturbed run's bits but with its "
                             "validation accuracy, within X: on GPUs, which need not sum in the "
                             "same order twice")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="keep all jobs' folders below a new folder DIR")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="the table and each try")
    arguments = parser.parse_args()
    if arguments.servers < 2:
        parser.error("--servers: a server beside server 0 is needed")
    if not (arguments.bin / "kumo-server").exists():
        parser.error(f"--bin: there is no kumo-server in {arguments.bin}")
    if arguments.keep and arguments.keep.exists():
        parser.error(f"--keep: {arguments.keep} exists")
    if arguments.json and not arguments.json.parent.is_dir():
        parser.error(f"--json: there is no folder {arguments.json.parent}")
    if arguments.data and not pathlib.Path(arguments.data).is_dir():
        parser.error(f"--data: there is no folder {arguments.data}")
    return arguments


def complete(arguments):
    """What was left out, by whether it is to be quick."""
    quick = arguments.quick
    arguments.network = arguments.network or ("loopback" if quick else "auto")
    arguments.tries = arguments.tries or (1 if quick else 20)
    arguments.rounds = arguments.rounds or (45 if quick else 160)
    wanted = arguments.only or [pairs_of("kill:" if quick else "")]
    arguments.pairs = list(dict.fromkeys(pair for pairs in wanted for pair in pairs))
    arguments.random = random.Random(arguments.seed)
    arguments.trials = []
    arguments.experiment = HERE.parent / "experiments" / "mnist_lenet.conf"
    # The warm-up's epoch has more rounds, of one minibatch each; the others have 5.
    arguments.settings = {**SETTINGS, "job.epochs": max(2, arguments.rounds // 5),
                          **dict(arguments.set)}
    arguments.suspect_after_s = float(arguments.settings["cluster.suspect_after_s"])


def run(arguments, folder):
    if not arguments.data:
        arguments.data = folder / "digits"
        subprocess.run([arguments.bin / "kumo-data", "digits", "--out", arguments.data], check=True,
                       stdout=subprocess.DEVNULL)
    network, remark = relay.choose(arguments.network, arguments.servers, workers=2)
    arguments.trials = trials = [Trial(fault, role, arguments.tries)
                                 for fault, role in arguments.pairs]
    began, reference = time.time(), None
    try:
        reference = undisturbed(arguments, network, folder / "undisturbed")
        print(f"undisturbed: {reference['rounds']} rounds, {reference['rounds_per_s']:.1f} a "
              "second", file=sys.stderr, flush=True)
        for trial in trials:
            trial.possible = trial.fault in network.can | {"kill", "terminate", "freeze"} or (
                trial.fault == "lose" and has_private_disks(arguments))
        # A job is for one pair, so that its weights speak for that; in a hurry for all of them.
        for number in itertools.count():
            still = [trial for trial in trials if trial.open()]
            if not still:
                break
            folder_of_job = folder / f"{number:03d}-{still[0].fault}-{still[0].role}"
            run_job(arguments, network, folder_of_job, still if arguments.quick else still[:1],
                    reference)
    finally:  # also of what was tried before a Ctrl-C
        network.close()
        tried = [trial for trial in trials if trial.tries or not trial.possible]
        if tried:
            report(arguments, network, remark, tried, reference, time.time() - began)
    return any(trial.failed() for trial in trials)


def report(arguments, network, remark, trials, reference, seconds):
    rows = [trial.row() for trial in trials]
    print(f"{machine()}, commit {commit()}; {arguments.servers} servers, 2 workers, network "
          f"{network.name}; {reference['rounds']} rounds a job, {reference['rounds_per_s']:.1f} a "
          f"second undisturbed; suspected after {arguments.suspect_after_s:g} s; {seconds:.0f} s "
          "in all")
    for key, value in arguments.set:
        print(f"{key} = {value}")
    print_table(rows)
    if remark:
        print(remark)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "chaos", "machine": machine(), "commit": commit(), "network": network.name,
            "seed": arguments.seed, "settings": arguments.settings, "rows": rows,
            "tries": [{"fault": trial.fault, "role": trial.role, "tries": trial.tries,
                       "jobs": trial.jobs} for trial in trials]}) + "\n")


def main():
    arguments = parse()
    complete(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # like Ctrl-C
    if arguments.keep:
        arguments.keep.mkdir(parents=True)
    folder = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="kumo-chaos-"))
    failed = True
    try:
        failed = run(arguments, folder)
    except OSError as error:
        sys.exit(f"chaos.py: {error}")
    except KeyboardInterrupt:
        failed = any(trial.failed() for trial in arguments.trials)
        sys.exit(130)
    finally:
        if not arguments.keep and not failed:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
