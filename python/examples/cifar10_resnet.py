"""ResNet-20 on CIFAR-10, trained by PyTorch on Kumo's servers:

    KUMO_DATA=DIR kumo launch cifar10_resnet.conf --workers 2

DIR/cifar10/cifar10-jpeg.tar.gz: images as train/CLASS/NAME.jpg and test/CLASS/NAME.jpg. Needs Pillow.
"""
import io
import os
import pathlib
import tarfile

import kumo
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F

DEVICE = os.environ.get("KUMO_DEVICE", "cpu")  # kumo launch --devices
MEAN, DEVIATION = (0.491, 0.482, 0.447), (0.247, 0.243, 0.262)


def read_archive():
    """{"train": ..., "test": ...}: lists of (class, bytes of a JPEG file), in the order of their names."""
    files = {}
    with tarfile.open(pathlib.Path(os.environ["KUMO_DATA"], "cifar10/cifar10-jpeg.tar.gz")) as archive:
        for member in archive:
            if member.name.endswith(".jpg"):
                files[member.name] = archive.extractfile(member).read()
    classes = sorted({name.split("/")[1] for name in files})
    return {part: [(classes.index(name.split("/")[1]), files[name]) for name in sorted(files)
                   if name.startswith(part + "/")] for part in ("train", "test")}


class Images:
    def __init__(self, files):
        self.labels = torch.tensor([label for label, _ in files]).to(DEVICE)
        self.files = [content for _, content in files]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, indices):
        """Images of shape [samples, 3, 32, 32], and their classes."""
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(self.files[i]))) for i in indices])
        images = torch.from_numpy(pixels).to(DEVICE).permute(0, 3, 1, 2) / 255
        mean, deviation = (torch.tensor(three, device=DEVICE)[:, None, None] for three in (MEAN, DEVIATION))
        return (images - mean) / deviation, self.labels[indices]


def augmented(images):
    """Shifted by up to 4 pixels and mirrored. The random numbers are the block's: kumo has seeded torch."""
    padded = F.pad(images, (4, 4, 4, 4))
    rows, columns = torch.randint(0, 9, (2, len(images))).tolist()
    shifted = torch.stack([image[:, row:row + 32, column:column + 32]
                           for image, row, column in zip(padded, rows, columns)])
    mirrored = torch.rand(len(images)) < 0.5
    return torch.where(mirrored.to(DEVICE)[:, None, None, None], shifted.flip(3), shifted)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.stride, self.added = stride, outputs - inputs

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        x = x[:, :, ::self.stride, ::self.stride]
        return F.relu(y + F.pad(x, (0, 0, 0, 0, 0, self.added)))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        widths = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2
        self.blocks = nn.Sequential(*[Residual(*width) for width in widths])
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.norm(self.conv(x))))
        return self.head(x.mean((2, 3)))


def main():
    torch.set_num_threads(1)  # a worker is a process; several workers use several cores
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    files = read_archive()
    train, validation = Images(files["train"]), Images(files["test"])
    model = ResNet20().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)

    def figures(scores, labels):
        return {"loss": F.cross_entropy(scores, labels),
                "accuracy": (scores.argmax(1) == labels).float().mean()}

    def evaluate(part):
        for indices in part.minibatches():
            images, labels = validation[indices]
            part.add(**figures(model(images), labels), samples=len(indices))

    with kumo.Worker(None, model, optimizer, train_samples=len(train), validation_samples=len(validation),
                     metrics=["loss", "accuracy"]) as worker:
        for block in worker.blocks(evaluate):
            for indices in block.minibatches():
                images, labels = train[indices]
                means = figures(model(augmented(images)), labels)
                for group in optimizer.param_groups:
                    group["lr"] = block.learning_rate
                optimizer.zero_grad()
                means["loss"].backward()
                optimizer.step()
                block.add(**means, samples=len(indices))


if __name__ == "__main__":
    main()
