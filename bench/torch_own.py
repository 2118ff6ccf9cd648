#!/usr/bin/env python3
"""A training script of PyTorch, alone or as a worker of Kumo (bench/python_overhead.py). Trains on one
random minibatch of 64 for so many seconds, with one thread, and writes its samples per second, its
processor time per sample and the most memory that it had into a file.

  torch_own.py bare|kumo NETWORK SECONDS FOLDER

NETWORK: lenet, or the widths of a perceptron's layers, 784-1000-10. The file is FOLDER/NAME.json, NAME the
worker's.
"""
import json
import os
import pathlib
import resource
import sys
import time

import torch

from torch_ddp import MINIBATCH, WARM_UP_S, perceptron
from train_speed import lenet

SAMPLES = 1 << 20  # of an epoch, which no run comes to the end of


def step_of(network):
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # of a minibatch that is known by heart gradients vanish
    torch.manual_seed(1)
    net = lenet(torch) if network == "lenet" else perceptron([int(width) for width in network.split("-")])
    optimizer = torch.optim.SGD(net.parameters(), lr=.05, momentum=.9, weight_decay=1e-4, fused=True)
    x, y = torch.rand(MINIBATCH, 1, 28, 28), torch.randint(10, (MINIBATCH,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return net, optimizer, step


class Watch:
    """Counts from the first look after the warm-up to the first one after `seconds`."""

    def __init__(self, seconds, folder):
        self.seconds, self.folder = seconds, folder
        self.made = time.perf_counter()
        self.begin = None
        self.steps = 0

    def ended(self, steps):
        """Called between two steps: `steps` have been done since the last call."""
        now = time.perf_counter()
        if self.begin is None:
            if now - self.made > WARM_UP_S:
                self.begin, self.processor_begin = now, time.process_time()
            return False
        self.steps += steps
        if now - self.begin < self.seconds:
            return False
        name = os.environ.get("KUMO_WORKER_NAME", "bare")
        unfinished = pathlib.Path(self.folder, name + ".tmp")
        unfinished.write_text(json.dumps({
            "samples_per_s": self.steps * MINIBATCH / (now - self.begin),
            "processor_us": (time.process_time() - self.processor_begin) / (self.steps * MINIBATCH) * 1e6,
            "most_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        unfinished.rename(unfinished.with_suffix(".json"))
        return True


def main():
    kind, network, seconds, folder = sys.argv[1:]
    net, optimizer, step = step_of(network)
    if kind == "bare":
        watch = Watch(float(seconds), folder)
        while not watch.ended(1):
            step()
        return
    import kumo
    with kumo.Worker(None, net, optimizer, train_samples=SAMPLES) as worker:
        watch = Watch(float(seconds), folder)
        measured = False
        for block in worker.blocks():
            steps = 0
            for indices in block.minibatches():
                block.add(loss=step(), samples=len(indices))
                steps += 1
            measured = measured or watch.ended(steps)


if __name__ == "__main__":
    main()
