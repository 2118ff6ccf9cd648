#!/usr/bin/env python3
"""A trained network out of Kumo and in again, with real processes: jobs on images in folders of classes and
on drawn digits; their checkpoints as ONNX, safetensors and npz, which numpy, safetensors and onnxruntime
read; what `kumo predict` says of images; a job that begins with such a file.

  tests/exchange/exchange_test.py --bin DIR      DIR: where kumo and the other programs are

The part with other libraries runs in the Python that KUMO_ONNX_PYTHON names, and is skipped where that has
none of them.
"""
import argparse
import csv
import io
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

OTHERS = os.environ.get("KUMO_ONNX_PYTHON", sys.executable)
CLASSES = ["dark", "light", "mixed"]
SIDE = 12
NETWORK = """
name: "small"
input { channels: 3 height: 12 width: 12 }
layers { name: "conv" convolution { outputs: 4 kernel: 3 pad: 1 no_bias: true } }
layers { name: "norm" batch_normalisation {} }
layers { name: "relu" relu {} }
layers { name: "pool" max_pooling { kernel: 2 } }
layers { name: "fc" fully_connected { outputs: 3 } }
layers { name: "loss" softmax_cross_entropy {} }
"""
EXPERIMENT = """
[job]
epochs = 1
[network]
file = small.pbtxt
[data]
reader = image_folder
train_images = {folder}/train.zip
validation_images = {folder}/train.zip
image_size = 3x12x12
classes = 3
subtract_mean = {mean}
[sync]
mode = gradient
partitions = 1
minibatch = 8
[output]
directory = {folder}/{out}
"""
LANGUAGE_MODEL = """
name: "abc"
input { name: "tokens" extents: 6 vocabulary: vocabulary }
layers { name: "token" embedding { outputs: 16 } }
layers { name: "qkv" fully_connected { outputs: 48 per_position: true } }
layers { name: "attention" attention { heads: 2 causal: true } }
layers { name: "sum" inputs: "token" inputs: "attention" add {} }
layers { name: "norm" layer_normalisation { per_position: true } }
layers { name: "head" fully_connected { outputs: vocabulary per_position: true } }
layers { name: "loss" softmax_cross_entropy {} }
"""
LANGUAGE_JOB = """
[job]
epochs = 2
[network]
file = abc.pbtxt
[data]
reader = text
text = ${PWD}/abc.txt
window = 6
windows = 800
[sync]
mode = gradient
partitions = 1
minibatch = 8
[optimiser]
type = adam
[schedule]
learning_rate = 0.01
[output]
directory = abc
"""
# Two numbers of four, which are y0 = 2 x0 - x1 + 1 and y1 = x2 / 2; the features are an output as well.
NUMBERS = """
name: "numbers"
outputs: "fc"
outputs: "wide"
input { extents: 4 }
layers { name: "wide" fully_connected { outputs: 8 } }
layers { name: "side" fully_connected { outputs: 2 } }
layers { name: "aside" loss_weight: 0.5 huber {} }
layers { name: "fc" inputs: "wide" fully_connected { outputs: 2 } }
layers { name: "loss" mean_squared_error {} }
"""
NUMBERS_JOB = """
[job]
epochs = 30
[network]
file = numbers.pbtxt
[data]
reader = ctf
train_images = {folder}/numbers.ctf
validation_images = {folder}/numbers.ctf
classes = 0
[sync]
mode = gradient
partitions = 2
minibatch = 8
[schedule]
learning_rate = 0.05
[checkpoint]
best = loss
[output]
directory = numbers
"""
# What the other libraries find: of each image the likeliest class and its probability, and whether the three
# files hold the same weights.
COMPARE = """
import json, sys
import numpy, onnx, onnxruntime
from safetensors.numpy import load_file
folder, pixels = sys.argv[1], json.load(sys.stdin)
safe = load_file(folder + "/model.safetensors")
npz = numpy.load(folder + "/model.npz")
onnx.checker.check_model(folder + "/model.onnx", full_check=True)
graph = {tensor.name: onnx.numpy_helper.to_array(tensor)
         for tensor in onnx.load(folder + "/model.onnx").graph.initializer}
assert set(safe) == set(npz.files) and len(safe) > 0, (set(safe), set(npz.files))
for name, tensor in safe.items():
    assert tensor.dtype == numpy.float32
    assert tensor.shape == npz[name].shape == graph[name].shape, name
    assert (tensor == npz[name]).all() and (tensor == graph[name]).all(), name
images = numpy.array(pixels, numpy.uint8)
found = []
for model in ("model.onnx", "folded.onnx"):
    session = onnxruntime.InferenceSession(folder + "/" + model, providers=["CPUExecutionProvider"])
    found.append(session.run(["probabilities"], {"pixels": images})[0].tolist())
json.dump({"probabilities": found, "shapes": {name: tensor.shape for name, tensor in safe.items()}}, sys.stdout)
"""


def png(pixels):
    """Of rows of pixels, each a number of grey or three of colour."""
    colour = 2 if isinstance(pixels[0][0], (list, tuple)) else 0
    rows = b"".join(b"\0" + bytes(v for p in row for v in (p if colour else [p])) for row in pixels)

    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content +
                struct.pack(">I", zlib.crc32(kind + content)))
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, colour, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def image(numbers, name):
    low, high = {"dark": (0, 90), "light": (160, 256), "mixed": (0, 256)}[name]
    return [[[numbers.randrange(low, high) for _ in range(3)] for _ in range(SIDE)] for _ in range(SIDE)]


def crc32c(content):
    crc = 0xffffffff
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def without_mean_image(checkpoint, parent):
    """A copy of it below `parent`, as a release wrote it that did not keep mean images."""
    copy = shutil.copytree(checkpoint, parent / checkpoint.name)
    lines = (copy / "MANIFEST").read_bytes().splitlines(keepends=True)[:-1]
    kept = b"".join(line for line in lines if not line.startswith(b"mean_image:"))
    assert len(kept) < sum(map(len, lines)), lines
    (copy / "MANIFEST").write_bytes(kept + b"# crc32c %08x\n" % crc32c(kept))
    return copy


def have_others():
    wanted = "import numpy, onnx, onnxruntime, safetensors.numpy"
    return subprocess.run([OTHERS, "-c", wanted], capture_output=True).returncode == 0


class ExchangeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.environment = {**os.environ, "XDG_CACHE_HOME": str(cls.folder / "cache"),
                           "PWD": str(cls.folder)}
        numbers = random.Random(1)
        cls.images = [(name, image(numbers, name)) for name in CLASSES for _ in range(20)]
        with zipfile.ZipFile(cls.folder / "train.zip", "w") as archive:
            for i, (name, pixels) in enumerate(cls.images):
                archive.writestr(f"{name}/{i:03}.png", png(pixels))
        (cls.folder / "small.pbtxt").write_text(NETWORK)
        for out, mean in (("out", "false"), ("mean", "true")):
            text = EXPERIMENT.format(folder=cls.folder, out=out, mean=mean)
            (cls.folder / f"{out}.conf").write_text(text)
            cls.kumo("launch", f"{out}.conf")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def run_kumo(cls, *arguments):
        return subprocess.run([options.bin / "kumo", *map(str, arguments)], cwd=cls.folder, text=True,
                              capture_output=True, env=cls.environment, timeout=120)

    @classmethod
    def kumo(cls, *arguments, expect=0):
        ended = cls.run_kumo(*arguments)
        assert ended.returncode == expect, \
            f"kumo {arguments}: {ended.returncode}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        return ended

    def checkpoint(self, out="out"):
        return next((self.folder / out / "checkpoints").glob("round-*"))

    def predictions(self, which, *arguments):
        text = self.kumo("predict", which, "--format", "json", "--top", "3", *arguments).stdout
        return {entry["file"]: entry["classes"] for entry in json.loads(text)["samples"]}

    def test_a_checkpoint_says_by_itself_what_it_is(self):
        nowhere = ("--set", "data.train_images=nowhere.zip", "--set", "data.validation_images=nowhere.zip")
        for out in ("out", "mean"):
            for which in (out, self.checkpoint(out)):
                alone = self.predictions(which, "--input", "train.zip", *nowhere)
                self.assertEqual(alone, self.predictions(f"{out}.conf", "--input", "train.zip"))
            # Of the data it does not say where they are.
            evaluated = [json.loads(self.kumo("evaluate", which, "--json", *more).stdout) for which, more in (
                (f"{out}.conf", []), (out, ["--set", f"data.directory={self.folder}"]))]
            self.assertEqual(evaluated[0]["validation/main/loss"], evaluated[1]["validation/main/loss"])
        from_data = self.predictions(without_mean_image(self.checkpoint("mean"), self.folder / "older"),
                                     "--input", "train.zip", "--set", f"data.directory={self.folder}")
        self.assertEqual(alone, from_data)
        self.assertEqual(len(alone), len(self.images))
        for classes in alone.values():
            self.assertEqual(sorted(one["name"] for one in classes), CLASSES)
            self.assertAlmostEqual(sum(one["probability"] for one in classes), 1, places=9)
            self.assertEqual([CLASSES.index(one["name"]) for one in classes], [one["class"] for one in classes])

    def test_a_checkpoint_is_used_as_it_was_trained_unless_that_is_said(self):
        text = (self.folder / "out.conf").read_text()
        (self.folder / "scaled.conf").write_text(text.replace("[data]\n", "[data]\nscale = 0.25\n"))
        (self.folder / "tanh.pbtxt").write_text(NETWORK.replace("relu {}", "tanh {}"))
        (self.folder / "tanh.conf").write_text(text.replace("small.pbtxt", "tanh.pbtxt"))
        (self.folder / "limit.conf").write_text(
            (self.folder / "mean.conf").read_text().replace("[data]\n", "[data]\ntrain_limit = 30\n"))
        for which, said, option in (("scaled.conf", "data.scale", "data.scale=0.25"),
                                    ("tanh.conf", "layer relu", "network.file=tanh.pbtxt")):
            for command in (["evaluate", which], ["predict", which, "--input", "train.zip"],
                            ["export", which, "--out", "used.onnx"]):
                self.assertIn(said, self.kumo(*command, expect=78).stderr)
                self.kumo(*command, "--set", option)
        # Weights alone are of no inputs.
        self.kumo("export", "scaled.conf", "--out", "used.npz")
        self.assertIn("another mean image", self.kumo("evaluate", "limit.conf", expect=78).stderr)
        self.kumo("predict", "limit.conf", "--input", "train.zip")

    def test_images_folders_and_archives_are_the_same_images(self):
        folder = self.folder / "some"
        (folder / "dark").mkdir(parents=True)
        (folder / "dark/000.png").write_bytes(png(self.images[0][1]))
        grey = [[40 + x for x in range(31)] for _ in range(20)]
        (folder / "grey.png").write_bytes(png(grey))
        found = self.predictions("out.conf", "--input", "some", "--input", "some/grey.png")
        again = self.predictions("out.conf", "--input", "train.zip/dark")
        self.assertEqual(list(found), ["some/dark/000.png", "some/grey.png"])
        self.assertEqual(found["some/dark/000.png"], again["train.zip/dark/000.png"])
        table = self.kumo("predict", "out", "--input", "some", "--top", "1").stdout
        self.assertRegex(table, r"\Asample +class +probability\nsome/dark/000.png +\d (dark|light|mixed) +\d\.\d{4}\n")
        rows = list(csv.reader(io.StringIO(
            self.kumo("predict", "out", "--input", "some", "--format", "csv").stdout)))
        self.assertEqual(rows[0], ["file", "rank", "class", "name", "probability"])
        self.assertEqual(len(rows), 1 + 2 * len(CLASSES))

    def test_it_sees_what_evaluation_sees(self):
        for side in (0, 12, 17):
            setting = ("--set", f"data.shorter_side={side}")
            found = self.predictions("out.conf", "--input", "train.zip", *setting)
            losses = [-math.log(one["probability"]) for file, classes in found.items()
                      for one in classes if one["name"] == file.split("/")[1]]
            evaluated = json.loads(self.kumo("evaluate", "out.conf", "--json", *setting).stdout)
            self.assertAlmostEqual(sum(losses) / len(losses), evaluated["validation/main/loss"], places=5)
        few = self.kumo("predict", "out.conf", "--input", "train.zip", "--set", "data.shorter_side=11", expect=78)
        self.assertIn("data.shorter_side = 11 is too small to crop images of 3x12x12; set it to 0, or at least to 12", few.stderr)

    def test_damaged_images_are_named_and_the_others_classified(self):
        folder = self.folder / "mixed"
        folder.mkdir()
        (folder / "a.png").write_bytes(png(self.images[0][1])[:-40])
        (folder / "b.png").write_bytes(png(self.images[0][1]))
        (folder / "c.jpg").write_bytes(b"none")
        (folder / "d.png").symlink_to("nothing")
        ended = self.kumo("predict", "out", "--input", "mixed", "--format", "json", expect=78)
        shown = json.loads(ended.stdout)
        self.assertEqual([entry["file"] for entry in shown["samples"]], ["mixed/b.png"])
        names = ["mixed/a.png", "mixed/c.jpg", "mixed/d.png"]
        self.assertEqual(sorted(line.split(": ")[0] for line in shown["damaged"]), names)
        lines = ended.stderr.splitlines()
        self.assertEqual(len(lines), 4, ended.stderr)
        for line in shown["damaged"]:
            self.assertTrue(any(line in said for said in lines), line)
        self.assertIn("3 of 4 images cannot be read", lines[-1])
        skip = ("--set", "data.damaged=skip")
        skipped = self.kumo("predict", "out", "--input", "mixed", *skip)
        self.assertIn("\nmixed/b.png ", skipped.stdout)
        self.assertEqual(len(skipped.stderr.splitlines()), 3, skipped.stderr)
        none = self.kumo("predict", "out", "--input", "mixed/a.png", *skip, expect=78)
        self.assertEqual(none.stdout, "")
        self.assertIn("1 of 1 image cannot be read", none.stderr)
        nowhere = self.kumo("predict", "out", "--input", "nowhere.png", expect=78)
        self.assertIn("nowhere.png: no such image, folder or archive", nowhere.stderr)

    def test_a_language_model_goes_on_with_what_it_has_learnt(self):
        (self.folder / "abc.txt").write_text("abcdefgh\u00e4" * 300)
        (self.folder / "abc.pbtxt").write_text(LANGUAGE_MODEL)
        (self.folder / "abc.conf").write_text(LANGUAGE_JOB)
        self.kumo("launch", "abc.conf")

        def said(*arguments):
            return self.kumo("predict", "abc.conf", *arguments).stdout
        self.assertEqual(said("--prompt", "cde", "--tokens", "12", "--temperature", "0"),
                         "cdefgh\u00e4abcdefgh\n")
        again = self.kumo("predict", "abc", "--prompt", "e", "--temperature", "0", "--tokens", "3").stdout
        self.assertEqual(again, "efgh\n", "by the checkpoint alone")
        drawn = [said("--prompt", "a", "--tokens", "40", "--temperature", "50", "--seed", str(seed))
                 for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertEqual(said("--prompt", "a", "--temperature", "50", "--most-likely", "1", "--tokens", "4"),
                         "abcde\n")
        self.assertEqual(said("--prompt", "a", "--temperature", "50", "--top-p", "0.01", "--tokens", "4"),
                         "abcde\n")
        self.assertEqual(said("--prompt", "c", "--temperature", "0", "--stop", "gh"), "cdef\n")
        (self.folder / "prompts.txt").write_text("ab\n\ncd\n")
        self.assertEqual(said("--prompts", "prompts.txt", "--temperature", "0", "--tokens", "2"), "abcd\ncdef\n")
        lines = said("--prompts", "prompts.txt", "--temperature", "0", "--tokens", "2", "--format", "json")
        self.assertEqual([json.loads(line) for line in lines.splitlines()],
                         [{"prompt": "ab", "continuation": "cd"}, {"prompt": "cd", "continuation": "ef"}])
        unknown = self.kumo("predict", "abc.conf", "--prompt", "ab!", expect=78)
        self.assertIn("byte 2", unknown.stderr)
        self.assertIn("no language model",
                      self.kumo("predict", "out", "--prompt", "a", expect=78).stderr)
        self.assertIn("--prompt", self.kumo("predict", "abc", "--input", "train.zip", expect=78).stderr)

    def test_a_network_of_numbers_gives_numbers(self):
        draw = random.Random(3)
        samples = [[draw.uniform(-1, 1) for _ in range(4)] for _ in range(200)]
        wanted = [(2 * x[0] - x[1] + 1, x[2] / 2) for x in samples]
        lines = [" ".join(map(str, x)) for x in samples]
        (self.folder / "numbers.ctf").write_text("".join(
            f"|labels {y[0]} {y[1]} |features {line}\n" for y, line in zip(wanted, lines)))
        (self.folder / "unknown.ctf").write_text("".join(f"|features {line}\n" for line in lines[:70]))
        (self.folder / "numbers.pbtxt").write_text(NUMBERS)
        (self.folder / "numbers.conf").write_text(NUMBERS_JOB.format(folder=self.folder))
        shown = json.loads(self.kumo("data", "numbers.conf", "--json").stdout)
        self.assertAlmostEqual(shown["train"]["label_mean"][0], sum(y[0] for y in wanted) / 200, places=5)
        self.assertEqual(shown["train"]["classes"], [])
        self.kumo("launch", "numbers.conf")
        epochs = [json.loads(line) for line in (self.folder / "numbers/log.jsonl").read_text().splitlines()]
        last = [entry for entry in epochs if entry["kind"] == "epoch"][-1]
        names = ("loss", "mean_absolute_error", "aside_loss", "aside_mean_absolute_error", "total_loss")
        figures = [last[f"validation/main/{name}"] for name in names]
        self.assertLess(figures[0], 1e-4)
        self.assertAlmostEqual(figures[4], figures[0] + figures[2] / 2, places=9)
        text = self.kumo("predict", "numbers.conf", "--input", "unknown.ctf", "--format", "json").stdout
        found = json.loads(text)["samples"]
        self.assertEqual([entry["file"] for entry in found], [f"unknown.ctf:{i + 1}" for i in range(70)])
        for entry, numbers in zip(found, wanted):
            for number, expected in zip(entry["numbers"], numbers):
                self.assertAlmostEqual(number, expected, delta=.05)
        wide = self.kumo("predict", "numbers", "--input", "unknown.ctf", "--output", "wide").stdout
        self.assertEqual(len(wide.splitlines()[0].split()), 1 + 8)
        self.assertIn('has no output "wid"; did you mean wide?',
                      self.kumo("predict", "numbers", "--input", "unknown.ctf", "--output", "wid",
                                expect=78).stderr)
        # Classes where numbers are wanted, and the other way round.
        (self.folder / "colours.pbtxt").write_text(
            NETWORK.replace("softmax_cross_entropy", "mean_squared_error"))
        (self.folder / "classes.pbtxt").write_text(
            NUMBERS.replace("huber", "softmax_cross_entropy").replace("outputs: 2", "outputs: 3")
            .replace("mean_squared_error", "softmax_cross_entropy"))
        self.assertIn("set data.reader = ctf and data.classes = 0",
                      self.kumo("launch", "out.conf", "--set", "network.file=colours.pbtxt", "--set",
                                "output.directory=colours", expect=78).stderr)
        self.assertIn("set data.classes to the number of classes",
                      self.kumo("launch", "numbers.conf", "--set", "network.file=classes.pbtxt", "--set",
                                "output.directory=classes", expect=78).stderr)
        self.assertIn("labels of reader image_folder are classes",
                      self.kumo("launch", "out.conf", "--set", "data.classes=0", expect=78).stderr)

    def test_an_onnx_file_says_what_it_takes(self):
        for which, sets, wanted in (
                ("mean.conf", ["data.scale=0.5"], "0.5 * (pixel - mean image of the training set)"),
                ("out.conf", ["data.mean=0.5,0.25,0.5", "data.deviation=2,2,4", "data.scale=0.5"],
                 "(0.5 * pixel - mean) / standard deviation; mean of each channel: 0.5, 0.25, 0.5; "
                 "standard deviation of each channel: 2, 2, 4")):
            more = [word for one in sets for word in ("--set", one)]
            self.kumo("export", which, "--out", "said.onnx", *more)
            self.assertIn(wanted.encode(), (self.folder / "said.onnx").read_bytes())
            self.kumo("export", which, "--out", "said.onnx", "--pixels", *more)
            self.assertIn(b"pixels, 0 to 255", (self.folder / "said.onnx").read_bytes())

    def test_what_cannot_be_exported_is_said(self):
        self.assertIn("must end in .onnx", self.kumo("export", "out", "--out", "model", expect=64).stderr)
        ended = self.kumo("export", "out", "--out", "model.npz", "--pixels", expect=64)
        self.assertIn("--pixels requires --format onnx", ended.stderr)
        checkpoint = without_mean_image(self.checkpoint("mean"), self.folder / "meanless")
        ended = self.kumo("export", "mean.conf", "--checkpoint", checkpoint, "--out", "m.onnx", "--pixels", "--set",
                          "data.train_images=nowhere.zip", expect=78)
        self.assertIn("data.subtract_mean needs the training set", ended.stderr)
        self.assertNotIn("name the experiment file", ended.stderr)
        ended = self.kumo("predict", checkpoint, "--input", "train.zip", "--set",
                          "data.directory=/nowhere", "--set", "data.train_images=nowhere.zip", expect=78)
        self.assertIn("; name the experiment file, or locate the data with", ended.stderr)
        ended = self.kumo("export", "out.conf", "--set", "data.reader=ctf", "--out", "m.onnx", "--pixels", expect=78)
        self.assertIn("--pixels requires images, but data.reader = ctf", ended.stderr)
        ended = self.kumo("predict", "out", "--input", "small.pbtxt", expect=78)
        self.assertIn("it is neither an image", ended.stderr)
        ended = self.kumo("export", "out", "--out", "nowhere/model.npz", expect=78)
        self.assertIn("nowhere/", ended.stderr)
        self.assertFalse((self.folder / "m.onnx").exists())

    def test_a_job_begins_with_an_exported_file(self):
        for ending in ("safetensors", "npz"):
            self.kumo("export", "out.conf", "--out", f"start.{ending}")
            check = self.kumo("check", "out.conf", "--set", "output.directory=next", "--from",
                              f"start.{ending}").stdout
            self.assertIn("starts with 7 of 7 tensors from", check)
        # Of another network, by a file of names.
        (self.folder / "wide.pbtxt").write_text(NETWORK.replace('"conv"', '"stem"').replace('"fc"', '"head"')
                                                .replace("outputs: 3 ", "outputs: 5 "))
        (self.folder / "names.txt").write_text("conv.weight = stem.weight\nfc.weight = head.weight\n")
        wide = ("--set", "network.file=wide.pbtxt", "--set", "output.directory=wide", "--set",
                "network.initial_names=names.txt", "--from", "start.safetensors")
        said = self.kumo("check", "out.conf", *wide).stdout
        self.assertIn("starts with 5 of 7 tensors", said)
        self.assertIn("head.weight: [3, 144] in the source, [5, 144] in the network", said)
        self.assertIn("head.bias: the file has no such tensor", said)
        self.assertIn("not used: fc.bias [3]", said)
        launched = self.kumo("launch", "out.conf", *wide)
        self.assertIn("starts with 5 of 7 tensors", launched.stdout + launched.stderr)
        self.assertTrue(any((self.folder / "wide/checkpoints").glob("round-*/MANIFEST")))

    def test_a_job_of_no_round_more_has_the_files_weights(self):
        self.kumo("export", "out.conf", "--out", "first.npz")
        self.kumo("launch", "out.conf", "--set", "output.directory=still", "--set",
                  "schedule.learning_rate=1e-30", "--from", "first.npz")
        self.kumo("export", "still", "--out", "second.npz")
        with zipfile.ZipFile(self.folder / "first.npz") as first, \
                zipfile.ZipFile(self.folder / "second.npz") as second:
            self.assertEqual(first.read("conv.weight.npy"), second.read("conv.weight.npy"))
            self.assertIsNone(first.testzip())

    @unittest.skipUnless(have_others(), f"{OTHERS} has not numpy, onnx, onnxruntime and safetensors "
                         "(KUMO_ONNX_PYTHON names one that has)")
    def test_other_libraries_read_the_same_weights_and_see_the_same(self):
        for out in ("out", "mean"):
            target = self.folder / f"{out}.exported"
            target.mkdir()
            which = [f"{out}.conf"] if out == "mean" else [out]
            for file, more in (("model.onnx", ["--pixels"]), ("model.safetensors", []), ("model.npz", []),
                               ("folded.onnx", ["--pixels", "--fold-batch-norm"])):
                self.kumo("export", *which, "--out", target / file, *more)
            found = self.predictions(*which, "--input", "train.zip")
            planes = [[[[pixel[c] for pixel in row] for row in pixels] for c in range(3)]
                      for _, pixels in self.images]
            ended = subprocess.run([OTHERS, "-c", COMPARE, target], input=json.dumps(planes), text=True,
                                   capture_output=True)
            self.assertEqual(ended.returncode, 0, ended.stderr[-3000:])
            read = json.loads(ended.stdout)
            self.assertEqual(read["shapes"]["conv.weight"], [4, 3, 3, 3])
            for theirs in read["probabilities"]:
                for (name, _), i, probabilities in zip(self.images, range(len(self.images)), theirs):
                    for one in found[f"train.zip/{name}/{i:03}.png"]:
                        self.assertAlmostEqual(one["probability"], probabilities[one["class"]], delta=2e-5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    options.bin = options.bin.resolve()
    ctest.run(rest)
