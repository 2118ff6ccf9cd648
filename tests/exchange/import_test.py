#!/usr/bin/env python3
"""A network out of Kumo as ONNX and in again, with real processes: `kumo import` of what `kumo export` wrote, a
job that begins with it, and what is refused.

  tests/exchange/import_test.py --bin DIR      DIR: where kumo and the other programs are
"""
import argparse
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

TORCH = os.environ.get("KUMO_TORCH_PYTHON", sys.executable)
NETWORK = """
name: "small"
input { channels: 3 height: 6 width: 6 }
layers { name: "stage.0.conv" convolution { outputs: 6 kernel: 3 pad: 1 } }
layers { name: "stage.0.gelu" gelu {} }
layers { name: "stage.0.add" inputs: "stage.0.gelu" inputs: "stage.0.conv" add {} }
layers { name: "groups" group_normalisation { groups: 3 } }
layers { name: "pool" average_pooling { kernel: 2 } }
layers { name: "fc" fully_connected { outputs: 3 } }
layers { name: "loss" softmax_cross_entropy {} }
"""
JOB = """
[job]
epochs = {epochs}
[network]
file = {network}
initial_weights = {weights}
[data]
reader = ctf
train_images = {folder}/data.ctf
validation_images = {folder}/data.ctf
image_size = 3x6x6
classes = 3
[sync]
mode = gradient
partitions = 1
minibatch = 16
[schedule]
learning_rate = {rate}
[output]
directory = {out}
"""


FINE_TUNING = """
[job]
epochs = {epochs}
[network]
file = {name}.pbtxt
initial_weights = {weights}
[data]
reader = image_folder
train_images = {folder}/images
validation_images = {folder}/images
image_size = 3x64x64
classes = 3
[sync]
mode = gradient
partitions = 1
minibatch = 10
[schedule]
learning_rate = 0.005
[output]
directory = tuned-{name}
"""


def png(colour, numbers):
    """64 x 64 pixels around a colour."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + bytes(min(255, c + numbers.randrange(90)) for _ in range(64) for c in colour)
                    for _ in range(64))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def has_torch():
    return subprocess.run([TORCH, "-c", "import torch, numpy"], capture_output=True).returncode == 0


class ImportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.environment = {**os.environ, "XDG_CACHE_HOME": str(cls.folder / "cache")}
        numbers = random.Random(1)
        lines = []
        for i in range(160):
            label = i % 3
            features = " ".join(f"{numbers.uniform(-1, 1) + (k % 3 == label):.3f}" for k in range(108))
            lines.append(f"|labels {' '.join(str(int(k == label)) for k in range(3))} |features {features}\n")
        (cls.folder / "data.ctf").write_text("".join(lines))
        (cls.folder / "small.pbtxt").write_text(NETWORK)
        cls.job("first", "small.pbtxt", rate=.02, epochs=2)
        cls.kumo("launch", "first.conf")
        cls.kumo("export", "first", "--out", "model.onnx")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def job(cls, out, network, weights="", rate=1e-30, epochs=1):
        (cls.folder / f"{out}.conf").write_text(JOB.format(
            folder=cls.folder, out=out, network=network, weights=weights, rate=rate, epochs=epochs))

    @classmethod
    def kumo(cls, *arguments, expect=0):
        ended = subprocess.run([options.bin / "kumo", *map(str, arguments)], cwd=cls.folder, text=True,
                               capture_output=True, env=cls.environment, timeout=120)
        assert ended.returncode == expect, \
            f"kumo {arguments}: {ended.returncode}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        return ended

    def loss(self, which):
        evaluated = self.kumo("evaluate", which, "--json", "--set", f"data.directory={self.folder}").stdout
        return json.loads(evaluated)["validation/main/loss"]

    def test_what_was_exported_is_imported_and_trains_on(self):
        said = self.kumo("import", "model.onnx", "--network", "again.pbtxt").stdout
        self.assertIn("again.pbtxt: 7 layers, input 3x6x6", said)
        self.assertIn("again.safetensors: 6 tensors", said)
        text = (self.folder / "again.pbtxt").read_text()
        for line in NETWORK.strip().splitlines()[1:]:
            self.assertIn(line, text)
        self.job("still", "again.pbtxt", "again.safetensors")
        self.kumo("launch", "still.conf")
        first, again = (json.loads(self.kumo("predict", which, "--input", "data.ctf", "--format", "json",
                                             "--top", "3").stdout)["samples"] for which in ("first", "still"))
        self.assertEqual(len(first), 160)
        for one, other in zip(first, again):
            self.assertEqual([c["class"] for c in one["classes"]], [c["class"] for c in other["classes"]])
            for a, b in zip(one["classes"], other["classes"]):
                self.assertAlmostEqual(a["probability"], b["probability"], delta=1e-5)
        self.job("on", "again.pbtxt", "again.safetensors", rate=.02, epochs=2)
        launched = self.kumo("launch", "on.conf")
        self.assertIn("starts with 6 of 6 tensors", launched.stdout + launched.stderr)
        self.assertLess(self.loss("on"), self.loss("first"))

    def fine_tune(self, name, weights, tensors, epochs):
        """Imports a model of torch, and trains it with other classes. Returns the training losses of the epochs:
        after few steps the running statistics are still those of the imported model."""
        script = pathlib.Path(__file__).parent.parent / "models/onnx/torch_export.py"
        subprocess.run([TORCH, script, self.folder / "torch", name], check=True, capture_output=True)
        self.kumo("import", f"torch/{name}/model.onnx", "--network", f"{name}.pbtxt")
        # Another number of classes: the last layer begins anew.
        network = self.folder / f"{name}.pbtxt"
        network.write_text(network.read_text().replace("outputs: 1000", "outputs: 3"))
        numbers = random.Random(1)
        for i in range(30):
            image = self.folder / "images" / f"class{i % 3}" / f"{i}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            image.write_bytes(png([100 * (c == i % 3) + 20 for c in range(3)], numbers))
        (self.folder / f"{name}.conf").write_text(FINE_TUNING.format(
            folder=self.folder, name=name, weights=weights, epochs=epochs))
        launched = self.kumo("launch", f"{name}.conf")
        self.assertIn(f"starts with {tensors - 2} of {tensors} tensors", launched.stdout + launched.stderr)
        log = (self.folder / f"tuned-{name}/log.jsonl").read_text().splitlines()
        losses = [entry["main/loss"] for entry in map(json.loads, log) if entry["kind"] == "epoch"]
        self.assertEqual(len(losses), epochs)
        return losses

    @unittest.skipUnless(has_torch(), f"{TORCH} has no torch (KUMO_TORCH_PYTHON names one that has)")
    def test_a_resnet18_of_torch_is_fine_tuned(self):
        losses = self.fine_tune("resnet18", "resnet18.safetensors", tensors=102, epochs=3)
        self.assertIn('"layer4.1.bn2" batch_normalisation', (self.folder / "resnet18.pbtxt").read_text())
        self.assertLess(losses[-1], losses[0] / 5)

    @unittest.skipUnless(has_torch(), f"{TORCH} has no torch (KUMO_TORCH_PYTHON names one that has)")
    def test_a_resnet_with_bottlenecks_takes_weights_by_torchs_names(self):
        """As ResNet-50, 101 and 152 have them, with fewer blocks and channels."""
        losses = self.fine_tune("bottleneck", "torch/bottleneck/state.npz", tensors=77, epochs=5)
        self.assertLess(losses[-1], losses[0] / 2)

    def test_what_is_wrong_is_said_in_one_line(self):
        self.kumo("import", "model.onnx")
        exists = self.kumo("import", "model.onnx", expect=78)
        self.assertIn("model.pbtxt exists", exists.stderr)
        self.kumo("import", "model.onnx", "--force")
        (self.folder / "noise.onnx").write_bytes(random.Random(2).randbytes(1000))
        for arguments, code, said in (
                (["import", "noise.onnx"], 78, "noise.onnx: the bytes are no ONNX model"),
                (["import", "nowhere.onnx"], 78, "nowhere.onnx"),
                (["import"], 64, "MODEL"),
                (["import", "model.onnx", "--network", "b.pbtxt", "--input-shape", "3y4"], 64, "--input-shape 3y4"),
                (["import", "model.onnx", "--network", "b.pbtxt", "--loss", "hinge"], 64, "--loss"),
                (["import", "model.onnx", "--network", "b.pbtxt", "--weights", "b.bin"], 78, ".safetensors")):
            ended = self.kumo(*arguments, expect=code)
            self.assertIn(said, ended.stderr)
            self.assertTrue(ended.stderr.startswith("kumo import: "), ended.stderr)
            self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
            self.assertEqual(ended.stdout, "")
        self.assertFalse((self.folder / "b.pbtxt").exists())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    ctest.run(rest)
