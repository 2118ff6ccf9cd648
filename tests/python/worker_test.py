#!/usr/bin/env python3
"""Jobs whose workers are Python programs (python/kumo, worker.command), with real processes.

  tests/python/worker_test.py --bin DIR      DIR: where kumo and the other programs are

The programs run in the Python that KUMO_ONNX_PYTHON names, which needs numpy, and those with torch in the
one that KUMO_TORCH_PYTHON names. Tests whose Python lacks what they need are skipped.
"""
import argparse
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
NUMPY = os.environ.get("KUMO_ONNX_PYTHON", sys.executable)
TORCH = os.environ.get("KUMO_TORCH_PYTHON", sys.executable)
LIMIT = 120  # seconds; longer than any job here takes on a busy machine


def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


class Job:
    """A job in a folder of its own."""

    def __init__(self, python, program, settings):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        lines = [f"worker.command = \"'{python}' '{program}'\"", "output.directory = out", *settings]
        text = ""
        for line in lines:
            section, setting = line.split(".", 1)
            text += f"[{section}]\n{setting}\n"
        (self.folder / "job.conf").write_text(text)

    def launch(self, *arguments, **environment):
        return subprocess.run(
            [BIN / "kumo", "launch", "job.conf", "--json", *arguments], cwd=self.folder, text=True,
            capture_output=True, timeout=LIMIT, env={**os.environ, **environment})

    def weights(self, python):
        """{name: digits of its numbers} of the newest checkpoint."""
        program = ("import json, kumo; print(json.dumps({name: values.tobytes().hex() for name, values in "
                   "kumo.load_state_dict('out').items()}))")
        done = subprocess.run([python, "-c", program], cwd=self.folder, text=True, capture_output=True,
                              env={**os.environ, "PYTHONPATH": str(BIN.parent / "share/kumo/python")})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def log(self, name):
        return (self.folder / "out/logs" / name).read_text()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class WorkerTest(unittest.TestCase):
    def job(self, python, program, settings):
        job = Job(python, HERE / program, settings)
        self.addCleanup(job.remove)
        return job

    def ends(self, code, launched):
        self.assertEqual(launched.returncode, code, launched.stdout + launched.stderr)
        return json.loads(launched.stdout)

    def numpy_job(self, mode="block"):
        if not has(NUMPY, "numpy"):
            self.skipTest(f"{NUMPY} has no numpy (KUMO_ONNX_PYTHON names one that has)")
        return self.job(NUMPY, "own_model.py", [
            "job.epochs = 3", f"sync.mode = {mode}", "sync.partitions = 3", "sync.minibatch = 8",
            "sync.block = 2", "schedule.learning_rate = 0.05", "cluster.chunk_kib = 2"])

    def test_the_weights_do_not_depend_on_workers_kills_and_stops(self):
        weights = []
        for workers, case in ((1, ""), (3, "workers"), (2, "stop")):
            with self.subTest(workers=workers, case=case):
                job = self.numpy_job()
                launched = job.launch("--workers", str(workers), CASE=case)
                if case == "stop":
                    self.ends(75, launched)
                    launched = job.launch("--workers", "1", "--servers", "2", CASE="")
                outcome = self.ends(0, launched)
                self.assertLess(outcome["figures"]["validation/main/loss"], 0.1)
                weights.append(job.weights(NUMPY))
                self.assertEqual(weights[0], weights[-1])
                if case == "workers":
                    self.assertIn("worker-0 was killed by SIGKILL", launched.stderr)
                    self.assertIn("OSError: the data server is away", launched.stderr)
                    self.assertIn("Traceback", job.log("worker-1.stderr"))
                    self.assertIn("its program's request: leaves the job", job.log("worker-2.stderr"))
        self.assertEqual(weights[0]["frozen"], "00000000" "0000803f" "00000040" "00004040" "00008040")

    def test_gradients_are_stepped_on_the_servers(self):
        weights = []
        for workers in (1, 2):
            job = self.numpy_job("gradient")
            # Two samples are left in each epoch, for three partitions.
            outcome = self.ends(0, job.launch("--workers", str(workers), "--set", "optimiser.type=adamw",
                                              "--set", "sync.minibatch=11"))
            self.assertLess(outcome["figures"]["validation/main/loss"], 6)
            weights.append(job.weights(NUMPY))
        self.assertEqual(weights[0], weights[1])

    def test_mistakes_end_the_job_with_their_reason(self):
        for case, words in (
                ("samples", "other data: training samples are 20"),
                ("early", "8 of 16 samples were reported; go through all minibatches()"),
                ("shape", "tensor layer.weight is of shape [9], but was of shape [8]"),
                ("nan", "tensor layer.weight has become infinite or not a number")):
            with self.subTest(case=case):
                job = self.numpy_job()
                launched = job.launch("--workers", "2", "--max-restarts", "0", CASE=case)
                self.assertEqual(launched.returncode, 78, launched.stdout + launched.stderr)
                self.assertIn(words, launched.stdout + launched.stderr)
        checked = subprocess.run([BIN / "kumo", "check", "job.conf"], cwd=job.folder, text=True,
                                 capture_output=True)
        self.assertRegex(checked.stdout, r"cluster.join_timeout_s +600 seconds +worker.command")
        job = self.job("no-such-python", "own_model.py", [])
        launched = job.launch()
        self.assertEqual(launched.returncode, 78, launched.stdout + launched.stderr)
        self.assertIn("no-such-python is in no folder of PATH", launched.stdout + launched.stderr)

    def test_kumo_worker_becomes_the_program_and_leaves_it_when_told_to(self):
        """As in a pod: a server and a worker with a page, which are started one by one."""
        job = self.numpy_job()
        server = f"ipc://{job.folder}/server"
        settings = ["--set", f"cluster.servers={server}", "--set", "cluster.workers=1"]

        def start(program, *arguments, **environment):
            process = subprocess.Popen([BIN / program, "job.conf", *settings, *arguments], cwd=job.folder,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, **environment})
            self.addCleanup(process.wait)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.kill)
            return process

        def page(path):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LIMIT) as answer:
                    return answer.read().decode()
            except urllib.error.URLError:
                return ""

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        start("kumo-server", "--index", "0", "--bind", server)
        worker = start("kumo-worker", "--name", "worker-0", "--http", f"127.0.0.1:{port}", CASE="wait")
        until = time.monotonic() + LIMIT
        while not (job.folder / "waits-worker-0").exists() and time.monotonic() < until:
            self.assertIsNone(worker.poll(), worker)
            time.sleep(0.02)
        while "ready" not in page("/readyz") and time.monotonic() < until:
            time.sleep(0.02)
        self.assertIn("kumo_", page("/metrics"))
        worker.terminate()
        (job.folder / "go").touch()
        _, words = worker.communicate(timeout=LIMIT)
        self.assertEqual(worker.returncode, 75, words)
        self.assertIn("has left the job after SIGTERM", words)
        again = start("kumo-worker", "--name", "worker-0", CASE="")
        _, words = again.communicate(timeout=LIMIT)
        self.assertEqual(again.returncode, 0, words)
        self.assertIn("the program ends", words)

    # --- torch.

    def torch_job(self, program, settings):
        if not has(TORCH, "torch"):
            self.skipTest(f"{TORCH} has no torch (KUMO_TORCH_PYTHON names one that has)")
        return self.job(TORCH, program, settings)

    def test_a_torch_models_weights_do_not_depend_on_workers_and_stops(self):
        weights = []
        for workers, case in ((1, ""), (3, ""), (2, "stop")):
            job = self.torch_job("own_torch_model.py", [
                "job.epochs = 3", "sync.partitions = 3", "sync.minibatch = 8", "sync.block = 3",
                "sync.push_codec = 1bit", "block.rule = average", "block.reset_local_state = false",
                "optimiser.type = adamw", "cluster.chunk_kib = 2"])
            launched = job.launch("--workers", str(workers), CASE=case)
            if case == "stop":
                self.ends(75, launched)
                launched = job.launch("--workers", "2", CASE="")
            self.ends(0, launched)
            weights.append(job.weights(TORCH))
            self.assertEqual(weights[0], weights[-1])
        self.assertEqual(list(weights[0]), [
            "first.weight", "first.bias", "norm.weight", "norm.bias", "second.bias", "frozen.weight",
            "frozen.bias", "last.weight", "last.bias", "norm.running_mean", "norm.running_var"])

    def test_mistakes_with_torch(self):
        gradient = ["sync.mode = gradient", "sync.partitions = 1", "sync.minibatch = 8"]
        job = self.torch_job("own_torch_model.py", gradient)
        launched = job.launch("--workers", "1", CASE="late_zero_grad")
        self.assertEqual(launched.returncode, 78, launched.stdout + launched.stderr)
        self.assertIn("call zero_grad() before backward(), not after step()", launched.stderr)
        job = self.torch_job("own_torch_model.py", ["block.reset_local_state = false"])
        launched = job.launch("--workers", "1")  # optimiser.type = momentum
        self.assertEqual(launched.returncode, 78, launched.stdout + launched.stderr)
        self.assertIn("optimiser.type carries 1 arrays", launched.stderr)

    def test_lenet_has_the_weights_that_kumos_own_network_has(self):
        """The example with drawn digits, beside the same job of kumo-worker."""
        settings = ["job.epochs = 1", "sync.partitions = 2", "sync.minibatch = 16", "sync.block = 4",
                    "optimiser.type = momentum", "schedule.learning_rate = 0.05",
                    "network.initial_weights = start.npz"]
        examples = BIN.parent / "share/kumo/python/examples"
        own = self.torch_job(examples / "mnist_lenet.py", settings)
        digits = own.folder / "data"
        subprocess.run([BIN / "kumo-data", "digits", "--out", digits, "--train", "256", "--validation", "64"],
                       check=True, capture_output=True)
        start = ("import sys, numpy, torch; sys.path.insert(0, sys.argv[1]); import mnist_lenet; "
                 "torch.manual_seed(7); numpy.savez('start.npz', **{name: tensor.numpy() for name, tensor in "
                 "mnist_lenet.LeNet().state_dict().items()})")
        environment = {**os.environ, "PYTHONPATH": str(BIN.parent / "share/kumo/python"),
                       "KUMO_DATA": str(digits)}
        subprocess.run([TORCH, "-c", start, examples], cwd=own.folder, check=True, env=environment)
        theirs = self.torch_job("", settings)
        shutil.copy(own.folder / "start.npz", theirs.folder)
        conf = theirs.folder / "job.conf"
        conf.write_text(conf.read_text() + "[network]\nfile = "
                        f"{BIN.parent}/share/kumo/models/zoo/mnist_lenet.pbtxt\n")
        self.ends(0, own.launch("--workers", "2", KUMO_DATA=str(digits)))
        self.ends(0, theirs.launch("--workers", "1", "--set", "worker.command=", KUMO_DATA=str(digits)))
        mine, network = own.weights(TORCH), theirs.weights(TORCH)
        self.assertEqual(list(mine), list(network))
        for name, digits in mine.items():
            ours = struct.unpack(f"{len(digits) // 8}f", bytes.fromhex(digits))
            others = struct.unpack(f"{len(digits) // 8}f", bytes.fromhex(network[name]))
            largest = max(map(abs, others))
            self.assertLess(max(abs(a - b) for a, b in zip(ours, others)) / largest, 1e-5, name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    arguments, rest = parser.parse_known_args()
    BIN = arguments.bin.resolve()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # the build folder's package is that of the sources
    unittest.main(argv=sys.argv[:1] + rest)
