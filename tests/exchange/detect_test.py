#!/usr/bin/env python3
"""A small detector with real processes: a job on drawn rectangles in the layout of Pascal VOC, `kumo detect` of
images, folders and archives, and its network as ONNX, of which onnxruntime makes the same detections.

  tests/exchange/detect_test.py --bin DIR      DIR: where kumo and the other programs are

The part with onnxruntime runs in the Python that KUMO_ONNX_PYTHON names, and is skipped if that has none.
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
import zipfile
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

OTHERS = os.environ.get("KUMO_ONNX_PYTHON", sys.executable)
CLASSES = ["green", "red"]
SIDE = 32  # of the network's input
NETWORK = """
name: "rectangles"
input { channels: 3 height: 32 width: 32 }
layers { name: "conv1" convolution { outputs: 8 kernel: 3 stride: 2 pad: 1 weight { he_normal {} } } }
layers { name: "relu1" relu {} }
layers { name: "conv2" convolution { outputs: 16 kernel: 3 stride: 2 pad: 1 weight { he_normal {} } } }
layers { name: "relu2" relu {} }
layers { name: "offsets" inputs: "relu2" convolution { outputs: 16 kernel: 3 pad: 1 } }
layers { name: "scores" inputs: "relu2" convolution { outputs: 12 kernel: 3 pad: 1 } }
layers { name: "loss" inputs: "offsets" inputs: "scores"
         multibox { classes: 2 maps { step: 4 size: 8 next_size: 14 ratios: 2 } } }
"""
EXPERIMENT = """
[job]
epochs = 40
[network]
file = rectangles.pbtxt
[data]
reader = voc
train_images = {folder}/rectangles.zip:all
validation_images = {folder}/rectangles.zip:all
image_size = 3x32x32
classes = 2
[sync]
mode = gradient
partitions = 1
minibatch = 8
[schedule]
learning_rate = 0.01
[output]
directory = {folder}/out
"""


# Of pictures of the network's size the detections of both exports, the first chosen there.
DETECT = """
import json, sys
import numpy, onnx, onnxruntime
folder, pixels = sys.argv[1], json.load(sys.stdin)
images = numpy.array(pixels, numpy.uint8)


def run(model):
    onnx.checker.check_model(folder + "/" + model, full_check=True)
    session = onnxruntime.InferenceSession(folder + "/" + model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"pixels": images})))


def overlap(a, b):
    area = lambda box: max(0, box[2] - box[0]) * max(0, box[3] - box[1])
    both = area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])
    return both / (area(a) + area(b) - both)


def chosen(boxes, scores):
    found = []
    for c in range(1, scores.shape[1]):
        kept = []
        for i in numpy.argsort(-scores[:, c], kind="stable")[:400]:
            if scores[i, c] < 0.01:
                break
            if all(overlap(boxes[i], boxes[k]) <= 0.45 for k in kept):
                kept.append(i)
                found.append((float(scores[i, c]), c - 1, boxes[i].tolist()))
    return sorted(found, key=lambda one: -one[0])[:200]


raw = run("raw.onnx")
nms = run("nms.onnx")
json.dump([[chosen(*pair) for pair in zip(raw["boxes"].astype(float), raw["scores"])],
           [[(float(s), int(c), b.tolist()) for b, s, c in zip(boxes[:n], scores, classes)]
            for boxes, scores, classes, n in
            zip(nms["boxes"], nms["scores"], nms["classes"], nms["counts"])]], sys.stdout)
"""


def png(pixels, orientation=None):
    """Of rows of pixels of three numbers; with EXIF's orientation."""
    rows = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)

    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content +
                struct.pack(">I", zlib.crc32(kind + content)))
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    turned = b""
    if orientation is not None:
        turned = chunk(b"eXIf", b"MM\0\x2a" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + turned +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def drawing(draw, width, height):
    """Rows of pixels, and objects: (class, [left, top, right, bottom])."""
    pixels = [[(20, 20, 20)] * width for _ in range(height)]
    objects = []
    for half in range(draw.randrange(1, 3)):
        wide = draw.randrange(width * 7 // 32, width * 12 // 32)
        high = draw.randrange(height * 7 // 32, height * 12 // 32)
        left = half * width // 2 + draw.randrange(width * 4 // 32)
        top = draw.randrange(height - high)
        number = draw.randrange(2)
        for y in range(top, top + high):
            for x in range(left, left + wide):
                pixels[y][x] = ((20, 230, 20), (230, 20, 20))[number]
        objects.append((number, [left, top, left + wide, top + high]))
    return pixels, objects


def xml(width, height, objects):
    parts = "".join(
        f"<object><name>{CLASSES[number]}</name><difficult>0</difficult><bndbox><xmin>{box[0] + 1}</xmin>"
        f"<ymin>{box[1] + 1}</ymin><xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox></object>"
        for number, box in objects)
    return (f"<annotation><size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
            f"{parts}</annotation>")


def overlap(a, b):
    def area(box):
        return max(0, box[2] - box[0]) * max(0, box[3] - box[1])
    both = area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])
    return both / (area(a) + area(b) - both)


def average_precision(images, truth, number):
    """The area below precision and recall of a class at an overlap of .5, Pascal VOC 2010."""
    found = sorted(((one["score"], file, one["box"]) for file, objects in images.items() for one in objects
                    if one["class"] == number), key=lambda one: -one[0])
    open_ = {file: [box for c, box in objects if c == number] for file, objects in truth.items()}
    objects = sum(map(len, open_.values()))
    hits, points = 0, []
    for rank, (_, file, box) in enumerate(found, 1):
        best = max(truth[file], key=lambda one: overlap(one[1], box) if one[0] == number else -1)
        if best[0] == number and overlap(best[1], box) >= .5 and best[1] in open_[file]:
            open_[file].remove(best[1])
            hits += 1
        points.append((hits / objects, hits / rank))
    area, before = 0, 0
    for i, (recall, _) in enumerate(points):
        area += (recall - before) * max(precision for _, precision in points[i:])
        before = recall
    return area


def have_others():
    wanted = "import numpy, onnx, onnxruntime"
    return subprocess.run([OTHERS, "-c", wanted], capture_output=True).returncode == 0


class DetectTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.environment = {**os.environ, "XDG_CACHE_HOME": str(cls.folder / "cache"),
                           "PWD": str(cls.folder)}
        draw = random.Random(1)
        cls.truth = {}
        cls.pictures = {}
        with zipfile.ZipFile(cls.folder / "rectangles.zip", "w") as archive:
            for i in range(64):
                # Stretched, and as large as the network's input.
                width, height = (48, 40) if i % 2 == 0 else (SIDE, SIDE)
                pixels, objects = drawing(draw, width, height)
                name = f"{i:03}.png"
                cls.pictures[name], cls.truth[name] = pixels, objects
                archive.writestr(f"JPEGImages/{name}", png(pixels))
                archive.writestr(f"Annotations/{i:03}.xml", xml(width, height, objects))
            archive.writestr("ImageSets/Main/all.txt", "".join(f"{i:03}\n" for i in range(64)))
        (cls.folder / "rectangles.pbtxt").write_text(NETWORK)
        (cls.folder / "job.conf").write_text(EXPERIMENT.format(folder=cls.folder))
        cls.kumo("launch", "job.conf")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def kumo(cls, *arguments, expect=0):
        ended = subprocess.run([options.bin / "kumo", *map(str, arguments)], cwd=cls.folder, text=True,
                               capture_output=True, env=cls.environment, timeout=120)
        assert ended.returncode == expect, \
            f"kumo {arguments}: {ended.returncode}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        return ended

    def detections(self, *arguments):
        """Of each image's last name."""
        shown = json.loads(self.kumo("detect", *arguments).stdout)
        self.assertEqual(shown["damaged"], [])
        return {pathlib.Path(image["file"]).name: image["objects"] for image in shown["images"]}

    def assert_alike(self, objects, wanted):
        """Objects are (score, class, box)."""
        self.assertEqual(len(objects), len(wanted))
        for (score, number, box), one in zip(objects, wanted):
            self.assertAlmostEqual(score, one["score"], delta=1e-5)
            self.assertEqual(number, one["class"])
            for side, other in zip(box, one["box"]):
                self.assertAlmostEqual(side, other, delta=1e-3)

    def test_what_was_drawn_is_found(self):
        shown = json.loads(self.kumo("detect", "job.conf", "rectangles.zip").stdout)
        self.assertEqual(pathlib.Path(shown["checkpoint"]).parent, self.folder / "out/checkpoints")
        self.assertEqual(len(shown["images"]), 64)
        found = 0
        for image in shown["images"]:
            name = pathlib.Path(image["file"]).name
            self.assertEqual(image["file"], f"rectangles.zip/JPEGImages/{name}")
            rows = self.pictures[name]
            self.assertEqual((image["width"], image["height"]), (len(rows[0]), len(rows)))
            scores = [one["score"] for one in image["objects"]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            self.assertTrue(all(.5 <= score <= 1 for score in scores))
            for one in image["objects"]:
                self.assertEqual(one["name"], CLASSES[one["class"]])
            found += sum(any(overlap(one["box"], box) > .5 and one["class"] == number
                             for one in image["objects"]) for number, box in self.truth[name])
        self.assertGreater(found, .9 * sum(map(len, self.truth.values())))

    def test_it_finds_what_evaluation_counts(self):
        found = self.detections("job.conf", "rectangles.zip", "--score", "0.01")
        mean = sum(average_precision(found, self.truth, number) for number in range(2)) / 2
        evaluated = json.loads(self.kumo("evaluate", "job.conf", "--json").stdout)
        self.assertAlmostEqual(mean, evaluated["validation/main/map"], places=5)

    def test_each_class_has_its_precision(self):
        found = self.detections("job.conf", "rectangles.zip", "--score", "0.01")
        wanted = [average_precision(found, self.truth, number) for number in range(2)]
        evaluated = json.loads(self.kumo("evaluate", "job.conf", "--classes", "--json").stdout)
        self.assertEqual([(one["class"], one["name"]) for one in evaluated["classes"]], list(enumerate(CLASSES)))
        last = json.loads((self.folder / "out/log.jsonl").read_text().splitlines()[-1])
        for one, precision in zip(evaluated["classes"], wanted):
            self.assertAlmostEqual(one["map"], precision, places=5)
            self.assertEqual(last["validation/main/map/" + one["name"]], one["map"])
        shown = self.kumo("evaluate", "job.conf", "--classes").stdout.splitlines()
        self.assertEqual(shown[1].split(), ["class", "map", "map_11", "map_coco"])
        self.assertEqual([line.split()[:2] for line in shown[2:]],
                         [[name, f"{precision:.4f}"] for name, precision in zip(CLASSES, wanted)])

    def test_each_evaluation_leaves_a_picture_for_tensorboard(self):
        events = b"".join(file.read_bytes() for file in (self.folder / "out").glob("events.*"))
        lines = map(json.loads, (self.folder / "out/log.jsonl").read_text().splitlines())
        evaluations = sum(line["kind"] == "epoch" for line in lines)
        self.assertEqual(events.count(b"validation/objects"), evaluations)
        self.assertEqual(events.count(b"\x89PNG\r\n\x1a\n"), evaluations)

    def test_images_folders_archives_and_batches_are_the_same_and_a_checkpoint_suffices(self):
        folder = self.folder / "some"
        (folder / "deeper").mkdir(parents=True)
        names = sorted(self.pictures)[:9]
        for i, name in enumerate(names):
            (folder / ("deeper" if i % 2 else ".") / name).write_bytes(png(self.pictures[name]))
        (self.folder / "none.conf").write_text(
            (self.folder / "job.conf").read_text().replace("rectangles.zip", "nowhere.zip"))
        ways = [self.detections("job.conf", "some"), self.detections("none.conf", "some"),
                self.detections("out", "some/deeper", *sorted(folder.glob("*.png"))),
                self.detections(next((self.folder / "out/checkpoints").glob("round-*")), "some")]
        archive = self.detections("job.conf", "rectangles.zip")
        for way in ways:
            self.assertEqual(way, {name: archive[name] for name in names})
        for name, objects in self.detections("out", "some", "--batch", "4").items():
            self.assert_alike([(one["score"], one["class"], one["box"]) for one in objects], archive[name])
        shown = self.kumo("detect", "out", "some").stdout
        self.assertEqual(self.kumo("detect", "out", "some", "--out", "found.json").stdout, "")
        self.assertEqual((self.folder / "found.json").read_text(), shown)

    def test_boxes_are_those_of_the_upright_image(self):
        found = self.detections("out", "rectangles.zip")
        rows = self.pictures[next(name for name in sorted(found) if found[name] and len(self.pictures[name]) == 40)]
        # The camera stood on its side: the first row is the right side of what is shown.
        stored = [list(column) for column in zip(*rows)][::-1]
        (self.folder / "upright.png").write_bytes(png(rows))
        (self.folder / "turned.png").write_bytes(png(stored, orientation=6))
        shown = json.loads(self.kumo("detect", "out", "upright.png", "turned.png").stdout)["images"]
        self.assertEqual({**shown[0], "file": ""}, {**shown[1], "file": ""})
        self.assertNotEqual(shown[0]["objects"], [])

    def test_objects_are_drawn_on_copies(self):
        with zipfile.ZipFile(self.folder / "alike.zip", "w") as archive:
            for path in ("a/one.png", "b/one.png", "c/two.png"):
                archive.writestr(path, png(self.pictures["001.png"]))
        shown = json.loads(self.kumo("detect", "out", "alike.zip", "--pictures", "drawn/here", "--batch", "2",
                                     "--score", "0").stdout)
        wanted = {"alike.zip/a/one.png": "one.png", "alike.zip/b/one.png": "one-2.png",
                  "alike.zip/c/two.png": "two.png"}
        self.assertEqual({image["file"]: image["picture"] for image in shown["images"]},
                         {file: f"drawn/here/{name}" for file, name in wanted.items()})
        self.assertEqual(sorted(path.name for path in (self.folder / "drawn/here").iterdir()), sorted(wanted.values()))
        again = json.loads(self.kumo("detect", "out", "drawn/here").stdout)["images"]
        self.assertEqual({(image["width"], image["height"]) for image in again}, {(SIDE, SIDE)})
        self.assertNotEqual((self.folder / "drawn/here/two.png").read_bytes(), png(self.pictures["001.png"]))
        # Originals are never replaced.
        (self.folder / "originals").mkdir()
        (self.folder / "originals/a.png").write_bytes(png(self.pictures["001.png"]))
        for given in ("originals", "originals/a.png"):
            ended = self.kumo("detect", "out", given, "--pictures", "drawn/../originals/", expect=78)
            self.assertIn("the folder contains input images", ended.stderr)
        self.assertEqual((self.folder / "originals/a.png").read_bytes(), png(self.pictures["001.png"]))

    def test_rules_choose_what_is_shown(self):
        few = self.detections("out", "rectangles.zip")
        all_ = self.detections("out", "rectangles.zip", "--score", "0")
        one = self.detections("out", "rectangles.zip", "--score", "0", "--most", "1")
        every = self.detections("out", "rectangles.zip", "--score", "0", "--overlap", "1")
        for name, objects in all_.items():
            self.assertEqual(few[name], [found for found in objects if found["score"] >= .5])
            self.assertEqual(one[name], objects[:1])
            self.assertEqual(len(every[name]), 200)
        nothing = self.kumo("detect", "out", "rectangles.zip", "--score", "1")
        self.assertIn("no object has a score of at least 1;", nothing.stderr)

    def test_damaged_images_are_named_and_the_others_are_done(self):
        folder = self.folder / "mixed"
        folder.mkdir()
        whole = png(self.pictures["000.png"])
        (folder / "a.png").write_bytes(whole[:-40])
        (folder / "b.png").write_bytes(whole)
        (folder / "c.jpg").write_bytes(b"none")
        (folder / "d.png").symlink_to("nothing")
        for more in ([], ["--batch", "1"]):
            ended = self.kumo("detect", "out", "mixed", "--out", "mixed.json", "--score", "0.01", *more,
                              expect=78)
            shown = json.loads((self.folder / "mixed.json").read_text())
            self.assertEqual([image["file"] for image in shown["images"]], ["mixed/b.png"])
            self.assertEqual(sorted(line.split(": ")[0] for line in shown["damaged"]),
                             ["mixed/a.png", "mixed/c.jpg", "mixed/d.png"])
            lines = ended.stderr.splitlines()
            self.assertEqual(len(lines), 4, ended.stderr)
            self.assertIn("3 of 4 images cannot be read", lines[-1])
        self.kumo("detect", "out", "mixed", "--set", "data.damaged=skip")

    def test_a_detector_has_the_same_bits_with_any_workers_and_after_a_resume(self):
        """With SSD's augmentation, and partitions that have different numbers of objects."""
        settings = ["--set", "job.epochs=3", "--set", "sync.partitions=3", "--set", "sync.minibatch=3",
                    "--set", "data.photometric=true", "--set", "data.expand=4", "--set", "data.object_crop=true",
                    "--set", "data.flip=true", "--set", "data.random_interpolation=true",
                    "--set", "evaluation.minibatch=5", "--set", "checkpoint.every_rounds=4", "--set", "checkpoint.keep=100"]

        def weights(name, mode, *more):
            out = f"output.directory={self.folder}/{name}"
            self.kumo("launch", "job.conf", *settings, *mode, "--set", out, *more)
            self.kumo("export", name, "--format", "safetensors", "--out", f"{name}.safetensors")
            return (self.folder / f"{name}.safetensors").read_bytes()

        def precisions(name):
            lines = map(json.loads, (self.folder / name / "log.jsonl").read_text().splitlines())
            return [line["validation/main/map"] for line in lines if line["kind"] == "epoch"]
        block = ["--set", "sync.mode=block", "--set", "sync.block=2", "--set", "sync.push_codec=1bit"]
        for mode in ([], block):
            of = "block" if mode else "gradient"
            one = weights(f"{of}1", mode, "--workers", "1")
            self.assertEqual(weights(f"{of}3", mode, "--workers", "3", "--servers", "2"), one)
            self.assertEqual(precisions(f"{of}3"), precisions(f"{of}1"))
            self.assertEqual(weights(f"{of}3", mode, "--workers", "2", "--set", "checkpoint.resume=8"), one)

    def test_a_new_experiment_for_a_layout_passes_the_check_and_trains(self):
        with zipfile.ZipFile(self.folder / "rectangles.zip") as archive:
            archive.extractall(self.folder / "layout")
        (self.folder / "layout/ImageSets/Main/all.txt").rename(self.folder / "layout/ImageSets/Main/train.txt")
        shown = self.kumo("new", "mine", "--data", "layout").stdout
        self.assertIn("images with objects of 2 classes", shown)
        self.kumo("check", "mine.conf")
        self.kumo("launch", "mine.conf", "--set", "job.epochs=1", "--set", "data.train_limit=2", "--set",
                  "data.validation_limit=1", "--set", "sync.minibatch=1")

    def test_partitions_and_parts_are_one_minibatch(self):
        """A round is divided by the matched boxes of all its parts: means of their means would differ."""
        def weights(name, partitions, minibatch, parts=1):
            self.kumo("launch", "job.conf", "--set", f"output.directory={self.folder}/{name}", "--set", "job.epochs=1",
                      "--set", f"sync.partitions={partitions}", "--set", f"sync.minibatch={minibatch}",
                      "--set", f"sync.minibatch_parts={parts}")
            self.kumo("export", name, "--format", "safetensors", "--out", f"{name}.safetensors")
            content = (self.folder / f"{name}.safetensors").read_bytes()
            begin = 8 + struct.unpack("<Q", content[:8])[0]
            return struct.unpack(f"<{(len(content) - begin) // 4}f", content[begin:])
        one, two, other = weights("whole", 1, 6), weights("halves", 2, 3), weights("other", 1, 3)
        parts = weights("parts", 1, 6, parts=3)

        def distance(a, b):
            return sum((x - y) ** 2 for x, y in zip(a, b)) ** .5
        self.assertLess(distance(one, two), 1e-4 * distance(one, other))
        self.assertLess(distance(one, parts), 1e-4 * distance(one, other))

    @unittest.skipUnless(have_others(), f"{OTHERS} has no onnx and onnxruntime (set KUMO_ONNX_PYTHON)")
    def test_onnxruntime_makes_the_same_detections(self):
        self.kumo("export", "out", "--out", "raw.onnx", "--pixels")
        self.kumo("export", "out", "--out", "nms.onnx", "--pixels", "--nms")
        names = sorted(name for name, rows in self.pictures.items() if len(rows) == SIDE)
        found = self.detections("out", "rectangles.zip", "--score", "0.01")
        pixels = [[[[pixel[c] for pixel in row] for row in self.pictures[name]] for c in range(3)] for name in names]
        ended = subprocess.run([OTHERS, "-c", DETECT, self.folder], input=json.dumps(pixels), text=True,
                               capture_output=True, timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for way in json.loads(ended.stdout):
            self.assertEqual(len(way), len(names))
            for name, objects in zip(names, way):
                self.assert_alike(objects, found[name])

    def test_what_cannot_be_done_is_said(self):
        self.assertIn("kumo detect FILE IMAGE...", self.kumo("detect", "out", expect=64).stderr)
        self.assertIn("use kumo detect", self.kumo("predict", "out", "--input", "rectangles.zip", expect=78).stderr)
        self.assertIn("nowhere.png: no such image, folder or archive",
                      self.kumo("detect", "out", "nowhere.png", expect=78).stderr)
        self.assertIn("nowhere/", self.kumo("detect", "out", "rectangles.zip", "--out",
                                                      "nowhere/found.json", expect=78).stderr)
        os.mkfifo(self.folder / "pipe")
        self.assertIn("pipe is no regular file; omit --out",
                      self.kumo("detect", "out", "rectangles.zip", "--out", "pipe", expect=78).stderr)
        (self.folder / "classes.pbtxt").write_text("""
            name: "classes"
            input { extents: 4 }
            layers { name: "fc" fully_connected { outputs: 2 } }
            layers { name: "loss" softmax_cross_entropy {} }""")
        (self.folder / "numbers.ctf").write_text("|labels 1 0 |features 1 2 3 4\n|labels 0 1 |features 4 3 2 1\n")
        (self.folder / "classes.conf").write_text("""
            [job]
            epochs = 1
            [network]
            file = classes.pbtxt
            [data]
            reader = ctf
            train_images = numbers.ctf
            validation_images = numbers.ctf
            directory = .
            classes = 2
            [sync]
            mode = gradient
            partitions = 1
            minibatch = 2
            [output]
            directory = classes
            """)
        self.kumo("launch", "classes.conf")
        ended = self.kumo("detect", "classes.conf", "rectangles.zip", expect=78)
        self.assertIn("its last loss is softmax_cross_entropy, not multibox; use kumo predict", ended.stderr)
        self.assertIn("--nms: network classes finds no objects",
                      self.kumo("export", "classes.conf", "--out", "classes.onnx", "--nms", expect=78).stderr)
        self.assertIn("--nms requires --format onnx",
                      self.kumo("export", "out", "--out", "weights.npz", "--nms", expect=64).stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    options.bin = options.bin.resolve()
    ctest.run(rest)
