"""Common parts of the benchmarks: Kumo's jobs on LeNet, their logs, and the machine."""
import argparse
import json
import os
import pathlib
import platform
import socket
import subprocess
import sys
import tempfile
import time

from links import address

HERE = pathlib.Path(__file__).resolve().parent
MINIBATCH, BLOCK, PARTITIONS = 64, 50, 2
START_UP_S, FIRST_ROUND = 2, 2  # earlier rounds are start-up


def logged(log):
    """The complete lines of a log.jsonl, in their order."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def progress(log):
    """The job's progress by round: the first line about each round."""
    entries = {}
    for entry in logged(log):
        if entry["kind"] == "progress":
            entries.setdefault(entry["round"], entry)
    return entries


def epochs(log):
    """The lines about validated epochs."""
    return [entry for entry in logged(log)
            if entry["kind"] == "epoch" and entry.get("validation/main/accuracy") is not None]


def run_job(arguments, workers, folder, servers=1, settings=(), block=BLOCK, start_up=()):
    """Runs a job and returns its progress; at least arguments.seconds lie between the first and the last
    entry. settings: more settings, "section.key=value"; start_up: more arguments of kumo launch."""
    out = pathlib.Path(folder) / f"kumo-{workers}-{time.monotonic_ns()}"
    errors = tempfile.TemporaryFile("w+")
    process = subprocess.Popen(
        [arguments.bin / "kumo", "launch", HERE.parent / "experiments" / "mnist_lenet.conf",
         "--workers", str(workers), "--servers", str(servers), *start_up,
         "--set", f"output.directory={out}", "--set", f"data.directory={arguments.data}",
         "--set", "sync.warmup_samples=0", "--set", f"sync.block={block}",
         "--set", "output.interval_s=0.1", "--set", "evaluation.every_epochs=0",
         "--set", "job.epochs=1000", "--set", "checkpoint.every_minutes=0",
         "--set", "output.tensorboard=false",
         *[part for setting in settings for part in ("--set", setting)]],
        stdout=subprocess.DEVNULL, stderr=errors)
    # A third core may be missing: this script polls rarely, and reads the file only.
    entries = []
    try:
        for _ in range(20):
            time.sleep(START_UP_S + arguments.seconds if not entries else 1)
            by_round = progress(out / "log.jsonl")
            entries = [by_round[r] for r in sorted(by_round) if r >= FIRST_ROUND]
            if (len(entries) > 1 and
                    entries[-1]["wall_time"] - entries[0]["wall_time"] >= arguments.seconds):
                break
            if process.poll() is not None:
                errors.seek(0)
                sys.exit(f"{pathlib.Path(sys.argv[0]).name}: kumo launch ended with "
                         f"{process.returncode}: {errors.read().strip()}")
    finally:
        process.terminate()
        process.wait()
    if len(entries) < 2:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: no progress with {workers} workers")
    return entries


def rate(entries, block=BLOCK):
    """Samples per second from the first entry to the last."""
    samples = (entries[-1]["round"] - entries[0]["round"]) * PARTITIONS * MINIBATCH * block
    return samples / (entries[-1]["wall_time"] - entries[0]["wall_time"])


def kumo(arguments, workers, folder, servers=1, settings=()):
    """Samples per second of a job (run_job)."""
    return rate(run_job(arguments, workers, folder, servers, settings))


def find_torch():
    python = os.environ.get("KUMO_TORCH_PYTHON", sys.executable)
    try:
        found = subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                               capture_output=True, text=True)
    except OSError:  # there is no such program
        return None, None
    return (python, found.stdout.strip()) if found.returncode == 0 else (None, None)


class Ranks:
    """Ranks of PyTorch DDP over gloo (torch_ddp.py). A context manager that leaves no process running."""

    def __init__(self, python, network, arguments, hook="none", links=None, layout="contiguous"):
        """network: "lenet" or a perceptron's widths; links: each of arguments.hosts has a rank (links.py);
        without, there are two on the loopback."""
        count = arguments.hosts if links else PARTITIONS
        network = network if isinstance(network, str) else "-".join(map(str, network))
        environment = dict(os.environ, MASTER_ADDR=address(0) if links else "127.0.0.1",
                           MASTER_PORT="7800" if links else str(free_port()),
                           WORLD_SIZE=str(count), OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE",
                           GLOO_SOCKET_IFNAME="kumo" if links else "lo")
        self.errors = tempfile.TemporaryFile("w+")
        self.processes = []
        for rank in range(count):
            command = [python, HERE / "torch_ddp.py", str(rank), network, "--layout", layout, "--hook",
                       hook, "--windows", str(getattr(arguments, "windows", 1)), "--seconds",
                       str(arguments.seconds), "--data", str(arguments.data)]
            start = (lambda command, **rest: links.popen(rank, command, **rest)) if links else (
                subprocess.Popen)
            self.processes.append(start(command, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def ask(self, line):
        try:
            print(line, file=self.processes[0].stdin, flush=True)
            return json.loads(self.processes[0].stdout.readline())
        except (OSError, ValueError):
            self.errors.seek(0)
            sys.exit(f"{pathlib.Path(sys.argv[0]).name}: PyTorch DDP: "
                     f"{self.errors.read().strip()[-2000:]}")

    def measure(self):
        """Samples per second of all ranks, in each window."""
        return self.ask("measure")

    def memory(self):
        """The most memory that a rank had, in MiB."""
        return self.ask("memory")

    def train(self, samples):
        """Trains on the first so many samples of arguments.data; returns the validation loss."""
        return self.ask(f"train {samples}")


def ddp(python, network, arguments, layout="contiguous"):
    """Samples per second of PyTorch DDP's two ranks on the loopback."""
    with Ranks(python, network, arguments, layout=layout) as ranks:
        return ranks.measure()[0]


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def machine():
    with open("/proc/cpuinfo") as info:
        names = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def commit():
    return subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"],
                          capture_output=True, text=True).stdout.strip() or "unknown"


def parser(description, runs=None, seconds=None):
    """Argument parser of a script that measures jobs, with the common arguments. runs: of each thing that is
    measured; None: the script has no such argument. seconds: of run_job."""
    made = argparse.ArgumentParser(description=description,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build/release/bin")
    made.add_argument("--data", default=os.environ.get("KUMO_DATA"),
                      help="a data.directory with MNIST (default: KUMO_DATA, or drawn digits)")
    if runs is not None:
        made.add_argument("--runs", type=int, default=runs, help=f"of each (default {runs})")
    if seconds is not None:
        made.add_argument("--seconds", type=float, default=seconds,
                          help=f"measured per run (default {seconds})")
    made.add_argument("--json", type=pathlib.Path, metavar="FILE", help="for the figures")
    return made


def in_slow_network(options):
    """Parses the arguments. With --rate, runs the script again in a network namespace of its own whose
    loopback has that rate, and exits with its exit code."""
    options.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.rate and not arguments.inside:
        script = ("ip link set lo up && tc qdisc add dev lo root tbf rate "
                  f'{arguments.rate} burst 256kb latency 50ms && exec "$0" "$@" --inside')
        ended = subprocess.run(["unshare", "--net", "sh", "-c", script, sys.executable, *sys.argv])
        sys.exit(ended.returncode)
    return arguments


def draw_data(arguments, folder):
    """Sets arguments.data, if it is not given, to a data.directory in `folder` with drawn digits."""
    if not arguments.data:
        arguments.data = folder
        subprocess.run([arguments.bin / "kumo-data", "digits", "--out", folder], check=True,
                       stdout=subprocess.DEVNULL)
