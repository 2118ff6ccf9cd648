#!/usr/bin/env python3
"""Speed of decoding and augmenting JPEGs with one thread, in images per second of CPU time, compared with
torchvision on the same files, in turn: CIFAR's images, moved by up to 4 pixels and mirrored (cifar_resnet20),
photographs of 500 x 375, random parts of which become 224 x 224, mirrored (imagenet_resnet50), and the same
photographs with SSD's colours, canvas, random interpolation and flip at 300 x 300 (torchvision: linear).

  bench/augment_speed.py [--runs N] [--seconds S] [--data DIR] [--bin DIR] [--json FILE]

The photographs are those of voc/bccd.tar.gz, made that large by a Python with torchvision and Pillow
(KUMO_TORCH_PYTHON); without one it prints Kumo's figures of CIFAR's images, and of SSD's steps on photographs of
640 x 480. Ends with 77 where the data directory does not have these archives.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

from jobs import HERE, commit, machine, parser

# Makes the photographs and says "ready", then times what each line of its input names.
THEIRS = """
import io, pathlib, sys, time
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2
torch.set_num_threads(1)
folder = pathlib.Path(sys.argv[1])
for path in (folder / "large").rglob("*.jpg"):
    Image.open(path).convert("RGB").resize((500, 375)).save(path, quality=90)
flip = v2.RandomHorizontalFlip()
augment = {"small": v2.Compose([v2.RandomCrop(32, padding=4, fill=128), flip]),
           "large": v2.Compose([v2.RandomResizedCrop(224, antialias=True), flip]),
           "ssd": v2.Compose([v2.RandomPhotometricDistort(), v2.RandomZoomOut(),
                              v2.Resize((300, 300), antialias=True), flip])}
files = {part: [torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
                for path in sorted((folder / part / "train").rglob("*.jpg"))]
         for part in ("small", "large")}
files["ssd"] = files["large"]
print("ready", flush=True)
for line in sys.stdin:
    part, seconds = line.split()
    done, start = 0, time.process_time()
    while time.process_time() - start < float(seconds):
        augment[part](decode_jpeg(files[part][done % len(files[part])], ImageReadMode.RGB))
        done += 1
    print(done / (time.process_time() - start), flush=True)
"""

WORK = {
    "small": ("CIFAR's, 32 x 32", "small", "cifar_resnet20", []),
    "large": ("photographs, 500 x 375", "large", "imagenet_resnet50", []),
    "ssd": ("photographs, SSD's steps", "large", "imagenet_resnet50",
            ["data.image_size=3x300x300", "data.resize=stretch", "data.crop_area=", "data.shorter_side=300",
             "data.photometric=true", "data.expand=4", "data.random_interpolation=true"]),
}


def unpack(archive, most, folder):
    """Its first JPEGs, in folders of two classes."""
    found = 0
    with tarfile.open(archive) as entries:
        for entry in entries:
            if entry.name.lower().endswith((".jpg", ".jpeg")) and found < most:
                to = folder / "train" / str(found % 2)
                to.mkdir(parents=True, exist_ok=True)
                (to / f"{found:05}.jpg").write_bytes(entries.extractfile(entry).read())
                found += 1


def start_theirs(folder):
    python = os.environ.get("KUMO_TORCH_PYTHON")
    if not python:
        return None
    theirs = subprocess.Popen([python, "-c", THEIRS, folder], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    return theirs if theirs.stdout.readline() else sys.exit("KUMO_TORCH_PYTHON has no torchvision")


def kumo_rate(arguments, part, folder):
    _, images, experiment, settings = WORK[part]
    said = subprocess.run(
        [arguments.bin / "reading_speed", HERE.parent / "experiments" / f"{experiment}.conf",
         str(arguments.seconds), f"data.directory={folder}", "data.reader=image_folder",
         f"data.train_images={images}/train", f"data.validation_images={images}/train",
         "data.decode=demand", "data.classes=2", *settings],
        check=True, capture_output=True, text=True).stdout
    return json.loads(said)["samples_per_s"]


def main():
    arguments = parser(__doc__, runs=5, seconds=2).parse_args()
    archives = {part: pathlib.Path(arguments.data or "", name)
                for part, name in (("small", "cifar10/cifar10-jpeg.tar.gz"),
                                   ("large", "voc/bccd.tar.gz"))}
    if not all(archive.is_file() for archive in archives.values()):
        print("augment_speed.py: --data or KUMO_DATA names no folder with "
              + " and ".join(str(archive) for archive in archives.values()))
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for part, archive in archives.items():
            unpack(archive, 5000 if part == "small" else 300, pathlib.Path(folder, part))
        theirs = start_theirs(folder)
        rates = {part: ([], []) for part in (WORK if theirs else ["small", "ssd"])}
        for _ in range(arguments.runs):
            for part, (ours, others) in rates.items():
                ours.append(kumo_rate(arguments, part, folder))
                if theirs:
                    theirs.stdin.write(f"{part} {arguments.seconds}\n")
                    theirs.stdin.flush()
                    others.append(float(theirs.stdout.readline()))
        if theirs:
            theirs.stdin.close()
            theirs.wait()
    print(f"{machine()}, {commit()}; images a second of one thread's CPU time")
    for part, (ours, others) in rates.items():
        text = "".join(f" {who} {statistics.median(rate):8,.0f} ({min(rate):,.0f} - {max(rate):,.0f})"
                       for who, rate in (("Kumo", ours), ("torchvision", others)) if rate)
        ratios = [a / b for a, b in zip(ours, others)]
        print(f"{WORK[part][0]:24}{text}"
              + (f"   {statistics.median(ratios):.2f} times" if ratios else ""))
    if arguments.json:
        arguments.json.write_text(json.dumps(rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
