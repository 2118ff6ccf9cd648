#!/usr/bin/env python3
"""One of two ranks of PyTorch DDP over gloo: the contender in bench/scaling.py and
bench/slow_network.py. Trains on random samples for so many seconds, minibatches of 64, one thread;
rank 0 prints the samples per second of both.

  torch_ddp.py RANK NETWORK SECONDS LAYOUT HOOK

NETWORK: lenet, or the widths of a perceptron's layers, 784-1000-10. LAYOUT: channels_last or
contiguous. HOOK: fp16 sends gradients in half precision, none as they are.
"""
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from train_speed import lenet

MINIBATCH, WARM_UP_S, LOOK_S = 64, 1, 1


def perceptron(widths):
    nn = torch.nn
    layers = [nn.Flatten()]
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def steps_for(step, seconds):
    """Steps that both ranks do for about so long, and how long that took. They agree on the end."""
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


def main():
    rank, network, seconds, layout, hook = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=int(rank), world_size=2)
    torch.manual_seed(1)
    net = (lenet(torch) if network == "lenet" else
           perceptron([int(width) for width in network.split("-")]))
    memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    net = torch.nn.parallel.DistributedDataParallel(net.to(memory_format=memory))
    if hook == "fp16":
        net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimiser = torch.optim.SGD(net.parameters(), lr=.05, momentum=.9, weight_decay=1e-4,
                                fused=True)
    x = torch.rand(MINIBATCH, 1, 28, 28).to(memory_format=memory)
    y = torch.randint(10, (MINIBATCH,))

    def step():
        optimiser.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimiser.step()

    steps_for(step, WARM_UP_S)
    dist.barrier()
    steps, took = steps_for(step, float(seconds))
    if rank == "0":
        print(2 * MINIBATCH * steps / took)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
