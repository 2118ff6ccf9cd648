#!/usr/bin/env python3
"""The experiments on drawn scenes, small and with real processes: masks in a folder beside the images, and several labels
in a table. Networks of pairs of pictures, from the columns of a table.

  tests/exchange/scenes_test.py --bin DIR      DIR: where kumo and the other programs are
"""
import argparse
import csv
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

PAIRS = """
[job]
epochs = 12
[network]
file = %s.pbtxt
[data]
reader = table
directory = pairs
train_images = pairs.csv
validation_images = pairs.csv
columns = %s
classes = %d
flip = true
[sync]
mode = gradient
partitions = 2
minibatch = 8
[schedule]
learning_rate = 0.1
"""

# A negative of the left picture, by way of half the height and width.
NEGATIVE = """
name: "negative"
input { name: "left" channels: 1 height: 8 width: 8 }
layers { name: "wide" convolution { outputs: 16 kernel: 4 stride: 2 pad: 1 } }
layers { name: "relu" relu {} }
layers { name: "parts" convolution { outputs: 4 kernel: 3 pad: 1 } }
layers { name: "again" pixel_shuffle { factor: 2 } }
layers { name: "aside" targets: "negative" loss_weight: 0 huber { delta: 0.1 } }
layers { name: "loss" inputs: "again" targets: "negative" mean_squared_error {} }
"""

SAME = """
name: "same"
input { name: "left" channels: 1 height: 8 width: 8 }
input { name: "right" channels: 1 height: 8 width: 8 }
layers { name: "of_left" inputs: "left" convolution { outputs: 8 kernel: 3 } }
layers { name: "of_right" inputs: "right" tensors_of: "of_left" convolution { outputs: 8 kernel: 3 } }
layers { name: "both" inputs: "of_left" inputs: "of_right" concat {} }
layers { name: "hidden" fully_connected { outputs: 16 } }
layers { name: "relu" relu {} }
layers { name: "scores" fully_connected { outputs: 2 } }
layers { name: "loss" targets: "same" softmax_cross_entropy {} }
"""

SMALL = ["--set", "sync.partitions=2", "--set", "sync.minibatch=4"]


def png(path):
    """Width, height, kind of colours and rows of a PNG of 8 bits without filters of rows above."""
    content = path.read_bytes()
    at, data = 8, b""
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        body = content[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, bits, colours = struct.unpack(">IIBB", body[:10])
            assert bits == 8
        if kind == b"IDAT":
            data += body
        at += 12 + length
    return width, height, colours, zlib.decompress(data)


def write_grey(path, rows):
    """Writes a grey PNG of 8 bits."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def write_pairs(folder):
    """64 pairs of pictures with one bright half, and the negative of the left one."""
    draws = random.Random(1)
    folder.mkdir()
    rows = ["left,right,negative,same"]
    for i in range(64):
        same = i % 2
        sides = [draws.randrange(2)]
        sides.append(sides[0] if same else 1 - sides[0])
        pictures = [[[draws.randrange(200, 240) if (x < 4) == (side == 0) else draws.randrange(40) for x in range(8)]
                     for _ in range(8)] for side in sides]
        write_grey(folder / f"{i}l.png", pictures[0])
        write_grey(folder / f"{i}r.png", pictures[1])
        write_grey(folder / f"{i}n.png", [[255 - value for value in row] for row in pictures[0]])
        rows.append(f"{i}l.png,{i}r.png,{i}n.png,{same}")
    (folder / "pairs.csv").write_text("\n".join(rows) + "\n")


class ScenesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.environment = {**os.environ, "XDG_CACHE_HOME": str(cls.folder / "cache"), "PWD": str(cls.folder)}
        cls.run_program("kumo-data", "scenes", "--out", "data", "--train", "96", "--validation", "24")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def run_program(cls, program, *arguments, expect=0):
        ended = subprocess.run([options.bin / program, *map(str, arguments)], cwd=cls.folder, text=True,
                               capture_output=True, env=cls.environment, timeout=120)
        assert ended.returncode == expect, \
            f"{program} {arguments}: {ended.returncode}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        return ended

    def train(self, experiment, name, *more):
        """The figures of each epoch."""
        self.run_program("kumo", "launch", experiment, "--set", "data.directory=data", *SMALL,
                         "--set", f"output.directory={name}", *more)
        return self.epochs(name)

    def epochs(self, name):
        lines = map(json.loads, (self.folder / name / "log.jsonl").read_text().splitlines())
        return [line for line in lines if line["kind"] == "epoch"]

    def weights(self, name):
        self.run_program("kumo", "export", name, "--format", "safetensors", "--out", f"{name}.safetensors")
        return (self.folder / f"{name}.safetensors").read_bytes()

    def test_the_table_has_the_digits_of_each_picture_and_mask(self):
        with open(self.folder / "data/scenes/train.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 96)
        for row in rows[:10]:
            folder = self.folder / "data/scenes"
            self.assertEqual(png(folder / row["image"])[:3], (64, 64, 2))
            width, height, colours, pixels = png(folder / row["mask"])
            self.assertEqual((width, height, colours), (64, 64, 3))
            digits = [d for d in range(10) if row[f"digit_{d}"] == "1"]
            self.assertTrue(digits)

    def test_a_set_is_drawn_once_and_no_other_one_is_overwritten(self):
        draw = ["scenes", "--out", "again", "--train", "5", "--validation", "2", "--size", "100"]
        self.run_program("kumo-data", *draw, "--threads", "3")
        files = {path: path.read_bytes() for path in (self.folder / "again").rglob("*.*")}
        self.assertEqual(len(files), 2 * 7 + 3)
        self.assertIn("were there already", self.run_program("kumo-data", *draw).stdout)
        self.assertIn("--force", self.run_program("kumo-data", *draw, "--seed", "2", expect=78).stderr)
        self.run_program("kumo-data", *draw, "--seed", "2", "--train", "6", "--force")
        self.run_program("kumo-data", *draw, "--threads", "1", "--force")
        self.assertEqual({path: path.read_bytes() for path in (self.folder / "again").rglob("*.*")}, files)
        self.run_program("kumo-data", "scenes", expect=64)

    def test_a_unet_learns_masks_with_the_same_bits_from_any_workers(self):
        epochs = self.train("scenes_unet", "unet1", "--workers", "1", "--set", "job.epochs=4")
        self.assertLess(epochs[-1]["main/loss"], epochs[0]["main/loss"])
        self.assertLess(epochs[-1]["main/overlap_loss"], epochs[0]["main/overlap_loss"])
        self.train("scenes_unet", "unet2", "--workers", "2", "--servers", "2", "--set", "job.epochs=4")
        self.assertEqual(self.weights("unet2"), self.weights("unet1"))
        shown = json.loads(self.run_program("kumo", "evaluate", "scenes_unet", "--set", "data.directory=data", *SMALL,
                                            "--set", "output.directory=unet1", "--classes", "--json").stdout)
        right = sum(row[label] for label, row in enumerate(shown["confusion_matrix"]))
        pixels = sum(one["positions"] for one in shown["classes"])
        self.assertAlmostEqual(right / pixels, epochs[-1]["validation/main/accuracy"], places=6)
        self.assertTrue(0 < shown["mean_iou"] < 1)
        self.assertAlmostEqual(shown["mean_iou"], epochs[-1]["validation/main/mean_iou"], places=6)
        # The same answers as files.
        images = self.folder / "data/scenes/validation/images"
        predict = ["predict", "unet1", "--input", images, "--masks"]
        samples = json.loads(self.run_program("kumo", *predict, "masks", "--format", "json").stdout)["samples"]
        self.assertEqual(len(samples), 24)
        equal = 0
        for one in samples:
            drawn = png(self.folder / one["mask"])
            wanted = png(images.parent / "masks" / pathlib.Path(one["file"]).name)
            self.assertEqual(drawn[:3], (64, 64, 3))
            # Each row begins with its filter, none.
            equal += sum(a == b for a, b in zip(drawn[3], wanted[3])) - 64
        self.assertEqual(equal, right)
        self.assertIn("masks/", self.run_program("kumo", *predict, "masks").stdout)
        self.assertIn("file,mask", self.run_program("kumo", *predict, "masks", "--format", "csv").stdout)
        self.assertIn("contains input images", self.run_program("kumo", *predict, images, expect=78).stderr)

    def test_several_labels_are_learnt_with_the_same_bits_from_any_workers(self):
        epochs = self.train("scenes_tags", "tags1", "--workers", "1", "--set", "job.epochs=4")
        self.assertLess(epochs[-1]["main/loss"], epochs[0]["main/loss"])
        self.train("scenes_tags", "tags2", "--workers", "2", "--set", "job.epochs=4")
        self.assertEqual(self.weights("tags2"), self.weights("tags1"))
        refused = self.run_program("kumo", "predict", "tags1", "--input", "data/scenes/validation/images",
                                   "--masks", "none", expect=78)
        self.assertIn("does not tell one of up to 256 classes for each pixel", refused.stderr)

    def train_on_pairs(self, name, network, columns, classes=0):
        """The figures of each epoch, which are the same by one worker and by two."""
        folder = self.folder / name
        folder.mkdir()
        write_pairs(folder / "pairs")
        (folder / f"{name}.pbtxt").write_text(network)
        (folder / f"{name}.conf").write_text(PAIRS % (name, columns, classes))
        weights = []
        for workers in (1, 2):
            out = f"{name}{workers}"
            self.run_program("kumo", "launch", f"{name}/{name}.conf", "--workers", workers, "--set",
                             f"data.directory={name}/pairs", "--set", f"output.directory={out}")
            weights.append(self.weights(out))
        self.assertEqual(*weights)
        return self.epochs(f"{name}2")

    def test_a_picture_is_a_target_and_turns_with_the_input(self):
        """A negative whose flips were draws of their own would have a loss of .15."""
        epochs = self.train_on_pairs("negative", NEGATIVE, "left:picture,negative:picture")
        self.assertGreater(epochs[0]["main/loss"], .05)
        self.assertLess(epochs[-1]["main/loss"], .02)
        self.assertLess(epochs[-1]["validation/main/loss"], .02)
        self.assertLess(epochs[-1]["main/aside_loss"], epochs[0]["main/aside_loss"])

    def test_pairs_are_told_from_other_pairs_by_any_workers(self):
        epochs = self.train_on_pairs("same", SAME, "left:picture,right:picture,same:class", classes=2)
        self.assertGreater(epochs[-1]["validation/main/accuracy"], .95)
        self.assertLess(epochs[-1]["main/loss"], .5 * epochs[0]["main/loss"])

    def test_data_and_sheets_show_masks_and_labels(self):
        shown = json.loads(self.run_program("kumo", "data", "scenes_unet", "--set", "data.directory=data", "--json",
                                            "--sheet", "sheet.png").stdout)
        pixels = [one["pixels"] for one in shown["train"]["classes"]]
        self.assertEqual(sum(pixels), 96 * 64 * 64)
        self.assertGreater(min(pixels), 0)
        self.assertGreater(png(self.folder / "sheet.png")[0], 64)
        shown = json.loads(self.run_program("kumo", "data", "scenes_tags", "--set", "data.directory=data", "--json").stdout)
        self.assertEqual(shown["train"]["classes"], [])
        self.assertEqual(len(shown["train"]["label_mean"]), 10)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    options.bin = options.bin.resolve()
    ctest.run(rest)
