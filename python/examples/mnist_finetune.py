"""A LeNet that mnist_lenet.py has trained, with frozen convolutions and a new head for another question:
is the digit even?

    KUMO_DATA=DIR kumo launch mnist_lenet.conf --workers 2
    KUMO_DATA=DIR kumo launch mnist_finetune.conf --workers 2

PRETRAINED: the first job's output folder (out/mnist_lenet).
"""
import os

import kumo
import torch
from torch import nn
from torch.nn import functional as F

from mnist_lenet import DEVICE, Digits, LeNet


def main():
    torch.set_num_threads(1)  # a worker is a process; several workers use several cores
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    train = Digits("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
    validation = Digits("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
    model = LeNet()
    model.load_state_dict(kumo.load_state_dict(os.environ.get("PRETRAINED", "out/mnist_lenet"), model))
    model.fc2 = nn.Linear(500, 2)
    for layer in (model.conv1, model.conv2):
        layer.requires_grad_(False)  # before the Worker is made
    model.to(DEVICE)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)

    def figures(images, digits):
        scores, even = model(images), 1 - digits % 2
        return {"loss": F.cross_entropy(scores, even),
                "accuracy": (scores.argmax(1) == even).float().mean()}

    def evaluate(part):
        for indices in part.minibatches():
            part.add(**figures(*validation[indices]), samples=len(indices))

    with kumo.Worker(None, model, optimizer, train_samples=len(train), validation_samples=len(validation),
                     metrics=["loss", "accuracy"]) as worker:
        for block in worker.blocks(evaluate):
            for indices in block.minibatches():
                means = figures(*train[indices])
                for group in optimizer.param_groups:
                    group["lr"] = block.learning_rate
                optimizer.zero_grad()
                means["loss"].backward()
                optimizer.step()
                block.add(**means, samples=len(indices))


if __name__ == "__main__":
    main()
