#!/usr/bin/env python3
"""PyTorch's accuracy with an experiment's network, images, augmentation, rates and epochs,
from the same initial weights, as one learner that takes a step with each minibatch: what Kumo's
run over several partitions is to be held against. A line of JSON an epoch.

  bench/torch_accuracy.py experiments/cifar_convnet.conf [--minibatch N] [--threads N] [--seed N]
                          [--epochs N] [--limit N] [--bin DIR] [--data DIR]

Takes image_folder sets of small images in a tar archive, subtract_mean, crop_pad, flip, momentum, and
schedules of stages (per sample) or multistep by epochs; refuses others. Needs a Python that has
PyTorch, numpy and Pillow.
"""
import argparse
import collections
import configparser
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

from torch_network import TorchNetwork, pair

NOTHING_TO_RUN = 77  # what CTest takes for a test that was skipped
ROOT = pathlib.Path(__file__).resolve().parents[1]
KNOWN = {"data": {"reader", "train_images", "validation_images", "scale", "subtract_mean", "crop_pad",
                  "pad_value", "flip", "classes"},
         "optimiser": {"type", "momentum", "unit_gain", "weight_decay"},
         "schedule": {"type", "per", "unit", "milestones", "rates", "time_constants",
                      "learning_rate", "gamma"}}


def read_experiment(path):
    parser = configparser.ConfigParser(inline_comment_prefixes="#")
    parser.read_string(path.read_text())
    for section, known in KNOWN.items():
        for key in set(parser[section]) - known:
            sys.exit(f"{path}: {section}.{key} is nothing that this script knows")
    return parser


def read_images(numpy, root, archive, limit):
    """(images x channels x height x width, labels) of archive/folder/class/image; 0: no limit to either."""
    from PIL import Image
    name, folder = archive.split(".tar.gz/")
    by_class = collections.defaultdict(list)
    with tarfile.open(root / f"{name}.tar.gz") as files:
        for member in files:
            parts = pathlib.PurePath(member.name).parts
            if member.isfile() and folder in parts[:-2]:
                image = Image.open(io.BytesIO(files.extractfile(member).read())).convert("RGB")
                by_class[parts[-2]].append(numpy.asarray(image).transpose(2, 0, 1))
    of_class = limit // len(by_class) or None
    images = [image for name in sorted(by_class) for image in by_class[name][:of_class]]
    labels = [i for i, name in enumerate(sorted(by_class)) for _ in by_class[name][:of_class]]
    return numpy.stack(images), numpy.array(labels)


class Network(TorchNetwork):
    """The same in training and in use, with dropout and running statistics."""

    training = True

    def dropout(self, _layer, settings, _, x):
        return self.functional.dropout(x, settings["ratio"], self.training)

    def batchNormalisation(self, layer, settings, _, x):
        return self.functional.batch_norm(
            x, self.tensor(layer, "running_mean"), self.tensor(layer, "running_variance"),
            self.tensor(layer, "scale"), self.tensor(layer, "shift"), training=self.training,
            momentum=1 - pair(settings, "momentum", .9), eps=pair(settings, "epsilon", 1e-5))

    def softmaxCrossEntropy(self, layer, settings, labels, x):
        self.scores = x.flatten(1)
        return super().softmaxCrossEntropy(layer, settings, labels, x)


def numbers(text):
    return [float(number) for number in text.split(",")]


def rates_of(schedule, optimiser, minibatch, epoch):
    """(learning rate of the minibatch's mean, momentum) in an epoch, which may be broken."""
    stage = sum(epoch >= milestone for milestone in numbers(schedule["milestones"]))
    if schedule["type"] == "multistep":
        rate = float(schedule["learning_rate"]) * float(schedule["gamma"]) ** stage
        return rate, float(optimiser["momentum"])
    rate = numbers(schedule["rates"])[stage] * (minibatch if schedule["per"] == "sample" else 1)
    constant = numbers(schedule["time_constants"])[stage]
    return rate, math.exp(-minibatch / constant) if constant > 0 else 0.0


class Training:
    def __init__(self, torch, numpy, arguments, experiment):
        self.torch, self.experiment, self.minibatch = torch, experiment, arguments.minibatch
        torch.manual_seed(arguments.seed)
        data = experiment["data"]
        self.train = read_images(numpy, arguments.data, data["train_images"], arguments.limit)
        self.validation = read_images(numpy, arguments.data, data["validation_images"],
                                      arguments.limit)
        self.scale = float(data.get("scale", 1 / 255))
        self.mean = (torch.from_numpy(self.train[0].mean(0, dtype="float64")).float()
                     if data.getboolean("subtract_mean", False) else 0)
        self.start(torch, numpy, arguments)

    def start(self, torch, numpy, arguments):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            subprocess.run([arguments.bin / "first_steps", arguments.experiment, folder, "1",
                            f"data.directory={arguments.data}", f"job.seed={arguments.seed}"],
                           check=True)
            run = json.loads((folder / "run.json").read_text())
            weights = torch.from_numpy(numpy.fromfile(folder / "weights.f32", dtype="float32"))
        self.name, tensors, groups = run["network"]["name"], {}, {True: [], False: []}
        for tensor in run["tensors"]:
            size = math.prod(tensor["shape"])
            value = weights[tensor["begin"]:tensor["begin"] + size].reshape(tensor["shape"]).clone()
            tensors[tensor["name"]] = value
            if ".running_" not in tensor["name"]:
                groups[tensor["decayed"]].append(value.requires_grad_())
        self.net = Network(torch, run["network"], tensors)
        decay = float(self.experiment["optimiser"].get("weight_decay", 0))
        self.optimiser = torch.optim.SGD([{"params": groups[True], "weight_decay": decay},
                                          {"params": groups[False], "weight_decay": 0.0}],
                                         lr=1.0, momentum=.5)

    def augmented(self, images):
        """Each image's own window of the padded image, mirrored or not."""
        torch, data = self.torch, self.experiment["data"]
        pad = int(data.get("crop_pad", 0))
        count, _, height, width = images.shape
        padded = torch.nn.functional.pad(images, (pad,) * 4, value=float(data.get("pad_value", 0)))
        rows = torch.randint(0, 2 * pad + 1, (count, 1)) + torch.arange(height)
        columns = torch.randint(0, 2 * pad + 1, (count, 1)) + torch.arange(width)
        if data.getboolean("flip", False):
            columns = torch.where(torch.rand(count, 1) < .5, columns.flip(1), columns)
        cut = padded[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return cut.permute(0, 3, 1, 2)

    def epoch(self, epoch):
        torch, optimiser = self.torch, self.experiment["optimiser"]
        images, labels = map(torch.from_numpy, self.train)
        steps = len(labels) / self.minibatch
        self.net.training = True
        for step, chosen in enumerate(torch.randperm(len(labels)).split(self.minibatch)):
            rate, momentum = rates_of(self.experiment["schedule"], optimiser, self.minibatch,
                                      epoch + step / steps)
            for group in self.optimiser.param_groups:
                group.update(lr=rate, momentum=momentum, dampening=momentum if
                             optimiser.getboolean("unit_gain", False) else 0.0)
            inputs = (self.augmented(images[chosen].float()) - self.mean) * self.scale
            self.optimiser.zero_grad()
            self.net.loss(inputs, labels[chosen]).backward()
            self.optimiser.step()

    def validate(self):
        torch = self.torch
        images, labels = map(torch.from_numpy, self.validation)
        self.net.training, loss, right = False, 0.0, 0
        with torch.no_grad():
            for x, y in zip(images.split(500), labels.split(500)):
                loss += self.net.loss((x.float() - self.mean) * self.scale, y).item() * len(y)
                right += (self.net.scores.argmax(1) == y).sum().item()
        return {"loss": loss / len(labels), "accuracy": right / len(labels)}


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("experiment", type=pathlib.Path)
    options.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    options.add_argument("--data", type=pathlib.Path, default=os.environ.get("KUMO_DATA"),
                         help="data.directory (default: KUMO_DATA)")
    options.add_argument("--minibatch", type=int, help="samples of a step (default: a partition's)")
    options.add_argument("--epochs", type=int, help="default: the experiment's")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--limit", type=int, default=0, help="images of each set (default: all)")
    arguments = options.parse_args()
    if arguments.data is None:
        print("torch_accuracy.py: --data or KUMO_DATA must name the data's folder", file=sys.stderr)
        sys.exit(NOTHING_TO_RUN)
    experiment = read_experiment(arguments.experiment)
    arguments.minibatch = arguments.minibatch or int(experiment["sync"]["minibatch"])
    try:
        import numpy
        import PIL  # noqa: F401, which read_images wants
        import torch
    except ImportError as error:
        print(f"{error}: run this with a Python that has PyTorch, numpy and Pillow", file=sys.stderr)
        sys.exit(NOTHING_TO_RUN)
    torch.set_num_threads(arguments.threads)
    training = Training(torch, numpy, arguments, experiment)
    began = time.time()
    for epoch in range(arguments.epochs or int(experiment["job"]["epochs"])):
        training.epoch(epoch)
        print(json.dumps({"network": training.name, "epoch": epoch + 1, **training.validate(),
                          "seconds": round(time.time() - began)}), flush=True)


if __name__ == "__main__":
    main()
