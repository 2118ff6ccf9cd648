#!/usr/bin/env python3
"""One of some ranks of PyTorch DDP over gloo: the contender in bench/scaling.py and
bench/slow_network.py. Minibatches of 64, one thread.

  torch_ddp.py RANK NETWORK [--layout LAYOUT] [--hook HOOK] [--windows N] [--seconds S] [--data DIR]

NETWORK: lenet, or the widths of a perceptron's layers, 784-1000-10. LAYOUT: channels_last or
contiguous. HOOK: fp16 sends gradients in half precision, powersgd in matrices of rank 1 (after 10
steps), none as they are. torchrun's variables name the other ranks.

Rank 0 reads orders, and answers each with a line of JSON:
  measure     trains on random samples; the samples per second of all ranks, of each window
  memory      the most memory that a rank had, in MiB
  train N     trains on the first N MNIST images of --data, once; the loss of the validation set
"""
import argparse
import gzip
import json
import pathlib
import resource
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from train_speed import lenet

MINIBATCH, WARM_UP_S, LOOK_S = 64, 1, 1
RATE, MOMENTUM = .02, .9


def perceptron(widths):
    nn = torch.nn
    layers = [nn.Flatten()]
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def steps_for(step, seconds):
    """Steps that all ranks do for about so long, and how long that took. They agree on the end."""
    begin, steps, at_once = time.perf_counter(), 0, 1
    stop = torch.zeros(1)
    while not stop.item():
        for _ in range(at_once):
            step()
        steps += at_once
        took = torch.tensor([time.perf_counter() - begin])
        dist.broadcast(took, 0)
        at_once = max(1, int(steps / float(took) * min(LOOK_S, seconds) / 4))
        stop[0] = float(took) > seconds
    return steps, time.perf_counter() - begin


def idx(folder, name):
    """An IDX file of MNIST, packed or not, as a tensor of bytes."""
    for file in (pathlib.Path(folder) / "mnist", pathlib.Path(folder)):
        for opener, suffix in ((gzip.open, ".gz"), (open, "")):
            path = file / (name + suffix)
            if path.exists():
                with opener(path, "rb") as data:
                    content = data.read()
                shape = [int.from_bytes(content[4 + 4 * i:8 + 4 * i], "big")
                         for i in range(content[3])]
                return torch.frombuffer(bytearray(content), dtype=torch.uint8,
                                        offset=4 + 4 * len(shape)).reshape(shape)
    sys.exit(f"torch_ddp.py: {folder} has no {name}")


class Rank:
    def __init__(self, arguments, world):
        self.arguments, self.rank, self.world = arguments, arguments.rank, world
        torch.manual_seed(1)
        network = arguments.network
        net = (lenet(torch) if network == "lenet" else
               perceptron([int(width) for width in network.split("-")]))
        self.memory = (torch.channels_last if arguments.layout == "channels_last" else
                       torch.contiguous_format)
        # PowerSGD's hook waits for sums in gloo's threads, and with several buckets for ever.
        buckets = {}
        if arguments.hook == "powersgd":
            dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 40
            buckets = {"bucket_cap_mb": 1 << 20}
        self.net = torch.nn.parallel.DistributedDataParallel(net.to(memory_format=self.memory),
                                                             **buckets)
        if arguments.hook == "fp16":
            self.net.register_comm_hook(None, default_hooks.fp16_compress_hook)
        elif arguments.hook == "powersgd":
            state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1,
                                                start_powerSGD_iter=10)
            self.net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        self.optimiser = torch.optim.SGD(self.net.parameters(), lr=RATE, momentum=MOMENTUM,
                                         weight_decay=1e-4, fused=True)
        self.epoch = 0
        self.warm = False

    def step(self, x, y):
        self.optimiser.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(self.net(x), y).backward()
        self.optimiser.step()

    def measure(self):
        x = torch.rand(MINIBATCH, 1, 28, 28).to(memory_format=self.memory)
        y = torch.randint(10, (MINIBATCH,))
        steps_for(lambda: self.step(x, y), WARM_UP_S)
        if not self.warm and self.arguments.hook == "powersgd":  # the first steps are without it
            for _ in range(11):
                self.step(x, y)
        self.warm = True
        found = []
        for _ in range(self.arguments.windows):
            dist.barrier()
            steps, took = steps_for(lambda: self.step(x, y), self.arguments.seconds)
            found.append(self.world * MINIBATCH * steps / took)
        return found

    def most_memory(self):
        most = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024])
        dist.all_reduce(most, dist.ReduceOp.MAX)
        return float(most)

    def train(self, samples):
        images, labels = idx(self.arguments.data, "train-images-idx3-ubyte")[:samples], idx(
            self.arguments.data, "train-labels-idx1-ubyte")[:samples].long()
        self.epoch += 1
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(self.epoch))
        at_once = self.world * MINIBATCH
        for begin in range(0, len(order) - at_once + 1, at_once):
            mine = order[begin + self.rank * MINIBATCH:begin + (self.rank + 1) * MINIBATCH]
            self.step(images[mine].unsqueeze(1) / 255., labels[mine])
        images = idx(self.arguments.data, "t10k-images-idx3-ubyte")
        labels = idx(self.arguments.data, "t10k-labels-idx1-ubyte").long()
        if self.rank > 0:
            return None
        with torch.no_grad():
            scores = self.net.module(images.unsqueeze(1) / 255.)
            return float(torch.nn.functional.cross_entropy(scores, labels))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("rank", type=int)
    options.add_argument("network")
    options.add_argument("--layout", default="contiguous")
    options.add_argument("--hook", default="none")
    options.add_argument("--windows", type=int, default=1)
    options.add_argument("--seconds", type=float, default=5)
    options.add_argument("--data")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # as torch_own.py
    dist.init_process_group("gloo", rank=arguments.rank)
    rank = Rank(arguments, dist.get_world_size())
    while True:
        order = [sys.stdin.readline().split() if arguments.rank == 0 else None]
        dist.broadcast_object_list(order, 0)
        if not order[0]:
            break
        answer = (rank.measure() if order[0][0] == "measure" else rank.most_memory() if order[0][0] == "memory" else
                  rank.train(int(order[0][1])))
        if arguments.rank == 0:
            print(json.dumps(answer), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
