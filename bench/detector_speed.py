#!/usr/bin/env python3
"""Speed of SSD300 on a CPU beside PyTorch: a training step of 8 images, and detection of one image.

  bench/detector_speed.py [--work slim,vgg16] [--threads 1,2] [--repeats 3] [--data DIR] [--without-avx512]

vgg16 is torchvision's ssd300_vgg16 (no downloads) and models/zoo/voc_ssd300; slim has a quarter of the
channels: models/zoo/voc_ssd300_slim, in PyTorch layer by layer, with torchvision's loss. PyTorch runs as it
is (eager) and compiled. Training is forward, loss, backward and step on images in memory. Detection includes
non-maximum suppression, and on Kumo's side (`kumo detect --batch 1`) the decoding of the JPEG. In turn, so
that all see the same machine: medians of the repeats, ratios and their range. Kumo trains on images of BCCD
(DIR/voc/bccd.tar.gz, by default of KUMO_DATA).

Needs a Python that has PyTorch, torchvision and numpy.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

from torch_network import TorchNetwork

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH, CLASSES, OBJECTS = 8, 3, 12
FEW, MANY = 4, 36  # images of the two runs whose difference is the time of MANY - FEW images
EXPERIMENTS = {"slim": "bccd_ssd300_slim", "vgg16": "voc_ssd300"}


class Kumo:
    def __init__(self, arguments, work, folder):
        self.bin, self.folder = arguments.bin, folder / work
        self.experiment = ROOT / f"experiments/{EXPERIMENTS[work]}.conf"
        self.sets = [f"data.directory={arguments.data}", "data.train_images=voc/bccd.tar.gz:trainval",
                     "data.validation_images=voc/bccd.tar.gz:test", f"data.classes={CLASSES}",
                     f"sync.minibatch={BATCH}", "sync.mode=gradient", "sync.overlap=0", f"output.directory={self.folder}"]
        if arguments.without_avx512:
            self.sets.append("network.instruction_set=x86-64-v3")
        self.images = folder / "images"
        if not self.images.exists():
            self.unpack(arguments.data)
        # A step, for a checkpoint.
        self.run("kumo", "launch", self.experiment, "--workers", "1",
                 sets=["sync.partitions=1", "job.epochs=1", "data.train_limit=8", "data.validation_limit=8",
                       "schedule.type=constant", "schedule.learning_rate=1e-6", "schedule.warmup=0"])

    def unpack(self, data):
        for name, count in (("few", FEW), ("many", MANY)):
            (self.images / name).mkdir(parents=True)
            with tarfile.open(f"{data}/voc/bccd.tar.gz") as tar:
                pictures = [member for member in tar if member.name.endswith(".jpg")][:count]
                for member in pictures:
                    path = self.images / name / pathlib.PurePath(member.name).name
                    path.write_bytes(tar.extractfile(member).read())

    def run(self, program, *command, sets=()):
        settings = [part for one in [*self.sets, *sets] for part in ("--set", one)]
        ended = subprocess.run([self.bin / program, *command, *settings], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        if ended.returncode != 0:
            sys.exit(f"{program}: {ended.stderr}")
        return ended.stdout

    def train(self, threads, seconds):
        """Seconds of a step."""
        said = self.run("kumo-worker", self.experiment, "--speed", str(seconds),
                        sets=[f"network.threads={threads}", "sync.push_codec=fp32", "sync.pull_codec=fp32"])
        return json.loads(said)["step_s"]

    def detect(self, threads):
        """Seconds of an image."""
        def once(images):
            began = time.perf_counter()
            self.run("kumo", "detect", self.experiment, self.images / images, "--batch", "1",
                     "--score", "0.01", sets=[f"network.threads={threads}"])
            return time.perf_counter() - began
        few = once("few")
        return (once("many") - few) / (MANY - FEW)


class Vgg16:
    """torchvision's own."""

    def __init__(self, torch, compiled):
        from torchvision.models.detection import ssd300_vgg16
        self.model = ssd300_vgg16(weights=None, weights_backbone=None, num_classes=CLASSES + 1)
        if compiled:
            self.model.backbone = torch.compile(self.model.backbone)
            self.model.head = torch.compile(self.model.head)
        self.parameters = list(self.model.parameters())

    def loss(self, images, targets):
        self.model.train()
        return sum(self.model(list(images), targets).values())

    def detect(self, image):
        self.model.eval()
        return self.model([image])


class Slim:
    """The network of a file of models/zoo, with the loss and the detections of torchvision's SSD."""

    def __init__(self, torch, compiled, network, tensors):
        import torchvision
        self.torch = torch
        self.parameters = [tensor.requires_grad_() for tensor in tensors.values()]
        self.ssd = torchvision.models.detection.ssd300_vgg16(weights=None, weights_backbone=None,
                                                             num_classes=CLASSES + 1)
        self.ssd.backbone = self.ssd.head = None
        # The layers up to the heads: multibox is torchvision's.
        net = Outputs(torch, network, tensors)
        self.maps = torch.compile(net.maps) if compiled else net.maps

    def outputs(self, images):
        maps = self.maps(images)
        half = len(maps) // 2

        def joined(maps, numbers):
            return self.torch.cat([x.reshape(len(x), -1, numbers, x.shape[2] * x.shape[3]).permute(0, 3, 1, 2)
                                   .reshape(len(x), -1, numbers) for x in maps], 1)
        from torchvision.models.detection.image_list import ImageList
        listed = ImageList(images, [(300, 300)] * len(images))
        anchors = self.ssd.anchor_generator(listed, [x[:, :1] for x in maps[:half]])
        return {"bbox_regression": joined(maps[:half], 4), "cls_logits": joined(maps[half:], CLASSES + 1)}, anchors

    def loss(self, images, targets):
        from torchvision.ops import boxes
        outputs, anchors = self.outputs(images)
        matched = [self.ssd.proposal_matcher(boxes.box_iou(target["boxes"], of))
                   for of, target in zip(anchors, targets)]
        return sum(self.ssd.compute_loss(targets, outputs, anchors, matched).values())

    def detect(self, image):
        outputs, anchors = self.outputs(image[None])
        return self.ssd.postprocess_detections(outputs, anchors, [(300, 300)])


class Outputs(TorchNetwork):
    def maps(self, images):
        return self.values(images, None)[self.layers[-1]["name"]]

    def multibox(self, _layer, _settings, _objects, *maps):
        return maps


class Torch:
    def __init__(self, torch, numpy, work, compiled, kumo, folder):
        self.torch = torch
        torch.manual_seed(1)
        if work == "vgg16":
            self.net = Vgg16(torch, compiled)
        else:
            first = folder / "first"
            kumo_sets = [*kumo.sets, "data.train_limit=8", "sync.partitions=1"]
            if not first.exists():
                subprocess.run([kumo.bin / "first_steps", kumo.experiment, first, "1", *kumo_sets], check=True)
            run = json.loads((first / "run.json").read_text())
            weights = torch.from_numpy(numpy.fromfile(first / "weights.f32", dtype="float32"))
            tensors = {}
            for tensor in run["tensors"]:
                size = int(numpy.prod(tensor["shape"]))
                tensors[tensor["name"]] = weights[tensor["begin"]:tensor["begin"] + size].reshape(
                    tensor["shape"]).clone()
            self.net = Slim(torch, compiled, run["network"], tensors)
        self.optimiser = torch.optim.SGD(self.net.parameters, lr=1e-6, momentum=.9)
        self.images = torch.rand(BATCH, 3, 300, 300)
        corners = torch.rand(BATCH, OBJECTS, 2) * 200
        self.targets = [{"boxes": torch.cat([at, at + 40 + torch.rand(OBJECTS, 2) * 50], 1),
                         "labels": torch.randint(1, CLASSES + 1, (OBJECTS,))} for at in corners]

    def step(self):
        self.optimiser.zero_grad()
        self.net.loss(self.images, self.targets).backward()
        self.optimiser.step()

    def train(self, threads, seconds):
        self.torch.set_num_threads(threads)
        return self.median(self.step, seconds)

    def detect(self, threads):
        self.torch.set_num_threads(threads)
        with self.torch.no_grad():
            return self.median(lambda: self.net.detect(self.images[0]), 3)

    @staticmethod
    def median(work, seconds):
        """Seconds of a call, after one that warms up."""
        work()
        times, began = [], time.perf_counter()
        while not times or time.perf_counter() - began < seconds:
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return statistics.median(times)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    options.add_argument("--work", default="slim,vgg16")
    options.add_argument("--threads", default="1,2")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--seconds", type=float, default=5, help="of a training measurement (default 5)")
    options.add_argument("--data", default=os.environ.get("KUMO_DATA"), help="default: KUMO_DATA")
    options.add_argument("--without-avx512", action="store_true", help="both sides use AVX2 at most")
    arguments = options.parse_args()
    if arguments.without_avx512:
        os.environ |= {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
    try:
        import numpy
        import torch
        import torchvision
    except ImportError as error:
        sys.exit(f"{error}: run this with a Python that has PyTorch, torchvision and numpy")
    if not arguments.data:
        sys.exit("name the folder of the data with --data or KUMO_DATA")
    torch.set_flush_denormal(True)
    if arguments.without_avx512:
        import torch._inductor.config
        torch._inductor.config.cpp.simdlen = 256
    print(f"PyTorch {torch.__version__}, torchvision {torchvision.__version__}; milliseconds, median; "
          "Kumo's speed by PyTorch's, median and range" + (", AVX2 at most" if arguments.without_avx512 else ""))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for work in arguments.work.split(","):
            kumo = Kumo(arguments, work, folder)
            rivals = {mode: Torch(torch, numpy, work, mode == "compiled", kumo, folder)
                      for mode in ("eager", "compiled")}
            for threads in map(int, arguments.threads.split(",")):
                for what in ("train", "detect"):
                    further = [arguments.seconds] if what == "train" else []
                    times = {"kumo": []} | {mode: [] for mode in rivals}
                    for _ in range(arguments.repeats):
                        times["kumo"].append(getattr(kumo, what)(threads, *further))
                        for mode, rival in rivals.items():
                            times[mode].append(getattr(rival, what)(threads, *further))
                    line = f"{work:6} {what:7} {threads} threads  Kumo {statistics.median(times['kumo']) * 1e3:8.1f}"
                    for mode in rivals:
                        ratios = [theirs / ours for theirs, ours in zip(times[mode], times["kumo"])]
                        line += (f"  {mode} {statistics.median(times[mode]) * 1e3:8.1f}: "
                                 f"{statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})")
                    print(line, flush=True)


if __name__ == "__main__":
    main()
