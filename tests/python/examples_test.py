#!/usr/bin/env python3
"""The examples of python/examples, each with its experiment file, on a little data.

  tests/python/examples_test.py --bin DIR      DIR: where kumo and the other programs are
"""
import pathlib
import re
import tempfile
import unittest

import python_jobs
from python_jobs import JAX, TORCH, Job, JobTest, together, warm

IMAGES = """
import io, os, tarfile, numpy
from PIL import Image
os.makedirs("data/cifar10")
pixels = numpy.random.default_rng(1).integers(256, size=(24, 32, 32, 3), dtype=numpy.uint8)
with tarfile.open("data/cifar10/cifar10-jpeg.tar.gz", "w:gz") as archive:
    for i, image in enumerate(pixels):
        jpeg = io.BytesIO()
        Image.fromarray(image).save(jpeg, "JPEG")
        file = tarfile.TarInfo(f"{'test' if i < 4 else 'train'}/class{i % 10}/{i}.jpg")
        file.size = jpeg.tell()
        archive.addfile(file, io.BytesIO(jpeg.getvalue()))
"""


class ExampleJobs(JobTest):
    def example(self, name, *settings, python, **variables):
        """A job of an example's experiment file, with its program after the words `python`, and what
        launches it."""
        folder = python_jobs.BIN.parent / "share/kumo/python/examples"
        job = Job([], [])
        self.addCleanup(job.remove)
        program = " ".join(f"'{word}'" for word in [*python, folder / (name + ".py")])
        settings = [f'worker.command="{program}"', "output.directory=out", "job.epochs=1",
                    "sync.partitions=2", "sync.block=3", *settings]
        words = [word for setting in settings for word in ("--set", setting)]
        return job, lambda *more: job.launch(*words, *more, conf=str(folder / (name + ".conf")), **variables)


class TorchTest(ExampleJobs):
    def test_examples_of_torch(self):
        self.needs(TORCH, "torch", "KUMO_TORCH_PYTHON")
        data = pathlib.Path(tempfile.mkdtemp())
        made = Job([], [])
        made.folder = data
        self.addCleanup(made.remove)
        self.digits(data / "data")
        (data / "data/text").mkdir()
        (data / "data/text/tinyshakespeare.txt").write_text("To be, or not to be.\n" * 99)
        root = str(data / "data")
        python = warm(TORCH, "torch")
        lenet, run_lenet = self.example("mnist_lenet", python=python, KUMO_DATA=root)
        gpt, run_gpt = self.example("char_gpt", "sync.minibatch=4", "schedule.warmup=0", python=python,
                                    KUMO_DATA=root, WINDOWS="40")
        finetune, run_finetune = self.example("mnist_finetune", python=python, KUMO_DATA=root,
                                              PRETRAINED=str(lenet.folder / "out"))

        def one_after_the_other():
            return [run_lenet(), run_finetune()]

        def images():
            if not python_jobs.has(TORCH, "PIL"):
                return None
            made.python(TORCH, IMAGES)
            return self.example("cifar10_resnet", "sync.minibatch=4", "sync.overlap=1", python=python,
                                KUMO_DATA=root)[1]()
        first, said_gpt, said_images = together(one_after_the_other, run_gpt, images)
        for launched in [*first, said_gpt] + ([said_images] if said_images else []):
            self.ends(0, launched)
        frozen = [job.weights(TORCH)["conv1.weight"] for job in (lenet, finetune)]
        self.assertEqual(*frozen)
        names = list(gpt.weights(TORCH))
        self.assertIn("embed.weight", names)
        self.assertNotIn("head.weight", names)  # shared


class JaxTest(ExampleJobs):
    def test_example_of_jax(self):
        self.needs(JAX, "jax, numpy", "KUMO_JAX_PYTHON")
        data = Job([], [])
        self.addCleanup(data.remove)
        root = self.digits(data.folder / "data")

        def run(workers):
            job, launch = self.example("mnist_jax", "sync.minibatch=16", "sync.overlap=1", python=[JAX],
                                       KUMO_DATA=root)
            self.ends(0, launch("--workers", workers))
            return job.weights(JAX)
        one, two = together(lambda: run("1"), lambda: run("2"))
        self.assertEqual(one, two)
        self.assertEqual(list(one), ["layer0.bias", "layer0.kernel", "layer1.bias", "layer1.kernel"])

    def test_pytrees_of_jax(self):
        self.needs(JAX, "jax, numpy", "KUMO_JAX_PYTHON")
        self.cases(JAX, "tree_model_cases.py")


class FilesTest(unittest.TestCase):
    def test_each_example_has_an_experiment_file_that_starts_it(self):
        folder = python_jobs.HERE.parents[1] / "python/examples"
        page = (python_jobs.HERE.parents[1] / "docs/pytorch.md").read_text()
        for program in sorted(folder.glob("*.py")):
            conf = program.with_suffix(".conf").read_text()
            self.assertRegex(conf, rf"(?m)^command = python3 {re.escape(program.name)}$")
            self.assertIn(f"`{program.name}`", page)


if __name__ == "__main__":
    python_jobs.main(__doc__)
