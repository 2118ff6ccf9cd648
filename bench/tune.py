#!/usr/bin/env python3
"""(u) What kumo tune predicts for a slow network beside what real jobs then do.

Hosts are network namespaces of this machine with links of --rate and --latency-ms (links.py), each
with a worker and a server, which train a perceptron 784-W-W-10 on MNIST. First kumo tune runs on all
hosts at once: as in the jobs, they share this machine's processors. Then each of --choices is trained;
reported are samples per second of all workers, the median of --windows windows, and the prediction
over the measurement.

  bench/tune.py [--rate MBIT] [--latency-ms D] [--hosts N] [--width W] [--minibatch M]
                [--choices MODE:BLOCK:OVERLAP:CODEC,...] [--windows N] [--seconds S]
                [--congestion NAME] [--data DIR] [--bin DIR] [--json FILE]

Needs root, /dev/net/tun, iproute2 and util-linux.
"""
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

from grid import SKIPPED, WARM_UP_ROUNDS, WARM_UP_S, Job
from jobs import commit, draw_data, machine, parser
from links import Links
from relay import Packets
from slow_network import EXPERIMENT, write_network

CHOICES = "gradient:1:0:1bit,gradient:1:1:1bit,block:8:4:int8,block:32:0:fp16"


def name_of(choice):
    return ":".join(str(choice[key]) for key in ("mode", "block", "overlap", "codec"))


def predict(arguments, links, experiment):
    """The choices of kumo tune by name: of each the median over all hosts."""
    command = [arguments.bin / "kumo", "tune", experiment, "--json", "--seconds", arguments.seconds,
               "--bandwidth", f"{arguments.rate:g}Mbit/s", "--latency", f"{arguments.latency_ms:g}ms",
               "--workers", arguments.hosts, "--servers", arguments.hosts,
               "--set", f"sync.partitions={arguments.hosts}",
               "--set", f"sync.minibatch={arguments.minibatch}",
               "--set", f"data.directory={arguments.data}"]
    running = [links.popen(host, command, stdout=subprocess.PIPE, text=True)
               for host in range(arguments.hosts)]
    printed = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit("tune.py: kumo tune failed")
    answers = [json.loads(text) for text in printed]
    step_ms = statistics.median(answer["step_ms"] for answer in answers)
    names = {name_of(choice): choice for choice in answers[0]["choices"]}
    for name, choice in names.items():
        choice["samples_per_second"] = statistics.median(
            other["samples_per_second"] for answer in answers for other in answer["choices"]
            if name_of(other) == name)
    return names, step_ms, name_of(answers[0]["take"])


def measure(arguments, links, experiment, choice, folder):
    settings = [f"sync.minibatch={arguments.minibatch}", f"data.directory={arguments.data}",
                *choice["settings"]]
    found = []
    with Job(arguments, links, experiment, settings, [arguments.bin / "kumo-worker"], folder) as job:
        job.after(WARM_UP_ROUNDS, WARM_UP_S)
        for _ in range(arguments.windows):
            seconds, rounds = job.after(2, arguments.seconds)
            found.append(rounds * choice["samples_per_round"] / seconds)
    return found


def main():
    options = parser(__doc__, seconds=5)
    options.add_argument("--rate", type=float, default=100, help="of each host's link, Mbit/s")
    options.add_argument("--latency-ms", type=float, default=10, help="one way (default 10)")
    options.add_argument("--hosts", type=int, default=2)
    options.add_argument("--width", type=int, default=1024, help="of the hidden layers")
    options.add_argument("--minibatch", type=int, default=128)
    options.add_argument("--choices", default=CHOICES, help=f"default {CHOICES}")
    options.add_argument("--windows", type=int, default=3, help="of each choice (default 3)")
    options.add_argument("--congestion", default="cubic", help="control of TCP (default cubic)")
    arguments = options.parse_args()
    if lacking := Packets.missing():
        print(f"tune.py: no hosts can be made here: {lacking}")
        sys.exit(SKIPPED)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the processes too

    rows = []
    with (tempfile.TemporaryDirectory() as folder,
          Links(arguments.bin / "link_relay", arguments.hosts, arguments.congestion) as links):
        draw_data(arguments, folder)
        write_network([784, arguments.width, arguments.width, 10], folder)
        experiment = pathlib.Path(folder) / "tuned.conf"
        experiment.write_text(EXPERIMENT)
        predicted, step_ms, take = predict(arguments, links, experiment)
        print(f"{machine()}, TCP {arguments.congestion}, commit {commit()}\n"
              f"{arguments.hosts} hosts with a worker and a server each, links of "
              f"{arguments.rate:g} Mbit/s, {arguments.latency_ms:g} ms from host to host; "
              f"784-{arguments.width}-{arguments.width}-10, a minibatch of {arguments.minibatch} in "
              f"{step_ms:.1f} ms\nkumo tune says: {take}\n\n"
              "mode:block:overlap:codec     predicted   measured (range), samples/s    ratio",
              flush=True)
        links.shape(arguments.rate * 1e6, arguments.latency_ms / 1e3)
        for name in arguments.choices.split(","):
            if name not in predicted:
                sys.exit(f"tune.py: kumo tune predicts no {name}; it has {' '.join(predicted)}")
            with tempfile.TemporaryDirectory() as job_folder:
                found = measure(arguments, links, experiment, predicted[name], job_folder)
            expected, median = predicted[name]["samples_per_second"], statistics.median(found)
            rows.append({"choice": name, "predicted": expected, "measured": median,
                         "min": min(found), "max": max(found)})
            print(f"{name:28s} {expected:9.0f} {median:10.0f} ({min(found):.0f} .. {max(found):.0f})"
                  f"{expected / median:10.2f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "tune", "machine": machine(), "commit": commit(), "rate": arguments.rate,
            "latency_ms": arguments.latency_ms, "hosts": arguments.hosts, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
