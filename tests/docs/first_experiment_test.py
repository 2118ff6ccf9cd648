#!/usr/bin/env python3
"""docs/first_experiment.md as a reader tries it: its Python writes data files; its network and its
experiment are checked, trained and evaluated.

  tests/docs/first_experiment_test.py --bin DIR      DIR: where kumo and the other programs are
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSES, SIDE = 10, 28


class Array:
    """The part of a numpy.uint8 array that the page's function uses."""

    def __init__(self, shape, content):
        self.shape, self.ndim, self.content = shape, len(shape), bytes(content)

    def tobytes(self):
        return self.content


def blocks_of_page():
    """The page's fenced blocks, by their language."""
    text = (ROOT / "docs/first_experiment.md").read_text()
    return dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.S | re.M))


def write_data(write_idx, folder):
    """Images with a bright row where the label says so."""
    numbers = random.Random(1)
    for part, count in (("train", 1000), ("validation", 200)):
        labels = [numbers.randrange(CLASSES) for _ in range(count)]
        images = bytearray()
        for label in labels:
            for row in range(SIDE):
                low = 200 if row // 2 == label else 0
                images += bytes(numbers.randrange(low, low + 50) for _ in range(SIDE))
        write_idx(folder / f"{part}-images.gz", Array((count, SIDE, SIDE), images))
        write_idx(folder / f"{part}-labels.gz", Array((count,), labels))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bin", type=pathlib.Path, required=True)
    kumo = options.parse_args().bin.resolve() / "kumo"
    blocks = blocks_of_page()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        namespace = {}
        exec(blocks["python"], namespace)
        write_data(namespace["write_idx"], folder)
        (folder / "mine.pbtxt").write_text(blocks["pbtxt"])
        (folder / "mine.conf").write_text(blocks["ini"])
        for command in ("check", "launch", "evaluate"):
            ended = subprocess.run(
                [kumo, command, "mine.conf", "--set", f"data.directory={folder}",
                 "--set", "job.epochs=3", "--set", "sync.block=5"],
                cwd=folder, capture_output=True, text=True)
            if ended.returncode != 0:
                sys.exit(f"kumo {command} ended with {ended.returncode}:\n{ended.stdout}"
                         f"{ended.stderr}")
        accuracy = float(re.search(r"validation/main/accuracy (\S+)", ended.stdout)[1])
        if accuracy < .9:
            sys.exit(f"the accuracy is {accuracy}: the rows of the images tell the labels\n"
                     f"{ended.stdout}")


if __name__ == "__main__":
    main()
