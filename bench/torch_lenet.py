#!/usr/bin/env python3
"""PyTorch's side of bench/time_to_accuracy.py: LeNet on MNIST as experiments/mnist_lenet_sync.conf
has it, until an accuracy on the validation set is reached. Prints one line of JSON an epoch.

The same network and initial weights' distribution, minibatches of 64, momentum .9, weight decay 1e-4
on what is not a bias, learning rate .05, a tenth of it from epoch 11 on. The data set lies in the
device's memory and minibatches are gathered there. --mode graph records a step as a CUDA graph; an
epoch's last minibatch, which is shorter, is then left out.
"""
import argparse
import gzip
import json
import pathlib
import time

from train_speed import lenet, record


def read(folder, name):
    """Bytes of an IDX file behind its header."""
    path = next(p for p in (folder / "mnist" / f"{name}.gz", folder / "mnist" / name,
                            folder / f"{name}.gz", folder / name) if p.exists())
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    return data[4 + 4 * data[3]:]


def load(torch, folder, part, device, limit):
    labels = torch.frombuffer(bytearray(read(folder, f"{part}-labels-idx1-ubyte")),
                              dtype=torch.uint8)
    pixels = torch.frombuffer(bytearray(read(folder, f"{part}-images-idx3-ubyte")),
                              dtype=torch.uint8).view(len(labels), 1, 28, 28)
    limit = limit or len(labels)
    return pixels[:limit].to(device), labels[:limit].to(device).long()


def network(torch):
    net = lenet(torch)
    for layer in net:
        if hasattr(layer, "weight"):
            torch.nn.init.normal_(layer.weight, std=(2 / layer.weight[0].numel()) ** .5)
            torch.nn.init.zeros_(layer.bias)
    return net


class Learner:
    def __init__(self, torch, arguments):
        self.torch, self.arguments = torch, arguments
        self.net = network(torch).to(arguments.device)
        biases = [p for p in self.net.parameters() if p.dim() == 1]
        weights = [p for p in self.net.parameters() if p.dim() > 1]
        # In memory of the device, so that a recorded step sees it change.
        self.rate = torch.tensor(.05, device=arguments.device)
        rate = self.rate if arguments.mode == "graph" else .05
        self.optimiser = torch.optim.SGD(
            [{"params": weights, "weight_decay": 1e-4}, {"params": biases}], lr=rate, momentum=.9,
            fused=True)
        self.graph = None

    def step(self, x, y):
        self.optimiser.zero_grad(set_to_none=True)
        self.torch.nn.functional.cross_entropy(self.net(x), y).backward()
        self.optimiser.step()

    def slow_down(self):
        self.rate.mul_(.1)
        if self.arguments.mode != "graph":
            for group in self.optimiser.param_groups:
                group["lr"] *= .1

    def train(self, pixels, labels):
        torch = self.torch
        order = torch.randperm(len(labels), device=self.arguments.device)
        for rows in order.split(64):
            x, y = pixels[rows].float() / 255, labels[rows]
            if self.arguments.mode == "eager":
                self.step(x, y)
                continue
            if len(rows) < 64:
                continue
            if self.graph is None:
                self.x, self.y = x.clone(), y.clone()
                # Recording trains: what it has done to the weights is undone.
                before = [p.detach().clone() for p in self.net.parameters()]
                self.graph = record(torch, self.step, self.x, self.y)
                with torch.no_grad():
                    for parameter, old in zip(self.net.parameters(), before):
                        parameter.copy_(old)
                        self.optimiser.state[parameter]["momentum_buffer"].zero_()
            self.x.copy_(x)
            self.y.copy_(y)
            self.graph.replay()

    def accuracy(self, pixels, labels):
        with self.torch.no_grad():
            right = sum((self.net(x.float() / 255).argmax(1) == y).sum()
                        for x, y in zip(pixels.split(1000), labels.split(1000)))
        return right.item() / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", choices=("eager", "graph"), default="eager")
    parser.add_argument("--target", type=float, default=.99)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0, help="training samples (0: all)")
    arguments = parser.parse_args()
    import torch
    torch.manual_seed(arguments.seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    train = load(torch, arguments.data, "train", arguments.device, arguments.limit)
    validation = load(torch, arguments.data, "t10k", arguments.device, 0)
    learner = Learner(torch, arguments)
    for epoch in range(1, arguments.epochs + 1):
        if epoch == 11:
            learner.slow_down()
        learner.train(*train)
        accuracy = learner.accuracy(*validation)
        print(json.dumps({"epoch": epoch, "accuracy": accuracy, "wall_time": time.time(),
                          "torch": torch.__version__}), flush=True)
        if accuracy >= arguments.target:
            return


if __name__ == "__main__":
    main()
