#!/usr/bin/env python3
"""Decoding speed of one thread for an experiment's image archive, compared with torchvision and Pillow:
CPU time, in turn. Kumo's time is that of `kumo data` while it decodes both sets out of the
archive, minus its time when they are decoded already; the others decode from memory.

  bench/image_speed.py [--experiment FILE] [--runs N] [--data DIR] [--bin DIR] [--json FILE]

Without a Python that has torchvision (KUMO_TORCH_PYTHON) it prints Kumo's figure alone. Exit code 77
if the data directory lacks the archive.
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

from jobs import HERE, commit, machine, parser

# Program that reads an archive's JPEG images and then answers each line of its input with the images
# that torchvision and Pillow decode in a second of CPU time.
THEIRS = """
import io, sys, tarfile, time
import numpy, torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
torch.set_num_threads(1)
archive = tarfile.open(sys.argv[1])
files = [archive.extractfile(entry).read() for entry in archive
         if entry.name.lower().endswith((".jpg", ".jpeg"))][:10000]
tensors = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in files]
def rate(decode, images):
    start = time.process_time()
    for image in images:
        decode(image)
    return len(images) / (time.process_time() - start)
print("ready", flush=True)
for _ in sys.stdin:
    print(rate(lambda image: decode_jpeg(image, ImageReadMode.RGB), tensors),
          rate(lambda image: numpy.asarray(Image.open(io.BytesIO(image)).convert("RGB")), files),
          flush=True)
"""


def show(arguments, cache):
    """The output of `kumo data` and its seconds of CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run([arguments.bin / "kumo", "data", arguments.experiment, "--json", "--set",
                           f"data.directory={arguments.data}", "--set", f"data.cache={cache}"],
                          check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(said), (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def kumo_rate(arguments):
    with tempfile.TemporaryDirectory() as cache:
        said, cold = show(arguments, cache)
        warm = show(arguments, cache)[1]
    return (said["train"]["samples"] + said["validation"]["samples"]) / (cold - warm), said


def start_theirs(archive):
    python = os.environ.get("KUMO_TORCH_PYTHON")
    if not python:
        return None
    theirs = subprocess.Popen([python, "-c", THEIRS, archive], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    return theirs if theirs.stdout.readline() else sys.exit("KUMO_TORCH_PYTHON has no torchvision")


def archive_of(name):
    """photos.tar.gz of photos.tar.gz/train."""
    return next(str(path) for path in [pathlib.Path(name), *pathlib.Path(name).parents]
                if path.is_file())


def line(name, rates, ours):
    return (f"{name:12} {statistics.median(rates):10,.0f} ({min(rates):,.0f} - {max(rates):,.0f}) images/s"
            + (f"   Kumo {statistics.median(ours) / statistics.median(rates):.2f} times"
               if rates is not ours else ""))


def main():
    options = parser(__doc__, runs=5)
    options.add_argument("--experiment", default=HERE.parent / "experiments/cifar_convnet.conf",
                         help="of cifar10/cifar10-jpeg.tar.gz (default cifar_convnet)")
    arguments = options.parse_args()
    if not (arguments.data and pathlib.Path(arguments.data, "cifar10").is_dir()):
        print("image_speed.py: --data or KUMO_DATA names no folder with cifar10/cifar10-jpeg.tar.gz")
        return 77
    _, said = kumo_rate(arguments)  # so that the files are in the system's cache
    theirs = start_theirs(archive_of(said["train"]["name"]))
    rates = {"Kumo": [], "torchvision": [], "Pillow": []}
    for _ in range(arguments.runs):
        rates["Kumo"].append(kumo_rate(arguments)[0])
        if theirs:
            theirs.stdin.write("\n")
            theirs.stdin.flush()
            for name, rate in zip(("torchvision", "Pillow"), theirs.stdout.readline().split()):
                rates[name].append(float(rate))
    if theirs:
        theirs.stdin.close()
        theirs.wait()
    print(f"{machine()}, {commit()}; {said['train']['extents']} of {said['train']['name']}")
    for name, values in rates.items():
        if values:
            print(line(name, values, rates["Kumo"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
