"""LeNet on MNIST, trained by PyTorch on Kumo's servers:

    KUMO_DATA=DIR kumo launch mnist_lenet.conf --workers 2      DIR/mnist: the four files of MNIST
"""
import gzip
import os
import pathlib

import kumo
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DEVICE = os.environ.get("KUMO_DEVICE", "cpu")  # kumo launch --devices


def read_idx(name):
    """The numbers of an IDX file as an array of its shape."""
    path = pathlib.Path(os.environ["KUMO_DATA"], "mnist", name)
    data = (gzip.open(path) if path.suffix == ".gz" else open(path, "rb")).read()
    dimensions = data[3]
    shape = np.frombuffer(data, ">i4", dimensions, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


class Digits:
    def __init__(self, images, labels):
        self.images = torch.from_numpy(read_idx(images)[:, None] / np.float32(255)).to(DEVICE)
        self.labels = torch.from_numpy(read_idx(labels).astype(np.int64)).to(DEVICE)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, indices):
        return self.images[indices], self.labels[indices]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(800, 500)
        self.fc2 = nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.conv1(x)), 2)
        x = F.max_pool2d(torch.tanh(self.conv2(x)), 2)
        return self.fc2(torch.tanh(self.fc1(x.flatten(1))))


def main():
    torch.set_num_threads(1)  # a worker is a process; several workers use several cores
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    train = Digits("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
    validation = Digits("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
    model = LeNet().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def evaluate(part):
        for indices in part.minibatches():
            x, labels = validation[indices]
            scores = model(x)
            part.add(loss=F.cross_entropy(scores, labels),
                     accuracy=(scores.argmax(1) == labels).float().mean(), samples=len(indices))

    with kumo.Worker(None, model, optimizer, train_samples=len(train), validation_samples=len(validation),
                     metrics=["loss", "accuracy"]) as worker:
        for block in worker.blocks(evaluate):
            for indices in block.minibatches():
                x, labels = train[indices]
                scores = model(x)
                loss = F.cross_entropy(scores, labels)
                for group in optimizer.param_groups:
                    group["lr"] = block.learning_rate
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                block.add(loss=loss, accuracy=(scores.argmax(1) == labels).float().mean(),
                          samples=len(indices))


if __name__ == "__main__":
    main()
