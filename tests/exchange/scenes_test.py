#!/usr/bin/env python3
"""The experiments on drawn scenes, small and with real processes: masks in a folder beside the images, and several labels
in a table.

  tests/exchange/scenes_test.py --bin DIR      DIR: where kumo and the other programs are
"""
import argparse
import csv
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

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
