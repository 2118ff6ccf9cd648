#!/usr/bin/env python3
"""Installs the build into a folder of its own, moves that folder, and uses Kumo from there as a user does.

  tests/install/install_test.py --build DIR [--cmake FILE]
"""
import argparse
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

ARGUMENTS = argparse.ArgumentParser(description=__doc__)
ARGUMENTS.add_argument("--build", type=pathlib.Path, required=True)
ARGUMENTS.add_argument("--cmake", default="cmake")
PROGRAMS = ("kumo", "kumo-server", "kumo-worker", "kumo-data")
SMALL = ["--set", "data.directory=data", "--set", "job.epochs=1", "--set", "sync.warmup_samples=0",
         "--set", "sync.block=5", "--workers", "1"]


def contents(folder):
    """The hash of each file below a folder."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*") if path.is_file()}


# Of experiments; else 10.
CLASSES = {"scenes_tags": 0, "scenes_unet": 11, "bccd_ssd300_slim": 3, "voc_ssd300": 20, "char_gpt": 65, "char_gpt_diloco": 65, "char_gpt_small": 65, "imagenet_resnet50": 1000}


def grey_png(side, level):
    """A PNG of one grey, as the PNG specification has it."""
    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content +
                struct.pack(">I", zlib.crc32(kind + content)))
    row = b"\0" + bytes([level]) * (3 * side)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(row * side)) + chunk(b"IEND", b""))


def write_cifar(folder):
    """What the experiments on CIFAR-10 ask for, unpacked, with two images of each class."""
    for part in ("train", "test"):
        for label in range(10):
            classes = folder / "cifar10/cifar10-jpeg.tar.gz" / part / f"class{label}"
            classes.mkdir(parents=True)
            for i in range(2):
                (classes / f"{i}.png").write_bytes(grey_png(32, 20 * label + i))


def write_imagenet(folder):
    """A thousand classes of an image."""
    for part in ("train", "validation"):
        for label in range(1000):
            classes = folder / "imagenet" / part / f"n{label:08}"
            classes.mkdir(parents=True)
            (classes / "0.png").write_bytes(grey_png(8, label % 256))


def write_text(folder):
    """What the language models ask for: 65 characters."""
    (folder / "text").mkdir()
    (folder / "text/tinyshakespeare.txt").write_text(
        "".join(chr(32 + i * i % 65) for i in range(5000)) + "".join(map(chr, range(32, 97))))


def write_objects(folder):
    """In the layout of Pascal VOC, unpacked, an image with an object of each class."""
    (folder / "voc").mkdir()
    for name, classes, sets in (("bccd.tar.gz", 3, ("trainval", "test")),
                                ("VOCtrainval_06-Nov-2007.tar", 20, ("trainval",)),
                                ("VOCtrainval_11-May-2012.tar", 20, ("trainval",)),
                                ("VOCtest_06-Nov-2007.tar", 20, ("test",))):
        layout = folder / "voc" / name
        for part in ("Annotations", "JPEGImages", "ImageSets/Main"):
            (layout / part).mkdir(parents=True)
        (layout / "JPEGImages/1.png").write_bytes(grey_png(32, 90))
        objects = "".join(f"<object><name>{chr(97 + c)}</name><bndbox><xmin>2</xmin><ymin>3</ymin><xmax>20</xmax>"
                          f"<ymax>{9 + c}</ymax></bndbox></object>" for c in range(classes))
        (layout / "Annotations/1.xml").write_text(f"<annotation>{objects}</annotation>")
        for one in sets:
            (layout / f"ImageSets/Main/{one}.txt").write_text("1\n")


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        first = cls.folder / "first"
        subprocess.run([options.cmake, "--install", options.build, "--prefix", first],
                       check=True, capture_output=True)
        cls.prefix = cls.folder / "moved"
        first.rename(cls.prefix)
        cls.here = cls.folder / "here"
        cls.here.mkdir()
        cls.run_in(cls.here, "kumo-data", "digits", "--out", "data", "--train", "1000",
                   "--validation", "200")
        cls.run_in(cls.here, "kumo-data", "scenes", "--out", "data", "--train", "20", "--validation", "5")
        write_cifar(cls.here / "data")
        write_imagenet(cls.here / "data")
        write_text(cls.here / "data")
        write_objects(cls.here / "data")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def run_in(cls, folder, program, *arguments, expect=0):
        ended = subprocess.run([cls.prefix / "bin" / program, *arguments], cwd=folder, text=True,
                               capture_output=True)
        assert ended.returncode == expect, f"{program} {arguments}: {ended.returncode}\n" \
            f"{ended.stdout}{ended.stderr}"
        return ended

    def run_here(self, program, *arguments, expect=0):
        return self.run_in(self.here, program, *arguments, expect=expect)

    def test_every_program_tells_its_build(self):
        texts = set()
        for program in PROGRAMS:
            text = self.run_here(program, "--version").stdout
            self.assertRegex(text, rf"\A{program} \d+\.\d+\.\d+\ncommit  \S+\nCPU     oneDNN .*\nCUDA    .*\n\Z")
            texts.add(text.removeprefix(program))
        self.assertEqual(len(texts), 1)
        module = self.prefix / "lib/kumo/backend_cuda.so"
        said = f"CUDA    {module}" if module.exists() else f"CUDA    no module {module} (package"
        self.assertIn(said, texts.pop())

    def test_an_installed_experiment_is_found_by_its_name_and_writes_to_the_working_directory(self):
        before = contents(self.prefix)
        folder = self.folder / "working"
        folder.mkdir()
        small = ["--set", f"data.directory={self.here / 'data'}", *SMALL[2:]]
        check = self.run_in(folder, "kumo", "check", "mnist_lenet", *small)
        self.assertIn(str(self.prefix / "share/kumo/models/zoo/mnist_lenet.pbtxt"), check.stdout)
        self.run_in(folder, "kumo", "launch", "mnist_lenet", *small)
        self.assertTrue((folder / "out/mnist_lenet/log.jsonl").exists())
        self.run_in(folder, "kumo", "evaluate", "mnist_lenet.conf", *small[:-2])
        self.assertEqual(contents(self.prefix), before)

    def test_every_installed_experiment_passes_the_check(self):
        for path in (self.prefix / "share/kumo/experiments").glob("*.conf"):
            self.run_here("kumo", "check", path.stem, "--set", "data.directory=data")
            shown = self.run_here("kumo", "data", path.stem, "--set", "data.directory=data", "--json")
            self.assertEqual(len(json.loads(shown.stdout)["train"]["classes"]), CLASSES.get(path.stem, 10))

    def test_a_new_experiment_is_the_same_job_with_the_same_bits(self):
        folder = self.folder / "new"
        folder.mkdir()
        self.run_in(folder, "kumo", "new", "my", "--from", "mnist_lenet")
        # What is compared holds the job's name and that of the network's file: give both the same.
        (folder / "other").mkdir()
        shutil.copy(folder / "my.pbtxt", folder / "other/mnist_lenet.pbtxt")
        small = ["--set", f"data.directory={self.here / 'data'}", *SMALL[2:]]
        mine = [*small, "--set", "job.name=same", "--set", "network.file=other/mnist_lenet.pbtxt"]
        theirs = [*small, "--set", "job.name=same"]
        found = []
        for experiment, settings in (("my.conf", mine), ("mnist_lenet", theirs)):
            report = self.run_in(folder, "kumo", "check", experiment, *settings, "--json").stdout
            output = f"out-of-{experiment}"
            self.run_in(folder, "kumo", "launch", experiment, *settings, "--set",
                        f"output.directory={output}")
            checkpoints = folder / output / "checkpoints"
            shard, = (hash for name, hash in contents(checkpoints).items() if "MANIFEST" not in name)
            found.append((json.loads(report)["experiment_hash"], shard))
        self.assertEqual(found[0], found[1])
        self.run_in(folder, "kumo", "check", "my.conf", *small)

    def test_servers_and_workers_know_the_names_too(self):
        self.run_here("kumo-worker", "mnist_lenet", "--check", "--set", "data.directory=data")
        ended = self.run_here("kumo-server", "mnist_lenet", expect=78)
        self.assertIn("cluster.servers is not set", ended.stderr)

    def test_programs_are_found_through_a_link(self):
        link = self.folder / "links/kumo"
        link.parent.mkdir()
        link.symlink_to(self.prefix / "bin/kumo")
        subprocess.run([link, "check", "mnist_mlp", "--set", "data.directory=data"], cwd=self.here,
                       check=True, capture_output=True)

    def test_links_of_the_installed_pages_lead_somewhere(self):
        documents = self.prefix / "share/doc/kumo"
        pages = [documents / "README.md", documents / "CONTRIBUTING.md",
                 *(documents / "docs").rglob("*.md")]
        self.assertGreater(len(pages), 5)
        for page in pages:
            for target in re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")
        self.assertIn("Apache License", (documents / "copyright").read_text())

    def test_the_build_folder_has_the_same_layout(self):
        bin_of_build = options.build / "bin"
        subprocess.run([bin_of_build / "kumo", "check", "mnist_lenet", "--set", "data.directory=data"],
                       cwd=self.here, check=True, capture_output=True)

    def test_the_commit_is_that_of_the_sources_and_is_written_only_when_it_is_another(self):
        sources, file = self.folder / "sources", self.folder / "commit.cc"
        sources.mkdir()
        script = pathlib.Path(__file__).parents[2] / "cmake/commit.cmake"

        def written(*more):
            subprocess.run([options.cmake, f"-DSOURCE={sources}", f"-DFILE={file}", *more, "-P", script],
                           check=True, capture_output=True)
            return re.search(r'"([^"]*)";', file.read_text())[1]

        def git(*arguments):
            subprocess.run(["git", "-C", sources, "-c", "user.name=n", "-c", "user.email=e", *arguments],
                           check=True, capture_output=True)

        self.assertEqual(written(), "unknown")
        git("init")
        (sources / "a").write_text("a")
        git("add", "a")
        git("commit", "-m", "a")
        commit = written()
        self.assertRegex(commit, r"\A[0-9a-f]{7,}\Z")
        before = file.stat().st_mtime_ns
        self.assertEqual(written(), commit)
        self.assertEqual(file.stat().st_mtime_ns, before)
        (sources / "a").write_text("b")
        self.assertEqual(written(), commit + "-dirty")
        self.assertEqual(written("-DKUMO_COMMIT=named"), "named")

    def test_components_do_not_share_files(self):
        found = []
        for component in ("kumo", "kumo-cuda"):
            prefix = self.folder / component
            subprocess.run([options.cmake, "--install", options.build, "--prefix", prefix,
                            "--component", component], check=True, capture_output=True)
            found.append(set(contents(prefix)) if prefix.exists() else set())
            shutil.rmtree(prefix, ignore_errors=True)
        self.assertEqual(found[0] & found[1], set())
        self.assertEqual(found[0] | found[1], set(contents(self.prefix)))
        self.assertNotIn("lib/kumo/backend_cuda.so", found[0])


if __name__ == "__main__":
    options, rest = ARGUMENTS.parse_known_args()
    options.build = options.build.resolve()
    ctest.run(rest)
