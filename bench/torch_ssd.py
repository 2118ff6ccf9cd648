#!/usr/bin/env python3
"""Training of a detector by Kumo and by PyTorch, from the same initial weights, on the same augmented
samples, with the same rates and steps: mean average precision (VOC 2010, overlap .5) of each evaluated
epoch, a line of JSON each, and tables at the end: of these, and of how far the losses of the rounds differ.

  bench/torch_ssd.py experiments/bccd_ssd300_slim.conf [--epochs N] [--again] [--set KEY=VALUE ...]

Two trainings that round differently diverge: --again trains in PyTorch once more, from weights changed by
1e-6 of themselves, as the yardstick.

Takes gradient mode and adamw, and data without difficult objects. Kumo's figures are its own; PyTorch's
detections are counted by bench/torch_detector.py. The seconds are no measurement of speed: PyTorch's steps
run beside the process that augments. Needs a Python that has PyTorch and numpy.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from first_losses import optimiser_of
from torch_network import TorchNetwork

ROOT = pathlib.Path(__file__).resolve().parents[1]


def kumo(arguments, sets, folder):
    """{epoch: map}, losses by round, seconds."""
    began = time.time()
    subprocess.run([arguments.bin / "kumo", "launch", arguments.experiment, "--workers", str(arguments.workers),
                    *sets, "--set", f"output.directory={folder}/out"], check=True,
                   stdout=subprocess.DEVNULL if arguments.quiet else sys.stderr)
    lines = [json.loads(line) for line in (folder / "out/log.jsonl").read_text().splitlines()]
    return ({line["epoch"]: line["validation/main/map"] for line in lines if "validation/main/map" in line},
            [line["main/loss"] for line in lines if line["kind"] == "point"], time.time() - began)


class Detector(TorchNetwork):
    """Keeps the inputs of the loss."""

    def multibox(self, layer, settings, objects, *maps):
        self.maps = maps
        return super().multibox(layer, settings, objects, *maps)


class Training:
    """In PyTorch, from Kumo's initial weights, each times 1 plus a normal number of the deviation `change`."""

    def __init__(self, torch, numpy, arguments, sets, folder, change=0.0):
        self.torch, self.numpy = torch, numpy
        plain = [one for one in sets if one != "--set"]
        subprocess.run([arguments.bin / "first_steps", arguments.experiment, folder / "first", "1", *plain],
                       check=True)
        run = json.loads((folder / "first/run.json").read_text())
        if run["optimiser"]["type"] != "adamw":
            sys.exit(f"optimiser.type = {run['optimiser']['type']}: PyTorch's side has adamw only")
        weights = torch.from_numpy(numpy.fromfile(folder / "first/weights.f32", dtype="float32"))
        weights *= 1 + change * torch.randn(weights.shape, generator=torch.Generator().manual_seed(1))
        self.tensors = {}
        for tensor in run["tensors"]:
            size = math.prod(tensor["shape"])
            value = weights[tensor["begin"]:tensor["begin"] + size].reshape(tensor["shape"]).clone()
            self.tensors[tensor["name"]] = value.requires_grad_()
        self.net = Detector(torch, run["network"], self.tensors)
        self.optimiser = optimiser_of(torch, run["optimiser"], run["tensors"], self.tensors)
        self.multibox = run["network"]["layers"][-1]["multibox"]
        (self.shape,) = [[one[key] for key in ("channels", "height", "width")] for one in run["network"]["input"]]
        self.stream = subprocess.Popen([arguments.bin / "sample_stream", arguments.experiment, *plain],
                                       stdout=subprocess.PIPE)
        pixels = json.loads(self.stream.stdout.readline())
        self.mean, self.scale = (torch.tensor(pixels[name]).view(1, -1, 1, 1) for name in ("mean", "scale"))

    def batches(self):
        while head := self.stream.stdout.readline():
            head = json.loads(head)
            pixels = self.stream.stdout.read(head["samples"] * math.prod(self.shape))
            array = self.numpy.frombuffer(pixels, dtype="uint8").reshape(-1, *self.shape).copy()
            yield head, (self.torch.from_numpy(array).float() - self.mean) * self.scale
        if self.stream.wait() != 0:
            sys.exit("sample_stream failed")

    def detect(self, images, objects):
        from torch_detector import by_box, default_boxes, detections, scores_of
        with self.torch.no_grad():
            self.net.loss(images, objects)
        maps, count = self.net.maps, len(self.multibox["maps"])
        defaults = default_boxes(self.multibox["maps"], [x.shape[2:] for x in maps[:count]])
        offsets = by_box(maps[:count], 4).numpy()
        scores = by_box(maps[count:], scores_of(maps[count:], defaults)).numpy()
        return [detections(defaults, *pair) for pair in zip(offsets, scores)]

    def run(self):
        """{epoch: map}, losses by round, seconds of the steps alone."""
        from torch_detector import mean_average_precision
        maps, losses, found, objects, seconds, epoch = {}, [], [], [], 0.0, 0

        def end():
            if found:
                maps[epoch] = mean_average_precision(found, objects, self.multibox["classes"])
                print(json.dumps({"epoch": epoch, "pytorch": maps[epoch]}), flush=True)
        for head, images in self.batches():
            if head["validation"]:
                epoch = head["epoch"]
                found += self.detect(images, head["objects"])
                objects += head["objects"]
                continue
            end()
            found, objects = [], []
            began = time.time()
            for group in self.optimiser.param_groups:
                group["lr"] = head["rate"] * group["factor"]
            self.optimiser.zero_grad()
            loss = self.net.loss(images, head["objects"])
            loss.backward()
            self.optimiser.step()
            losses.append(loss.item())
            seconds += time.time() - began
        end()
        return maps, losses, seconds


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("experiment")
    options.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    options.add_argument("--epochs", type=int, help="default: the experiment's")
    options.add_argument("--workers", type=int, default=2, help="of Kumo, and threads of PyTorch (default 2)")
    options.add_argument("--again", action="store_true",
                         help="PyTorch a second time, from weights changed by 1e-6 of themselves")
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options.add_argument("--quiet", action="store_true", help="without Kumo's progress")
    arguments = options.parse_args()
    if "KUMO_DATA" not in os.environ and not any(one.startswith("data.directory") for one in arguments.set):
        sys.exit("KUMO_DATA must name the data's folder")
    try:
        import numpy
        import torch
    except ImportError as error:
        sys.exit(f"{error}: run this with a Python that has PyTorch and numpy")
    torch.set_num_threads(arguments.workers)
    sets = [part for one in arguments.set for part in ("--set", one)]
    if arguments.epochs:
        sets += ["--set", f"job.epochs={arguments.epochs}"]
    sides = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sides["PyTorch"] = Training(torch, numpy, arguments, sets, folder).run()
        if arguments.again:
            sides["PyTorch again"] = Training(torch, numpy, arguments, sets, folder, 1e-6).run()
        sides["Kumo"] = kumo(arguments, sets, folder)
    report(sides)


def report(sides):
    maps, losses, seconds = sides["PyTorch"]
    print(f"{'map in epoch':24}" + "".join(f"{side:>16}" for side in sides))
    for epoch in sorted(maps):
        print(f"{epoch:24}" + "".join(f"{one.get(epoch, math.nan):16.4f}" for one, _, _ in sides.values()))
    print("loss of a round beside PyTorch's, median and range")
    for side, (_, others, _) in sides.items():
        for first, last in ((1, 1), (2, 9), (10, 29), (30, len(losses))):
            pairs = list(zip(others, losses))[first - 1:last]
            if side != "PyTorch" and pairs:
                ratios = [other / theirs - 1 for other, theirs in pairs]
                print(f"  {side:14} rounds {first:4} to {last:4} {statistics.median(ratios):+10.1e} "
                      f"{min(ratios):+10.1e} {max(ratios):+10.1e}")
    print(f"Kumo {sides['Kumo'][2]:.0f} s with evaluations, PyTorch's steps {seconds:.0f} s")


if __name__ == "__main__":
    main()
