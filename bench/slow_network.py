#!/usr/bin/env python3
"""(k) Training speed over slow links, with real computation, beside PyTorch DDP over gloo.

A perceptron 784-W-W-1024-10 (W = 4096: 24 million parameters) on MNIST, minibatches of 64, one thread
for each worker or rank. Hosts are network namespaces of this machine with links of --rates and
--delays-ms (links.py), each with a worker and a server, or with a rank. All share this machine's
processors, which the links take a part of; the rate "unlimited" tells what is left without a network.

Each contender trains on one link after the other; reported are samples per second of all workers, the
median and the range of --windows windows of --seconds, or of one round if that is longer.

With --to-loss L each contender also trains without a limit until the validation loss, after each
--epoch samples, is L. A synchronous job makes the same weights on any network, so the seconds to that
loss are its samples by the rate on each link.

  bench/slow_network.py [--rates 100,1000,unlimited] [--delays-ms 0,10,50] [--hosts N] [--width W]
                        [--rows NAME,...] [--to-loss L] [--epoch SAMPLES] [--windows N] [--seconds S]
                        [--congestion NAME] [--data DIR] [--bin DIR] [--json FILE]

Needs root, /dev/net/tun, iproute2 and util-linux. KUMO_TORCH_PYTHON names a Python that has PyTorch;
without one only Kumo is measured.
"""
import json
import pathlib
import re
import signal
import statistics
import sys
import tempfile

from grid import SKIPPED, WARM_UP_ROUNDS, WARM_UP_S, Job
from jobs import MINIBATCH, Ranks, commit, draw_data, epochs, find_torch, machine, parser
from links import Links
from relay import Packets

EXPERIMENT = """[job]
epochs = 1000
[network]
file = perceptron.pbtxt
threads = 1
[sync]
mode = block
minibatch = 64
warmup_samples = 0
[block]
rule = average
[optimiser]
type = momentum
momentum = 0.9
weight_decay = 0.0001
[schedule]
type = constant
learning_rate = 0.02
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


def coded(push, pull, *settings):
    return [f"sync.push_codec={push}", f"sync.pull_codec={pull}", *settings]


# Settings, and minibatches a round.
KUMO = {
    "gradients": (coded("fp32", "fp32", "sync.mode=gradient"), 1),
    "gradients, fp16": (coded("fp16", "fp16", "sync.mode=gradient"), 1),
    "gradients, 1bit": (coded("1bit", "1bit", "sync.mode=gradient"), 1),
    "gradients, 1bit, delay 1": (coded("1bit", "1bit", "sync.mode=gradient", "sync.overlap=1"), 1),
    "blocks of 10, 1bit": (coded("1bit", "1bit", "sync.block=10"), 10),
    "blocks of 32, 1bit, overlap 16":
        (coded("1bit", "1bit", "sync.block=32", "sync.overlap=16"), 32),
    "blocks of 32, topk2bit relayed, overlap 16":
        (coded("topk2bit", "fp32", "sync.block=32", "sync.overlap=16"), 32),
}
MOST_EPOCHS = 60
DDP = {"DDP": "none", "DDP, fp16": "fp16", "DDP, PowerSGD": "powersgd"}


def write_network(widths, folder):
    layers = "".join(
        f'layers {{ name: "fc{i}" fully_connected {{ outputs: {outputs} }} }}\n'
        f'layers {{ name: "relu{i}" relu {{}} }}\n' for i, outputs in enumerate(widths[1:-1]))
    file = pathlib.Path(folder) / "perceptron.pbtxt"
    file.write_text('name: "perceptron"\ninput { channels: 1 height: 28 width: 28 }\n' + layers +
                    f'layers {{ name: "scores" fully_connected {{ outputs: {widths[-1]} }} }}\n'
                    'layers { name: "loss" softmax_cross_entropy {} }\n')
    return file


class KumoRow:
    def __init__(self, arguments, experiment, name):
        self.arguments, self.experiment = arguments, experiment
        self.settings, self.block = KUMO[name]
        self.settings = [f"data.directory={arguments.data}", *self.settings]

    def job(self, links, folder, *settings):
        return Job(self.arguments, links, self.experiment, [*self.settings, *settings],
                   [self.arguments.bin / "kumo-worker"], folder)

    def rates(self, links, ways):
        """Samples per second on each link."""
        round_samples = self.block * self.arguments.hosts * MINIBATCH
        with tempfile.TemporaryDirectory() as folder, self.job(links, folder) as job:
            job.after(WARM_UP_ROUNDS, 0)
            for rate, delay_ms in ways:
                links.shape(rate * 1e6, delay_ms / 1e3)
                job.after(WARM_UP_ROUNDS, WARM_UP_S)
                found = []
                for _ in range(self.arguments.windows):
                    seconds, rounds = job.after(1, self.arguments.seconds)
                    found.append(rounds * round_samples / seconds)
                yield found

    def losses(self, links):
        """Validation losses after each epoch."""
        links.shape(0, 0)
        settings = (f"data.train_limit={self.arguments.epoch}", "evaluation.every_epochs=1")
        with tempfile.TemporaryDirectory() as folder, self.job(links, folder, *settings) as job:
            seen = 0
            while True:
                job.after(1, .2)
                done = epochs(job.log)
                for entry in done[seen:]:
                    yield entry["validation/main/loss"]
                seen = len(done)


class DdpRow:
    def __init__(self, arguments, python, widths, name):
        self.arguments, self.python = arguments, python
        self.widths, self.hook = widths, DDP[name]

    def rates(self, links, ways):
        with Ranks(self.python, self.widths, self.arguments, self.hook, links) as ranks:
            for rate, delay_ms in ways:
                links.shape(rate * 1e6, delay_ms / 1e3)
                yield ranks.measure()

    def losses(self, links):
        links.shape(0, 0)
        with Ranks(self.python, self.widths, self.arguments, self.hook, links) as ranks:
            while True:
                yield ranks.train(self.arguments.epoch)


def samples_to(loss, losses, epoch):
    """Samples until the validation loss is `loss`, by interpolation between epochs."""
    before = None
    for number, found in enumerate(losses, 1):
        if found <= loss:
            part = 1 if before is None else (before - loss) / (before - found)
            return epoch * (number - 1 + part)
        if number == MOST_EPOCHS:
            return None
        before = found


def main():
    options = parser(__doc__, seconds=5)
    options.add_argument("--rates", default="100,1000,unlimited",
                         help="of each host's link, each way, Mbit/s")
    options.add_argument("--delays-ms", default="0,10,50", help="from host to host")
    options.add_argument("--hosts", type=int, default=2)
    options.add_argument("--width", type=int, default=4096, help="of the first two layers")
    options.add_argument("--rows", default=",".join(f"'{name}'" for name in [*KUMO, *DDP]),
                         help="contenders, each in quotes (default: all)")
    options.add_argument("--to-loss", type=float, metavar="L")
    options.add_argument("--epoch", type=int, default=6400, help="samples (default 6400)")
    options.add_argument("--congestion", default="cubic", help="control of TCP (default cubic)")
    options.add_argument("--windows", type=int, default=3, help="on each link (default 3)")
    arguments = options.parse_args()
    if lacking := Packets.missing():
        print(f"slow_network.py: no hosts can be made here: {lacking}")
        sys.exit(SKIPPED)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the processes too
    ways = [(0, 0) if rate == "unlimited" else (float(rate), float(delay))
            for rate in arguments.rates.split(",")
            for delay in (["0"] if rate == "unlimited" else arguments.delays_ms.split(","))]
    python, version = find_torch()
    widths = [784, arguments.width, arguments.width, 1024, 10]
    names = re.findall(r"'([^']*)'", arguments.rows)
    if unknown := [name for name in names if name not in KUMO and name not in DDP]:
        sys.exit(f"slow_network.py: no contender '{unknown[0]}'; there are "
                 f"{', '.join([*KUMO, *DDP])}")

    print(f"{machine()}, TCP {arguments.congestion}, commit {commit()}, PyTorch {version}\n"
          f"{arguments.hosts} hosts, {'-'.join(map(str, widths))}, minibatches of {MINIBATCH}; "
          f"{arguments.windows} windows of {arguments.seconds:g} s\n\n"
          "Mbit/s    ms  contender                                    samples/s  (range)"
          + ("          s to the loss" if arguments.to_loss else ""), flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        write_network(widths, folder)
        experiment = pathlib.Path(folder) / "perceptron.conf"
        experiment.write_text(EXPERIMENT)
        for name in names:
            if name in DDP and not python:
                continue
            row = (KumoRow(arguments, experiment, name) if name in KUMO else
                   DdpRow(arguments, python, widths, name))
            with Links(arguments.bin / "link_relay", arguments.hosts,
                       arguments.congestion) as links:
                samples = None
                if arguments.to_loss:
                    samples = samples_to(arguments.to_loss, row.losses(links), arguments.epoch)
                for (rate, delay_ms), found in zip(ways, row.rates(links, ways)):
                    median = statistics.median(found)
                    seconds = samples / median if samples else None
                    rows.append({"name": name, "rate": rate, "delay_ms": delay_ms,
                                 "median": median, "min": min(found), "max": max(found),
                                 "samples_to_loss": samples, "seconds_to_loss": seconds})
                    span = f"({min(found):.0f} .. {max(found):.0f})"
                    print(f"{f'{rate:g}' if rate else 'unlimited':9s} {delay_ms:2g}  {name:42s} "
                          f"{median:11.0f}  {span:16s}"
                          + ("" if seconds is None else f" {seconds:10.1f}"), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "slow_network", "machine": machine(), "commit": commit(),
            "hosts": arguments.hosts, "width": arguments.width, "torch": version,
            "to_loss": arguments.to_loss, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
