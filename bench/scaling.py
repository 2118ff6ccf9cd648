#!/usr/bin/env python3
"""(b) Two workers against one, and against PyTorch DDP with two ranks over gloo.

LeNet, minibatches of 64, one thread per worker or rank. Kumo trains two partitions in block mode
(50 minibatches between two synchronisations, 1bit pushes), once with one worker and once with two:
the same mathematics. DDP synchronises every step, as it does. All contenders run in turn, several
times, as processes of their own; reported are medians and ranges of samples per second of the whole
job, taken between the first and the last block that ended after the start-up.

  bench/scaling.py [--bin DIR] [--data DIR] [--runs N] [--seconds S] [--json FILE]

--data: a data.directory with MNIST, or what `kumo-data digits` draws (the default draws one).
KUMO_TORCH_PYTHON names a Python that has PyTorch; without one only Kumo is measured, and said so.
"""
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile

from jobs import commit, draw_data, find_torch, kumo, machine, parser

DDP = r"""
import os, sys, time, torch
import torch.distributed as dist
rank, seconds, layout = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", rank=rank, world_size=2)
nn = torch.nn
torch.manual_seed(1)
net = nn.Sequential(nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2),
                    nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10))
memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
net = nn.parallel.DistributedDataParallel(net.to(memory_format=memory))
optimiser = torch.optim.SGD(net.parameters(), lr=.05, momentum=.9, weight_decay=1e-4, fused=True)
x = torch.rand(64, 1, 28, 28).to(memory_format=memory)
y = torch.randint(10, (64,))
def step():
    optimiser.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(net(x), y).backward()
    optimiser.step()
for _ in range(20): step()
dist.barrier()
begin, steps = time.perf_counter(), 0
stop = torch.zeros(1)
while not stop.item():
    for _ in range(20): step()
    steps += 20
    stop[0] = float(time.perf_counter() - begin > seconds)
    dist.broadcast(stop, 0)
if rank == 0: print(2 * 64 * steps / (time.perf_counter() - begin))
dist.destroy_process_group()
"""


def ddp(python, seconds, layout):
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                       OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", OMP_WAIT_POLICY="PASSIVE")
    ranks = [subprocess.Popen([python, "-c", DDP, str(rank), str(seconds), layout],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) for rank in range(2)]
    outputs = [rank.communicate()[0] for rank in ranks]
    return float(outputs[0]) if outputs[0].strip() else None


def main():
    options = parser(__doc__, runs=5, seconds=8)
    arguments = options.parse_args()
    python, version = find_torch()

    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        layout = None
        if python:
            trials = {name: ddp(python, 2, name) or 0 for name in ("channels_last", "contiguous")}
            layout = max(trials, key=trials.get)
        rates = {"kumo, 1 worker": [], "kumo, 2 workers": []}
        if python:
            rates[f"PyTorch {version} DDP, 2 ranks ({layout})"] = []
        for _ in range(arguments.runs):
            for name in rates:
                rates[name].append(ddp(python, arguments.seconds, layout) if "DDP" in name else
                                   kumo(arguments, int(name.split()[1]), folder))

    print(f"{machine()}, commit {commit()}; {arguments.runs} runs in turn, samples/s")
    rows = []
    two = rates["kumo, 2 workers"]
    for name, values in rates.items():
        ratios = [t / v for t, v in zip(two, values)]
        rows.append({"name": name, "median": statistics.median(values), "min": min(values),
                     "max": max(values), "two_workers_over_it": statistics.median(ratios)})
        print(f"{name:44s} {rows[-1]['median']:9.0f}  ({min(values):.0f} .. {max(values):.0f})"
              f"   2 workers over it: {rows[-1]['two_workers_over_it']:.2f}")
    if not python:
        print("PyTorch is not there (KUMO_TORCH_PYTHON names a Python that has it): not compared")
    result = {"benchmark": "scaling", "machine": machine(), "commit": commit(), "rows": rows}
    if arguments.json:
        arguments.json.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
